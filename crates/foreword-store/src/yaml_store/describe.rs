//! Says in words what differs between two libraries, for changes that nobody announced.

use std::collections::HashMap;

use foreword_compose::LibraryDraft;

/// As many items are named; the others are counted.
const NAMED: usize = 5;

/// What changed in the file, such as "changed in the file: profile `developer`, section `safety`".
pub(super) fn describe(old: &LibraryDraft, new: &LibraryDraft) -> String {
    let mut items = Vec::new();
    for (name, same) in [
        ("global prompt", old.global_prompt == new.global_prompt),
        ("variables", old.variables == new.variables),
        (
            "workspace guide",
            old.workspace_guide == new.workspace_guide,
        ),
    ] {
        if !same {
            items.push(name.to_owned());
        }
    }
    items.extend(differing(
        "section",
        &old.sections,
        &new.sections,
        |shared| &shared.section.id,
    ));
    items.extend(differing(
        "profile",
        &old.profiles,
        &new.profiles,
        |profile| &profile.id,
    ));
    let more = items.len().saturating_sub(NAMED);
    items.truncate(NAMED);
    match (items.is_empty(), more) {
        (true, _) => "changed in the file: order, comments or layout only".to_owned(),
        (false, 0) => format!("changed in the file: {}", items.join(", ")),
        (false, more) => format!("changed in the file: {} and {more} more", items.join(", ")),
    }
}

/// The items that were added, removed or changed.
fn differing<T: PartialEq>(
    kind: &str,
    old: &[T],
    new: &[T],
    id: impl Fn(&T) -> &String,
) -> Vec<String> {
    let mut before: HashMap<&String, &T> = old.iter().map(|item| (id(item), item)).collect();
    let mut items = Vec::new();
    for item in new {
        match before.remove(id(item)) {
            Some(same) if same == item => {}
            Some(_) => items.push(format!("{kind} `{}`", id(item))),
            None => items.push(format!("{kind} `{}` added", id(item))),
        }
    }
    let removed = old.iter().filter(|item| before.contains_key(id(item)));
    items.extend(removed.map(|item| format!("{kind} `{}` removed", id(item))));
    items
}

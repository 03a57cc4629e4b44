//! The ready-made edits.

use std::sync::Arc;

use foreword_compose::{Fault, SectionType, WorkspaceGuide};
use foreword_store::{
    Edit, EditError, Store, StoreError,
    edit::{
        PlacePatch, ProfilePatch, SectionPatch, create_profile, create_section, delete_profile,
        delete_section, order_places, patch_place, patch_profile, patch_section, put_place,
        remove_place, replace_profile, replace_section, set_default_profile, set_global_prompt,
        set_variables, set_workspace_guide,
    },
};

use crate::support::{as_shown, import, outline, place, profile, section, variable_map};

const LIBRARY: &str = "\
sections:
  - {id: safety, name: Safety, content: Be safe.}
  - {id: tone, content: Be kind.}
  - {id: unused, content: Never used.}
profiles:
  - id: developer
    sections:
      - {id: identity, content: You write code., order: 1}
      - {id: style, content: Be brief., order: 2}
    section_ids: [safety, tone]
  - id: writer
    is_default: true
    sections:
      - {use: safety, order: 7}
";

/// A store with the library above.
async fn stocked(open: &impl Fn() -> Arc<dyn Store>) -> Arc<dyn Store> {
    let store = open();
    store.import(import(LIBRARY)).await.unwrap();
    store
}

/// Why the store refuses this edit; it must leave the library as it is.
async fn refusal(store: &Arc<dyn Store>, edit: Edit) -> EditError {
    let before = store.snapshot();
    let StoreError::Refused(error) = store.edit(edit).await.unwrap_err() else {
        panic!("the edit is refused for what it asks");
    };
    assert!(Arc::ptr_eq(&before, &store.snapshot()));
    error
}

fn only_fault(error: &EditError) -> &Fault {
    match error {
        EditError::Invalid(faults) if faults.len() == 1 => &faults[0],
        other => panic!("one fault is expected, not {other:?}"),
    }
}

pub(crate) async fn a_profile_is_created_once(open: impl Fn() -> Arc<dyn Store>) {
    let store = stocked(&open).await;
    let input = profile(vec![place("tone", None), place("own", Some("Mine."))]);
    let edit = create_profile("analyst", input);
    assert_eq!(edit.what, "created profile `analyst`");
    let snapshot = store.edit(edit.clone()).await.unwrap();
    insta::assert_snapshot!(outline(&snapshot.library, "analyst"), @r"
    tone 0 shared
    own 0
    ");
    assert_eq!(snapshot.library.profile("analyst").unwrap().name, "analyst");
    insta::assert_snapshot!(refusal(&store, edit).await, @"profile `analyst` exists already");
}

pub(crate) async fn a_deleted_profile_is_gone_unless_it_is_the_default(
    open: impl Fn() -> Arc<dyn Store>,
) {
    let store = stocked(&open).await;
    let error = refusal(&store, delete_profile("writer")).await;
    insta::assert_snapshot!(error, @"profile `writer` is the default; make another profile the default first");
    let snapshot = store.edit(delete_profile("developer")).await.unwrap();
    assert!(snapshot.library.profile("developer").is_none());
}

pub(crate) async fn the_last_profile_can_go(open: impl Fn() -> Arc<dyn Store>) {
    let store = stocked(&open).await;
    store.edit(delete_profile("developer")).await.unwrap();
    let snapshot = store.edit(delete_profile("writer")).await.unwrap();
    assert!(snapshot.library.draft().profiles.is_empty());
}

pub(crate) async fn one_profile_is_the_default(open: impl Fn() -> Arc<dyn Store>) {
    let store = stocked(&open).await;
    let edit = set_default_profile("developer");
    let snapshot = store.edit(edit).await.unwrap();
    assert_eq!(snapshot.library.default_profile().unwrap().id, "developer");
    let mut input = as_shown(&snapshot.library, "writer");
    input.is_default = Some(true);
    let snapshot = store.edit(replace_profile("writer", input)).await.unwrap();
    assert_eq!(snapshot.library.default_profile().unwrap().id, "writer");
}

pub(crate) async fn the_default_mark_is_not_simply_dropped(open: impl Fn() -> Arc<dyn Store>) {
    let store = stocked(&open).await;
    let patch = ProfilePatch {
        is_default: Some(false),
        ..ProfilePatch::default()
    };
    let error = refusal(&store, patch_profile("writer", patch)).await;
    assert!(matches!(error, EditError::IsDefault { .. }));
}

pub(crate) async fn a_section_is_created_replaced_and_deleted(open: impl Fn() -> Arc<dyn Store>) {
    let store = stocked(&open).await;
    let content = |store: &Arc<dyn Store>| {
        let snapshot = store.snapshot();
        let section = snapshot.library.section("new").cloned();
        section.map(|shared| shared.section.content)
    };
    store
        .edit(create_section("new", section("One.")))
        .await
        .unwrap();
    let error = refusal(&store, create_section("new", section("Again."))).await;
    insta::assert_snapshot!(error, @"section `new` exists already");
    store
        .edit(replace_section("new", section("Two.")))
        .await
        .unwrap();
    assert_eq!(content(&store).as_deref(), Some("Two."));
    let patch = SectionPatch {
        content: Some("Three.".to_owned()),
        ..SectionPatch::default()
    };
    store.edit(patch_section("new", patch)).await.unwrap();
    assert_eq!(content(&store).as_deref(), Some("Three."));
    store.edit(delete_section("new")).await.unwrap();
    assert_eq!(content(&store), None);
}

pub(crate) async fn a_section_in_use_is_not_deleted(open: impl Fn() -> Arc<dyn Store>) {
    let store = stocked(&open).await;
    let error = refusal(&store, delete_section("safety")).await;
    insta::assert_snapshot!(error, @"section `safety` is used by `developer`, `writer`; remove it there first");
    store.edit(delete_section("unused")).await.unwrap();
}

pub(crate) async fn a_shared_text_is_not_changed_through_a_place(
    open: impl Fn() -> Arc<dyn Store>,
) {
    let store = stocked(&open).await;
    let patch = PlacePatch {
        content: Some("Be wild.".to_owned()),
        ..PlacePatch::default()
    };
    let error = refusal(&store, patch_place("writer", "safety", patch)).await;
    let fault = only_fault(&error);
    assert_eq!(
        (fault.pointer.as_str(), fault.code),
        ("/content", "shared-section")
    );
    insta::assert_snapshot!(fault.message, @"section `safety` is shared, so its content cannot be changed in one profile");
    insta::assert_snapshot!(fault.hint.as_deref().unwrap(), @"change the shared section itself, at `/api/prompts/sections/safety`");

    let mut input = as_shown(&store.snapshot().library, "developer");
    input.sections[3].section_type = Some(SectionType::Persona);
    let error = refusal(&store, replace_profile("developer", input)).await;
    assert_eq!(only_fault(&error).pointer, "/sections/3/type");
}

pub(crate) async fn a_place_without_text_or_shared_section_is_refused(
    open: impl Fn() -> Arc<dyn Store>,
) {
    let store = stocked(&open).await;
    let error = refusal(&store, put_place("writer", place("safty", None))).await;
    insta::assert_snapshot!(only_fault(&error).message, @"section `safty` has no content, and no shared section has this id");
}

pub(crate) async fn a_new_place_comes_last_of_those_written_out(open: impl Fn() -> Arc<dyn Store>) {
    let store = stocked(&open).await;
    let edit = put_place("developer", place("extra", Some("More.")));
    let snapshot = store.edit(edit).await.unwrap();
    insta::assert_snapshot!(outline(&snapshot.library, "developer"), @r"
    identity 1
    style 2
    extra 2
    > safety 2 shared
    > tone 2 shared
    ");
}

pub(crate) async fn a_switch_moves_an_entry_out_of_the_short_form(
    open: impl Fn() -> Arc<dyn Store>,
) {
    let store = stocked(&open).await;
    let patch = PlacePatch {
        enabled: Some(false),
        ..PlacePatch::default()
    };
    let edit = patch_place("developer", "safety", patch);
    let snapshot = store.edit(edit).await.unwrap();
    insta::assert_snapshot!(outline(&snapshot.library, "developer"), @r"
    identity 1
    style 2
    safety 2 shared off
    > tone 2 shared
    ");
}

pub(crate) async fn an_order_moves_an_entry_out_of_the_short_form_and_nothing_else(
    open: impl Fn() -> Arc<dyn Store>,
) {
    let store = stocked(&open).await;
    let patch = PlacePatch {
        order: Some(0),
        ..PlacePatch::default()
    };
    let edit = patch_place("developer", "tone", patch);
    let snapshot = store.edit(edit).await.unwrap();
    insta::assert_snapshot!(outline(&snapshot.library, "developer"), @r"
    identity 1
    style 2
    safety 2 shared
    tone 0 shared
    ");
    // An order that would drag the short form along makes it explicit instead.
    store.undo().await.unwrap();
    let patch = PlacePatch {
        order: Some(9),
        ..PlacePatch::default()
    };
    let edit = patch_place("developer", "identity", patch);
    let snapshot = store.edit(edit).await.unwrap();
    insta::assert_snapshot!(outline(&snapshot.library, "developer"), @r"
    identity 9
    style 2
    safety 2 shared
    tone 2 shared
    ");
}

pub(crate) async fn removing_a_place_leaves_the_short_form(open: impl Fn() -> Arc<dyn Store>) {
    let store = stocked(&open).await;
    store
        .edit(remove_place("developer", "style"))
        .await
        .unwrap();
    let snapshot = store
        .edit(remove_place("developer", "safety"))
        .await
        .unwrap();
    insta::assert_snapshot!(outline(&snapshot.library, "developer"), @r"
    identity 1
    > tone 1 shared
    ");
    let error = refusal(&store, remove_place("developer", "identty")).await;
    insta::assert_snapshot!(error, @"section `identty` does not exist; did you mean `identity`?");
}

pub(crate) async fn ordering_names_every_section_once(open: impl Fn() -> Arc<dyn Store>) {
    let store = stocked(&open).await;
    let order =
        |ids: &[&str]| order_places("developer", ids.iter().map(|id| (*id).to_owned()).collect());
    for (ids, message) in [
        (
            &["safety", "style", "identity"][..],
            "section `tone` is missing",
        ),
        (
            &["safety", "style", "identity", "tone", "tone"],
            "section `tone` is named twice",
        ),
        (
            &["safety", "style", "identity", "tone", "ton"],
            "profile `developer` has no section `ton`",
        ),
    ] {
        let error = refusal(&store, order(ids)).await;
        assert_eq!(only_fault(&error).message, message);
    }
    let error = refusal(&store, order(&["tone", "tone", "ton"])).await;
    let EditError::Invalid(faults) = error else {
        panic!("{error}");
    };
    assert_eq!(faults.len(), 5, "each fault is told: {faults:?}");
    let edit = order(&["tone", "style", "identity", "safety"]);
    let snapshot = store.edit(edit).await.unwrap();
    insta::assert_snapshot!(outline(&snapshot.library, "developer"), @r"
    identity 2
    style 1
    safety 3 shared
    tone 0 shared
    ");
}

pub(crate) async fn patching_an_inline_section_changes_only_what_is_given(
    open: impl Fn() -> Arc<dyn Store>,
) {
    let store = stocked(&open).await;
    let patch = PlacePatch {
        content: Some("You write good code.".to_owned()),
        section_type: Some(SectionType::Persona),
        priority: Some(3),
        ..PlacePatch::default()
    };
    let edit = patch_place("developer", "identity", patch);
    let snapshot = store.edit(edit).await.unwrap();
    let developer = snapshot.library.profile("developer").unwrap();
    let identity = snapshot.library.places(developer).next().unwrap();
    assert_eq!(identity.section.content, "You write good code.");
    assert_eq!(identity.section.section_type, SectionType::Persona);
    assert_eq!(identity.section.name, "identity");
    assert_eq!((identity.order, identity.priority), (1, 3));
    assert_eq!(developer.section_ids, ["safety", "tone"]);
}

pub(crate) async fn texts_are_set_and_what_is_absent_stays(open: impl Fn() -> Arc<dyn Store>) {
    let store = stocked(&open).await;
    let shipped = WorkspaceGuide {
        content: "The shipped guide.".to_owned(),
        enabled: true,
    };
    let before = store.snapshot();
    // What is shown of a library without these texts is no change.
    store
        .edit(set_global_prompt(Some(String::new()), Some(true)))
        .await
        .unwrap();
    let shown = set_workspace_guide(Some(shipped.content.clone()), Some(true), shipped.clone());
    store.edit(shown).await.unwrap();
    assert!(Arc::ptr_eq(&before, &store.snapshot()));

    store
        .edit(set_global_prompt(Some("Hello.".to_owned()), None))
        .await
        .unwrap();
    store
        .edit(set_global_prompt(None, Some(false)))
        .await
        .unwrap();
    store
        .edit(set_workspace_guide(None, Some(false), shipped))
        .await
        .unwrap();
    store
        .edit(set_variables(variable_map(&["company", "team"])))
        .await
        .unwrap();
    let snapshot = store.snapshot();
    let draft = snapshot.library.draft();
    let global = draft.global_prompt.as_ref().unwrap();
    assert_eq!((global.content.as_str(), global.enabled), ("Hello.", false));
    let guide = draft.workspace_guide.as_ref().unwrap();
    assert_eq!(
        (guide.content.as_str(), guide.enabled),
        ("The shipped guide.", false)
    );
    assert_eq!(draft.variables, variable_map(&["company", "team"]));
}

pub(crate) async fn an_unknown_id_names_the_nearest(open: impl Fn() -> Arc<dyn Store>) {
    let store = stocked(&open).await;
    let error = refusal(&store, set_default_profile("develper")).await;
    insta::assert_snapshot!(error, @"profile `develper` does not exist; did you mean `developer`?");
    let error = refusal(&store, delete_section("completely-different")).await;
    insta::assert_snapshot!(error, @"section `completely-different` does not exist");
}

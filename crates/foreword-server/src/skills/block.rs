//! What the prompt says of skills: a block that no skill's words can break out of.

use std::fmt::Write;

use foreword_compose::one_line;
use foreword_sandbox::SKILLS;

use super::{Skill, local::SKILL_MD};

/// The longest description in the prompt, in characters.
const MAX_DESCRIPTION: usize = 300;

/// How much of a description is looked at.
const MAX_LOOKED_AT: usize = 4 * MAX_DESCRIPTION;

/// The block of these skills; empty without any.
pub(super) fn block<'a>(skills: impl IntoIterator<Item = &'a Skill>) -> String {
    let mut block = String::new();
    for skill in skills {
        let description = cut(&one_line(&skill.front_matter.description, MAX_LOOKED_AT));
        let (name, description) = (escaped(skill.name.as_str()), escaped(&description));
        let location = location(skill);
        let _ = write!(
            block,
            "<skill>\n<name>\n{name}\n</name>\n<description>\n{description}\n</description>\n\
             <location>\n{location}\n</location>\n</skill>\n"
        );
    }
    if block.is_empty() {
        return block;
    }
    format!("{INTRODUCTION}\n\n<available_skills>\n{block}</available_skills>")
}

const INTRODUCTION: &str = "## Skills\n\nA skill is a folder with instructions, and often with scripts, for one kind of task. Before a \
                            task that one of these is about, read its SKILL.md with `view`.";

/// Where a skill's SKILL.md is in the workspace.
pub(super) fn location(skill: &Skill) -> String {
    format!(
        "{SKILLS}/{}/{}/{SKILL_MD}",
        skill.group.as_str(),
        skill.name
    )
}

/// The description in at most [`MAX_DESCRIPTION`] characters, cut between words where that loses little.
fn cut(description: &str) -> String {
    let Some((end, _)) = description.char_indices().nth(MAX_DESCRIPTION) else {
        return description.to_owned();
    };
    let kept = &description[..end];
    let cut = match kept.rfind(char::is_whitespace) {
        Some(space) if space > end / 2 => &kept[..space],
        _ => kept,
    };
    format!("{}…", cut.trim_end())
}

/// The text without what means something in XML.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            other => escaped.push(other),
        }
    }
    escaped
}

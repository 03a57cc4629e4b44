//! Which form of the prompt tier 4 delivers.

use crate::{
    config::Form,
    session::{ChatId, Session},
};

/// The form that a query asks for under `name`; none where it does not ask.
pub(crate) fn form_in_query(query: Option<&str>, name: &str) -> Result<Option<Form>, UnknownForm> {
    let query = query.unwrap_or_default().as_bytes();
    form_urlencoded::parse(query)
        .find(|(key, value)| key == name && !value.is_empty())
        .map(|(_, word)| form_named(&word).ok_or_else(|| UnknownForm(word.into_owned())))
        .transpose()
}

/// Stands for all sessions where the form holds nothing of any.
pub(crate) fn nobodys_session(profile_id: Option<&str>) -> Session {
    Session {
        chat_id: ChatId::default_chat(),
        chat_id_given: false,
        shared: true,
        user_email: None,
        user_name: None,
        profile_id: profile_id.map(Into::into),
    }
}

/// A word that names no form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a form of instructions; there are `full`, `brief`, `hint` and `neutral`")]
pub(crate) struct UnknownForm(String);

fn form_named(word: &str) -> Option<Form> {
    match word {
        "full" => Some(Form::Full),
        "brief" => Some(Form::Brief),
        "hint" => Some(Form::Hint),
        "neutral" => Some(Form::Neutral),
        _ => None,
    }
}

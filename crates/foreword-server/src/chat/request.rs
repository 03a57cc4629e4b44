//! What a chat request asks of Foreword: a few members of the body that are read and taken out of it, and a profile behind the name
//! of the model.

use bytes::Bytes;
use foreword_compose::Library;
use serde_json::{Map, Value};

use super::object::{NoObject, Object};
use crate::{
    error::{ApiError, FaultItem},
    extract::fields::{Fields, read_text_or_texts, read_texts},
    render::Extras,
};

/// The members that are Foreword's.
const OURS: [&str; 6] = [
    "profile_id",
    "system_override",
    "additional_context",
    "variables",
    "chat_id",
    "user_email",
];

/// The members of others that are read or changed.
const THEIRS: [&str; 4] = ["model", "messages", "system", "stream"];

/// A request to be passed on.
#[derive(Debug)]
pub(crate) struct ChatRequest {
    body: Object,
    /// The profile, chat and user that the body names.
    pub(crate) named: Named,
    /// What it adds to the prompt.
    pub(crate) extras: Extras,
    model: Option<String>,
}

/// The session as far as a body names it.
#[derive(Debug, Default)]
pub(crate) struct Named {
    pub(crate) profile_id: Option<String>,
    pub(crate) chat_id: Option<String>,
    pub(crate) user_email: Option<String>,
}

impl ChatRequest {
    /// Reads a body.
    ///
    /// # Errors
    ///
    /// 400 for what is no JSON object, or has a member twice that counts; 422 for members of ours that cannot be.
    pub(crate) fn read(body: Bytes) -> Result<Self, ApiError> {
        let names = [&OURS[..], &THEIRS].concat();
        let body = Object::parse(body, &names)?;
        let ours = OURS.into_iter().filter_map(|name| {
            let value = body.get(name)?;
            // What is no value for a reader is none of ours either: half a surrogate pair.
            let value = serde_json::from_str(value).unwrap_or(Value::Bool(false));
            Some((name.to_owned(), value))
        });
        let ours = Value::Object(ours.collect::<Map<_, _>>());
        let mut faults = Vec::new();
        let mut fields = Fields::new(&ours, String::new(), &mut faults);
        let named = Named {
            profile_id: fields.nullable_text("profile_id"),
            chat_id: fields.nullable_text("chat_id"),
            user_email: fields.nullable_text("user_email"),
        };
        let extras = Extras {
            system_override: fields.nullable_text("system_override"),
            context: fields.read("additional_context", read_text_or_texts),
            variables: fields.read("variables", |value, pointer, faults| {
                read_texts(value, pointer, faults).collect()
            }),
            tools_prompt: None,
        };
        if !faults.is_empty() {
            let faults = faults.into_iter().map(FaultItem::from);
            return Err(ApiError::invalid(faults.collect()));
        }
        let model = body.value("model");
        let model = model.and_then(|model| model.as_str().map(str::to_owned));
        Ok(Self {
            body,
            named,
            extras,
            model,
        })
    }

    /// Takes a known profile off the end of the model's name; it counts where the body names none.
    pub(crate) fn split_model(&mut self, library: &Library) {
        let Some((model, profile)) = self.model.as_deref().and_then(|name| split(name, library))
        else {
            return;
        };
        self.named.profile_id.get_or_insert(profile);
        self.model = Some(model);
    }

    /// The text of a member.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.body.get(name)
    }

    /// The body to pass on, with another value of `name`.
    pub(crate) fn passed_on(&self, name: &str, value: String) -> String {
        let mut set = vec![(name, value)];
        let sent = self.body.value("model");
        if let Some(model) = &self.model
            && sent.as_ref().and_then(Value::as_str) != Some(model)
        {
            set.push(("model", Value::from(model.as_str()).to_string()));
        }
        self.body.changed(&OURS, &set)
    }
}

/// The name of a model without the known profile behind its last `@`, and that profile; real names have an `@` too.
pub(crate) fn split(name: &str, library: &Library) -> Option<(String, String)> {
    let (model, profile) = name.rsplit_once('@')?;
    let is_profile = !model.is_empty() && library.profile(profile).is_some();
    is_profile.then(|| (model.to_owned(), profile.to_owned()))
}

impl From<NoObject> for ApiError {
    fn from(error: NoObject) -> Self {
        Self::new(
            http::StatusCode::BAD_REQUEST,
            "invalid_body",
            format!("the body has to be a JSON object that can be passed on: {error}"),
        )
    }
}

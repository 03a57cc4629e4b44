//! What a chat request asks of Foreword: a few members of the body that are read and taken out of it, and a profile behind the name
//! of the model.

use bytes::Bytes;
use foreword_compose::Library;
use http::StatusCode;
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

/// How many bytes the members that are Foreword's may have together, as JSON.
const MAX_OURS: usize = 2 << 20;

/// The members of others that are read or changed.
const THEIRS: [&str; 5] = ["model", "messages", "system", "stream", "tools"];

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
    /// The profile behind the model's name.
    pub(crate) profile_of_model: Option<String>,
}

/// Reads what a body says of the session, and what it adds to the prompt.
pub(crate) fn read_named_and_extras(fields: &mut Fields<'_>) -> (Named, Extras) {
    let named = Named {
        profile_id: fields.nullable_text("profile_id"),
        chat_id: fields.nullable_text("chat_id"),
        user_email: fields.nullable_text("user_email"),
        profile_of_model: None,
    };
    let extras = Extras {
        system_override: fields.nullable_text("system_override"),
        context: fields.read("additional_context", read_text_or_texts),
        variables: fields.read("variables", |value, pointer, faults| {
            read_texts(value, pointer, faults).collect()
        }),
        tools_prompt: None,
    };
    (named, extras)
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
        let bytes: usize = OURS
            .iter()
            .filter_map(|name| body.get(name))
            .map(str::len)
            .sum();
        if bytes > MAX_OURS {
            return Err(ApiError::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "fields_too_large",
                format!(
                    "the fields for Foreword have more than {MAX_OURS} bytes together; pass long texts in `messages`"
                ),
            ));
        }
        let (mut ours, mut unreadable) = (Map::new(), Vec::new());
        for name in OURS {
            let Some(value) = body.get(name) else {
                continue;
            };
            match serde_json::from_str(value) {
                Ok(value) => {
                    ours.insert(name.to_owned(), value);
                }
                // JSON that is no value: half a surrogate pair, a number out of range.
                Err(error) => unreadable.push(FaultItem::new(
                    format!("/{name}"),
                    format!("`{name}` cannot be read: {error}"),
                )),
            }
        }
        let ours = Value::Object(ours);
        let mut faults = Vec::new();
        let mut fields = Fields::new(&ours, String::new(), &mut faults);
        let (session, extras) = read_named_and_extras(&mut fields);
        let faults: Vec<FaultItem> = faults
            .into_iter()
            .map(Into::into)
            .chain(unreadable)
            .collect();
        if !faults.is_empty() {
            return Err(ApiError::invalid(faults));
        }
        let model = body.value("model");
        let model = model.and_then(|model| model.as_str().map(str::to_owned));
        Ok(Self {
            body,
            named: session,
            extras,
            model,
        })
    }

    /// Takes a known profile off the end of the model's name; it counts where nothing else names one.
    pub(crate) fn split_model(&mut self, library: &Library) {
        let split = self.model.as_deref();
        if let Some((model, profile)) = split.and_then(|name| split_profile(name, library)) {
            self.named.profile_of_model = Some(profile);
            self.model = Some(model);
        }
    }

    /// The body as it was sent.
    pub(crate) fn body(&self) -> &Object {
        &self.body
    }

    /// The body to pass on, with another value of `name` where there is one.
    pub(crate) fn passed_on(&self, name: &str, value: Option<String>) -> String {
        let mut set: Vec<(&str, String)> = value.into_iter().map(|value| (name, value)).collect();
        let original = self.body.value("model");
        if let Some(model) = &self.model
            && original.as_ref().and_then(Value::as_str) != Some(model)
        {
            set.push(("model", Value::from(model.as_str()).to_string()));
        }
        self.body.changed(&OURS, &set)
    }
}

/// The name of a model without the known profile behind its last `@`, and that profile; real names have an `@` too.
pub(crate) fn split_profile(name: &str, library: &Library) -> Option<(String, String)> {
    let (model, profile) = name.rsplit_once('@')?;
    let is_profile = !model.is_empty() && library.profile(profile).is_some();
    is_profile.then(|| (model.to_owned(), profile.to_owned()))
}

impl From<NoObject> for ApiError {
    fn from(error: NoObject) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "invalid_body",
            format!("the body has to be a JSON object that can be passed on: {error}"),
        )
    }
}

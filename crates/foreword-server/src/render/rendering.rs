//! Makes one text: composes what a [`Subject`] asks of a library, seals it, and cuts it to its form.
//!
//! Nothing here can read more of a session than the [`Subject`] holds, so two sessions with equal subjects have equal
//! texts; the cache relies on that.

use std::sync::Arc;

use foreword_compose::{
    Composition, ContextBlock, Diagnostic, DiagnosticCode, Library, Request, SessionName,
    SessionValues, Severity, Trust, compose,
};
use jiff::{Timestamp, civil::Date, tz::TimeZone};

use crate::{
    config::Form,
    links::{ChatLinks, Links},
    session::{ChatId, Session},
    skills::SkillSet,
};

use super::{
    Extras, RenderError, Rendered, Shape, forms,
    guide::{self, Opening},
    surroundings::{README_PATH, Surroundings},
};

/// What stands for a session's values in a text that is the same for all sessions.
const KNOWN_LATER: &str = "(known at call time)";

/// Everything that a text may depend on beside the library and the tools.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Subject {
    pub(super) shape: Shape,
    /// Of the skills that it tells of.
    pub(super) skills: u64,
    pub(super) profile_id: Option<Arc<str>>,
    /// None where the text is the same for all sessions.
    pub(super) session: Option<SessionSubject>,
}

/// What a text may hold of a session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct SessionSubject {
    pub(super) chat_id: ChatId,
    pub(super) user_email: Option<Arc<str>>,
    pub(super) user_name: Option<Arc<str>>,
    date: Date,
    link_epoch: u64,
}

impl Subject {
    pub(super) fn new(
        session: &Session,
        shape: Shape,
        skills: u64,
        now: Timestamp,
        link_epoch: u64,
    ) -> Self {
        let session_subject = shape.is_of_a_session().then(|| SessionSubject {
            chat_id: session.chat_id.clone(),
            user_email: session.prompt_email().cloned(),
            user_name: session.user_name.clone(),
            date: TimeZone::UTC.to_datetime(now).date(),
            link_epoch,
        });
        Self {
            shape,
            skills,
            profile_id: session.profile_id.clone(),
            session: session_subject,
        }
    }
}

/// Everything that a text is made of beside its subject.
#[derive(Clone, Copy)]
pub(super) struct MadeOf<'a> {
    pub(super) library: &'a Library,
    pub(super) tools_prompt: &'a str,
    pub(super) skills: &'a SkillSet,
    pub(super) links: &'a Links,
    pub(super) surroundings: &'a Surroundings,
}

/// One text, fresh.
pub(super) struct Rendering {
    pub(super) composition: Composition,
    pub(super) revision: String,
    pub(super) profile_id: Option<String>,
    /// The short form, where one was asked for.
    pub(super) short: Option<String>,
    pub(super) degraded: bool,
}

impl Rendering {
    pub(super) fn new(
        made_of: MadeOf<'_>,
        subject: &Subject,
        extras: &Extras,
    ) -> Result<Self, RenderError> {
        let MadeOf {
            library,
            tools_prompt,
            skills,
            links,
            surroundings,
        } = made_of;
        let values = Values::new(subject, links);
        let opening = match subject.shape {
            Shape::Form(Form::Neutral) => Some(Opening::Neutral),
            Shape::Form(_) => Some(Opening::Identity),
            Shape::Template => Some(Opening::None),
            Shape::Bare => None,
        };
        let guide = opening.and_then(|opening| guide::block(library, surroundings, opening));
        let tools_prompt = if subject.shape.has_surroundings() {
            tools_prompt
        } else {
            ""
        };
        let context = guide
            .into_iter()
            .chain(skills_block(skills))
            .chain(extras.context.iter().enumerate().map(request_context))
            .collect();
        let request = Request {
            profile_id: subject.profile_id.as_deref(),
            session: values.by_name(),
            variables: extras.variables.clone(),
            tools_prompt: extras.tools_prompt.as_deref().unwrap_or(tools_prompt),
            context,
            system_override: extras.system_override.as_deref(),
            budget: None,
        };
        let mut composition = compose(library, &request)?;
        composition
            .diagnostics
            .extend(skills.degraded.as_deref().map(missing_skills));
        let revision = guide::seal(&mut composition, surroundings);
        let short = match subject.shape {
            Shape::Form(Form::Brief) => Some(forms::brief(&composition, &revision, surroundings)),
            Shape::Form(Form::Hint) => Some(forms::hint(&revision, surroundings)),
            Shape::Form(Form::Full | Form::Neutral) | Shape::Template | Shape::Bare => None,
        };
        let profile = match &subject.profile_id {
            Some(id) => library.profile(id),
            None => library.default_profile(),
        };
        Ok(Self {
            composition,
            revision,
            profile_id: profile.map(|profile| profile.id.clone()),
            short,
            degraded: skills.degraded.is_some(),
        })
    }

    pub(super) fn into_rendered(self) -> Rendered {
        let text = self.short.as_deref().unwrap_or(&self.composition.text);
        Rendered {
            text: text.into(),
            revision: self.revision,
            profile_id: self.profile_id,
            composition: self.composition,
            degraded: self.degraded,
        }
    }
}

/// What the skills say is other people's words: nothing in it is replaced.
fn skills_block(skills: &SkillSet) -> Option<ContextBlock<'_>> {
    (!skills.block.is_empty()).then(|| ContextBlock {
        id: "skills".into(),
        name: "Skills".into(),
        text: skills.block.as_str().into(),
        trust: Trust::Foreign,
    })
}

fn missing_skills(why: &str) -> Diagnostic {
    Diagnostic {
        code: DiagnosticCode::Degraded,
        severity: Severity::Warning,
        part: Some("skills".to_owned()),
        range: None,
        message: format!("skills may be missing: {why}"),
        hint: Some("it is tried again within seconds; `GET /api/skills` says more".to_owned()),
    }
}

fn request_context((at, text): (usize, &String)) -> ContextBlock<'_> {
    ContextBlock {
        id: format!("context-{}", at + 1).into(),
        name: "Request context".into(),
        text: text.into(),
        trust: Trust::Foreign,
    }
}

/// What the session names stand for.
enum Values<'a> {
    Session {
        session: &'a SessionSubject,
        links: ChatLinks,
        date: String,
    },
    KnownLater,
    LeftInPlace,
}

impl<'a> Values<'a> {
    fn new(subject: &'a Subject, links: &Links) -> Self {
        match (&subject.session, subject.shape) {
            (Some(session), _) => Self::Session {
                session,
                links: links.chat(
                    &session.chat_id,
                    session.user_email.as_deref(),
                    session.link_epoch,
                ),
                date: session.date.to_string(),
            },
            (None, Shape::Template) => Self::LeftInPlace,
            (None, Shape::Form(_) | Shape::Bare) => Self::KnownLater,
        }
    }

    fn by_name(&self) -> SessionValues<'_> {
        match self {
            Self::Session {
                session,
                links,
                date,
            } => SessionValues::default()
                .with(SessionName::ChatId, Some(session.chat_id.as_str()))
                .with(SessionName::UserEmail, session.user_email.as_deref())
                .with(SessionName::UserName, session.user_name.as_deref())
                .with(SessionName::FileBaseUrl, Some(&links.file_base_url))
                .with(SessionName::ArchiveUrl, Some(&links.archive_url))
                .with(SessionName::PreviewUrl, Some(&links.preview_url))
                .with(SessionName::ReadmePath, Some(README_PATH))
                .with(SessionName::Date, Some(date)),
            Self::KnownLater => SessionName::ALL
                .into_iter()
                .fold(SessionValues::default(), |values, name| {
                    values.with(name, Some(KNOWN_LATER))
                })
                .with(SessionName::ReadmePath, Some(README_PATH)),
            Self::LeftInPlace => SessionValues::default(),
        }
    }
}

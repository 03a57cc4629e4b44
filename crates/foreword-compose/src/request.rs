//! What varies from one composition to the next.

use std::borrow::Cow;

use indexmap::IndexMap;

/// Everything that a composition takes beside the library.
#[derive(Debug, Clone, Default)]
pub struct Request<'a> {
    /// The profile asked for; none means the library's default.
    pub profile_id: Option<&'a str>,
    /// The values of the session names.
    pub session: SessionValues<'a>,
    /// Values for variables that the library declares, and for session names; they win over everything else.
    pub variables: IndexMap<String, String>,
    /// The tools prompt, already made text; empty means none.
    pub tools_prompt: &'a str,
    /// Blocks that come after everything else, in this order.
    pub context: Vec<ContextBlock<'a>>,
    /// If it holds any non-blank character, it is the prompt.
    pub system_override: Option<&'a str>,
    /// Over this many bytes the composition carries a `too-long` diagnostic.
    pub budget: Option<usize>,
}

/// A piece of text that belongs to this request.
#[derive(Debug, Clone)]
pub struct ContextBlock<'a> {
    /// A stable word for explanations, such as `workspace-guide`.
    pub id: Cow<'a, str>,
    /// What people call it.
    pub name: Cow<'a, str>,
    /// The text.
    pub text: Cow<'a, str>,
    /// Whose words these are.
    pub trust: Trust,
}

/// Whether placeholders in a context block are replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// The library's own words (the workspace guide): placeholders are replaced.
    Library,
    /// Other people's words: nothing in them is replaced.
    Foreign,
}

/// The names that every library knows without declaring them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SessionName {
    /// `chat_id`
    ChatId,
    /// `user_email`
    UserEmail,
    /// `user_name`
    UserName,
    /// `file_base_url`: where the chat's output files are served, without a final slash.
    FileBaseUrl,
    /// `archive_url`
    ArchiveUrl,
    /// `preview_url`
    PreviewUrl,
    /// `readme_path`
    ReadmePath,
    /// `date`: `YYYY-MM-DD` in UTC.
    Date,
}

impl SessionName {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::ChatId,
        Self::UserEmail,
        Self::UserName,
        Self::FileBaseUrl,
        Self::ArchiveUrl,
        Self::PreviewUrl,
        Self::ReadmePath,
        Self::Date,
    ];

    /// The name as it stands between braces.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ChatId => "chat_id",
            Self::UserEmail => "user_email",
            Self::UserName => "user_name",
            Self::FileBaseUrl => "file_base_url",
            Self::ArchiveUrl => "archive_url",
            Self::PreviewUrl => "preview_url",
            Self::ReadmePath => "readme_path",
            Self::Date => "date",
        }
    }

    /// The session name that is written like this.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|name| name.as_str() == word)
    }
}

/// The values of the session names, each optional.
#[derive(Debug, Clone, Copy, Default)]
pub struct SessionValues<'a> {
    values: [Option<&'a str>; SessionName::ALL.len()],
}

impl<'a> SessionValues<'a> {
    /// The same values with one more.
    #[must_use]
    pub fn with(mut self, name: SessionName, value: Option<&'a str>) -> Self {
        self.values[name as usize] = value;
        self
    }

    /// The value of `name`.
    #[must_use]
    pub fn get(&self, name: SessionName) -> Option<&'a str> {
        self.values[name as usize]
    }
}

//! What is known of each connection now, and what it amounts to.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::{
    catalog::{Offered, Server},
    config::{Connection, ConnectionConfig, Transport},
    link::Line,
};

/// All connections, by name.
#[derive(Default)]
pub(super) struct Board {
    pub(super) entries: BTreeMap<String, Entry>,
    /// What is wrong with the file of connections as a whole.
    pub(super) errors: Vec<String>,
    next: u64,
}

/// One connection's turn on the board: one of the same name that was written anew is another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Turn {
    pub(super) name: String,
    number: u64,
}

/// What is known of one connection.
pub(super) struct Entry {
    turn: Turn,
    /// As it was written, to see whether it was written anew.
    pub(super) written: Written,
    pub(super) connection: Option<Arc<Connection>>,
    pub(super) state: ConnectionState,
    pub(super) last_error: Option<String>,
    pub(super) last_refresh: Option<Timestamp>,
    pub(super) protocol_version: Option<String>,
    /// What of it was left out, and doubts about how it is written.
    pub(super) problems: Vec<String>,
    pub(super) clashes: Vec<String>,
    pub(super) offered: Option<Arc<Offered>>,
    pub(super) line: Option<Line>,
    pub(super) stop: CancellationToken,
    /// Cancelled when nothing of it is left.
    pub(super) over: CancellationToken,
}

/// A connection as somebody wrote it.
#[derive(Debug, Clone)]
pub struct Written {
    /// What it says, or why it cannot be read.
    pub config: Result<ConnectionConfig, String>,
    /// What it says that means nothing here, or probably something else.
    pub doubts: Vec<String>,
}

/// How a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionState {
    /// It is being made.
    Connecting,
    /// Its tools can be called.
    Ready,
    /// It was lost, or could not be made, and is tried again.
    Down,
    /// It is written that it be left alone.
    Disabled,
    /// It cannot be made as it is written.
    Refused,
}

impl ConnectionState {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Connecting,
        Self::Ready,
        Self::Down,
        Self::Disabled,
        Self::Refused,
    ];

    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Ready => "ready",
            Self::Down => "down",
            Self::Disabled => "disabled",
            Self::Refused => "refused",
        }
    }
}

/// One connection, for those who want to know.
#[derive(Debug, Clone)]
pub struct ConnectionStatus {
    /// Its name.
    pub name: String,
    /// How it is.
    pub state: ConnectionState,
    /// `stdio` or `http`; none where that cannot be told.
    pub transport: Option<&'static str>,
    /// Whether its tools are handed on.
    pub exposed: bool,
    /// The revision of the protocol that is spoken.
    pub protocol_version: Option<String>,
    /// How many tools it has that are taken.
    pub tools: usize,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// When its tools were listed last.
    pub last_refresh: Option<Timestamp>,
    /// What was left out, and why.
    pub problems: Vec<String>,
}

impl Board {
    /// A new entry of `name`; whoever had the name must have been stopped.
    pub(super) fn enter(
        &mut self,
        name: &str,
        written: Written,
        read: Result<Option<Arc<Connection>>, String>,
        offered: Option<Arc<Offered>>,
        stop: CancellationToken,
        over: CancellationToken,
    ) -> Turn {
        self.next += 1;
        let turn = Turn {
            name: name.to_owned(),
            number: self.next,
        };
        let (connection, state, last_error) = match read {
            Ok(Some(connection)) => (Some(connection), ConnectionState::Connecting, None),
            Ok(None) => (None, ConnectionState::Disabled, None),
            Err(why) => (None, ConnectionState::Refused, Some(why)),
        };
        let entry = Entry {
            turn: turn.clone(),
            problems: Vec::new(),
            clashes: Vec::new(),
            written,
            connection,
            state,
            last_error,
            last_refresh: None,
            protocol_version: None,
            offered,
            line: None,
            stop,
            over,
        };
        self.entries.insert(name.to_owned(), entry);
        turn
    }

    /// The entry, if it is still its turn.
    pub(super) fn of(&mut self, turn: &Turn) -> Option<&mut Entry> {
        let entry = self.entries.get_mut(&turn.name)?;
        (entry.turn == *turn).then_some(entry)
    }

    /// The servers that have something to offer.
    pub(super) fn servers(&self) -> Vec<Server> {
        let servers = self.entries.iter().filter_map(|(name, entry)| {
            let (offered, connection) = (entry.offered.clone()?, entry.connection.as_ref()?);
            Some(Server {
                name: name.clone(),
                offered,
                expose: connection.expose,
                instructions: connection.instructions,
            })
        });
        servers.collect()
    }

    pub(super) fn statuses(&self) -> Vec<ConnectionStatus> {
        self.entries
            .iter()
            .map(|(name, entry)| ConnectionStatus {
                name: name.clone(),
                state: entry.state,
                transport: entry.transport(),
                exposed: entry.is_exposed(),
                protocol_version: entry.protocol_version.clone(),
                tools: entry
                    .offered
                    .as_ref()
                    .map_or(0, |offered| offered.tools.len()),
                last_error: entry.last_error.clone(),
                last_refresh: entry.last_refresh,
                problems: [&entry.written.doubts, &entry.problems, &entry.clashes]
                    .into_iter()
                    .flatten()
                    .cloned()
                    .collect(),
            })
            .collect()
    }
}

impl Entry {
    fn transport(&self) -> Option<&'static str> {
        if let Some(connection) = &self.connection {
            return Some(match &connection.transport {
                Transport::Stdio(_) => "stdio",
                Transport::Http(_) => "http",
            });
        }
        let config = self.written.config.as_ref().ok()?;
        match (&config.command, &config.url) {
            (Some(_), None) => Some("stdio"),
            (None, Some(_)) => Some("http"),
            _ => None,
        }
    }

    fn is_exposed(&self) -> bool {
        let config = self.written.config.as_ref();
        config.is_ok_and(|config| config.expose)
    }
}

impl Written {
    /// Whether both are of one server, whatever else they say.
    pub(super) fn is_of_the_same(&self, other: &Self) -> bool {
        let (Ok(one), Ok(other)) = (&self.config, &other.config) else {
            return false;
        };
        one.command == other.command && one.args == other.args && one.url == other.url
    }

    /// Whether both say the same.
    pub(super) fn says_the_same(&self, other: &Self) -> bool {
        let plain = |written: &Self| match &written.config {
            Ok(config) => serde_json::to_value(config).map_err(|error| error.to_string()),
            Err(why) => Err(why.clone()),
        };
        plain(self) == plain(other) && self.doubts == other.doubts
    }
}

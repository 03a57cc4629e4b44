//! `connections.json`: the `mcpServers` block as other clients have it, read again whenever it changes.
//!
//! No route writes it, since that would be running commands. A file that cannot be read changes nothing; a single
//! server that cannot be is shown as refused, and the others go on.

use std::{
    collections::BTreeMap,
    fs, io,
    path::Path,
    time::{Duration, SystemTime},
};

use foreword_compose::{nearest, one_line};
use serde_json::{Map, Value};

use super::{
    board::Written,
    config::{ConnectionConfig, MAX_CONNECTIONS},
};

/// How often the file is looked at.
pub(super) const LOOK: Duration = Duration::from_secs(1);

/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The key of the block.
const BLOCK: &str = "mcpServers";

/// Two equal stamps, and the file was not written in between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stamp(Option<(u64, Option<SystemTime>)>);

impl Stamp {
    pub(super) fn is_of_nothing(&self) -> bool {
        self.0.is_none()
    }

    pub(super) fn of(path: &Path) -> Self {
        let metadata = fs::metadata(path).ok();
        Self(metadata.map(|metadata| (metadata.len(), metadata.modified().ok())))
    }
}

/// The servers that the file names; none where there is no file.
pub(super) fn read(path: &Path) -> Result<BTreeMap<String, Written>, String> {
    let file = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let text = match fs::metadata(path) {
        Ok(metadata) if metadata.len() > MAX_BYTES => {
            return Err(format!("`{file}` has more than {MAX_BYTES} bytes"));
        }
        Ok(_) => fs::read_to_string(path),
        Err(error) => Err(error),
    };
    match text {
        Ok(text) => parse(&text).map_err(|why| format!("`{file}`: {why}")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeMap::new()),
        Err(error) => Err(format!("`{file}` cannot be read: {error}")),
    }
}

/// Reads the text of such a file.
pub(super) fn parse(text: &str) -> Result<BTreeMap<String, Written>, String> {
    // Editors of other systems begin a file so.
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let document: Value =
        serde_json::from_str(text).map_err(|error| format!("no valid JSON: {error}"))?;
    let Some(servers) = document.get(BLOCK) else {
        let instead = ["servers", "mcp_servers", "mcpservers", "mcp"];
        let found = instead.iter().find(|key| document.get(**key).is_some());
        return Err(match found {
            Some(found) => format!("it has `{found}`, but what is read is `{BLOCK}`: rename it"),
            None => format!("it has no `{BLOCK}`, an object of servers by name"),
        });
    };
    let Some(servers) = servers.as_object() else {
        return Err(format!("`{BLOCK}` has to be an object of servers by name"));
    };
    if servers.len() > MAX_CONNECTIONS {
        return Err(format!("`{BLOCK}` has more than {MAX_CONNECTIONS} servers"));
    }
    Ok(servers
        .iter()
        .map(|(name, server)| (name.clone(), server_of(server)))
        .collect())
}

/// What other clients write that means nothing here, or nothing more.
const OF_OTHERS: &[&str] = &[
    "alwaysAllow",
    "autoApprove",
    "description",
    "type",
    "transport",
];

/// Calls that may take so long are doubted, in seconds.
const LONG: u64 = 2 * 60 * 60;

fn server_of(server: &Value) -> Written {
    let Some(fields) = server.as_object() else {
        return refused("it has to be an object");
    };
    let kind = ["type", "transport"]
        .iter()
        .find_map(|key| fields.get(*key)?.as_str());
    if kind.is_some_and(|kind| kind.eq_ignore_ascii_case("sse")) {
        return refused(
            "servers of the older HTTP+SSE transport are not spoken to: give the URL of its Streamable HTTP endpoint (often \
             `/mcp`), with `\"type\": \"http\"`, or put a bridge such as mcp-remote in front of it",
        );
    }
    // What would leave something out must not be passed over.
    if let Some(key) = ["disabledTools", "excludeTools"].iter().find(|key| {
        fields
            .get(**key)
            .is_some_and(|named| *named != Value::Array(Vec::new()))
    }) {
        return refused(&format!(
            "`{key}` is not read: list in `tools` those to take"
        ));
    }
    let mut fields = fields.clone();
    if fields.remove("enabled") == Some(Value::Bool(false)) {
        fields.insert("disabled".to_owned(), Value::Bool(true));
    }
    let (known, unknown): (Map<_, _>, Map<_, _>) = fields
        .into_iter()
        .partition(|(key, _)| keys().contains(&key.as_str()));
    let doubts = unknown
        .keys()
        .filter(|key| !OF_OTHERS.contains(&key.as_str()))
        .map(|key| match nearest(key, keys()) {
            Some(known) => format!(
                "`{}` is not known and has no effect; did you mean `{known}`?",
                one_line(key, 64)
            ),
            None => format!("`{}` is not known and has no effect", one_line(key, 64)),
        });
    let mut doubts: Vec<String> = doubts.collect();
    let config = serde_path_to_error::deserialize::<_, ConnectionConfig>(&Value::Object(known));
    let config = config.map_err(|error| {
        let path = error.path().to_string();
        // What was found instead may be a secret.
        let what = error.into_inner().to_string();
        let what = match what.rsplit_once(", expected") {
            Some((_, expected)) => format!("expected{expected}"),
            None => what,
        };
        let what = what
            .replace("a sequence", "a list")
            .replace("a map", "an object")
            .replace("u64", "a whole number");
        format!("`{path}`: {what}")
    });
    // Others count in milliseconds.
    if let Ok(config) = &config
        && config.timeout >= LONG
    {
        let hours = config.timeout / 3600;
        doubts.push(format!(
            "`timeout` is in seconds, so a call may take {hours} hours"
        ));
    }
    Written { config, doubts }
}

fn refused(why: &str) -> Written {
    Written {
        config: Err(why.to_owned()),
        doubts: Vec::new(),
    }
}

/// The keys that mean something here.
fn keys() -> Vec<&'static str> {
    vec![
        "command",
        "args",
        "env",
        "cwd",
        "url",
        "serverUrl",
        "httpUrl",
        "headers",
        "disabled",
        "tools",
        "instructions",
        "expose",
        "timeout",
        "refresh",
        "profiles",
        "users",
    ]
}

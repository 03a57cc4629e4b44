//! The configuration: all sections in one struct, and how its values are found.
//!
//! Defaults, then `foreword.toml`, then the environment, then flags; later ones win, value by value. Each value keeps
//! its [`Origin`], so that a mistake names the place where it was made and `foreword config` can tell where a value
//! comes from. What exists, of which type, with which default and description, is read off the structs ([`shape`]);
//! which other names a setting has stands in one table ([`names`]). Parsing, the reference page and the JSON schema
//! all come from these two.
//!
//! Deliberately absent: what a setting means. Each crate owns its section.

mod auth;
mod environment;
mod file;
mod layer;
pub(crate) mod names;
pub(crate) mod reference;
mod secret_file;
pub(crate) mod shape;
pub(crate) mod show;

use std::{
    collections::{BTreeMap, HashMap},
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
};

use foreword_sandbox::SandboxConfig;
use foreword_server::{
    ServerConfig,
    chat::ChatConfig,
    config::{
        DeliveryConfig, HttpConfig, LinksConfig, RenderConfig, SessionConfig, ToolsPromptConfig,
        UploadsConfig, WorkspaceConfig,
    },
    connections::ConnectionConfig,
    skills::SkillsConfig,
};
use foreword_store::StoreConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::layer::Origin;
use self::{auth::AuthSettings, layer::Merged};
use crate::failure::{Exit, Failure};

/// Everything that can be configured.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(title = "foreword.toml")]
pub(crate) struct Config {
    /// Where the library, its history, the link key and the chats' files are kept; made on first use.
    pub(crate) data_dir: PathBuf,
    /// The one source of every URL that a browser sees; may have a path. Derived from the listening address if unset.
    pub(crate) public_base_url: Option<String>,
    /// Listening, hosts, origins, limits.
    pub(crate) http: HttpConfig,
    /// Keys.
    pub(crate) auth: AuthSettings,
    /// How a session is read from a request.
    pub(crate) session: SessionConfig,
    /// The prompt library.
    pub(crate) library: StoreConfig,
    /// The renderer and its cache.
    pub(crate) render: RenderConfig,
    /// The delivery tiers.
    pub(crate) delivery: DeliveryConfig,
    /// Capability links.
    pub(crate) links: LinksConfig,
    /// Chats' files and how long they are kept.
    pub(crate) workspace: WorkspaceConfig,
    /// What users upload.
    pub(crate) uploads: UploadsConfig,
    /// Where commands run.
    pub(crate) sandbox: SandboxConfig,
    /// What the tools prompt shows.
    pub(crate) tools_prompt: ToolsPromptConfig,
    /// Skills.
    pub(crate) skills: SkillsConfig,
    /// Chat endpoints for clients that speak no MCP.
    pub(crate) chat: ChatConfig,
    /// MCP servers to connect to, beside those of `connections.json` in the data directory, which has them as other clients do.
    pub(crate) connections: BTreeMap<String, ConnectionConfig>,
    /// What is logged, and how.
    pub(crate) log: LogConfig,
}

impl Default for Config {
    fn default() -> Self {
        let ServerConfig {
            public_base_url,
            http,
            auth: _,
            session,
            render,
            delivery,
            links,
            workspace,
            uploads,
            tools_prompt,
            skills,
            chat,
            connections,
        } = ServerConfig::default();
        Self {
            data_dir: PathBuf::from("./data"),
            public_base_url,
            http,
            auth: AuthSettings::default(),
            session,
            library: StoreConfig::default(),
            render,
            delivery,
            links,
            workspace,
            uploads,
            sandbox: SandboxConfig::default(),
            tools_prompt,
            skills,
            chat,
            connections,
            log: LogConfig::default(),
        }
    }
}

impl Config {
    /// The sections that the server reads.
    pub(crate) fn server(&self) -> ServerConfig {
        ServerConfig {
            public_base_url: self.public_base_url.clone(),
            http: self.http.clone(),
            auth: self.auth.merged(),
            session: self.session.clone(),
            render: self.render.clone(),
            delivery: self.delivery.clone(),
            links: self.links.clone(),
            workspace: self.workspace.clone(),
            uploads: self.uploads.clone(),
            chat: self.chat.clone(),
            tools_prompt: self.tools_prompt.clone(),
            skills: self.skills.clone(),
            connections: self.connections.clone(),
        }
    }
}

/// What is logged, and how (`[log]`).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LogConfig {
    /// `error`, `warn`, `info`, `debug` or `trace`, or directives by module, such as `info,foreword_store=debug`.
    pub(crate) level: String,
    /// Lines for people, or one JSON object a line.
    pub(crate) format: LogFormat,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            level: "info".to_owned(),
            format: LogFormat::Text,
        }
    }
}

/// How log lines look.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// Lines for people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// The name of the file, where no flag names one.
pub(crate) const FILE: &str = "foreword.toml";

/// Where values may come from.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sources {
    /// `--config`: this file and no other.
    pub(crate) file: Option<PathBuf>,
    /// The environment of the process.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// What flags say: the key's path, the value, the flag.
    pub(crate) flags: Vec<(&'static str, Value, &'static str)>,
    /// What is the default for this command only: the key's path, the value, the reason.
    pub(crate) command_defaults: Vec<(&'static str, Value, &'static str)>,
}

/// The configuration in force, and how it came about.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// The values.
    pub(crate) config: Config,
    /// Where each value that is not a default comes from, by path.
    pub(crate) origins: HashMap<String, Origin>,
    /// The file that was read, if there was one.
    pub(crate) file: Option<PathBuf>,
    /// What the operator should know.
    pub(crate) warnings: Vec<String>,
    /// The environment of the process.
    pub(crate) environment: Vec<(OsString, OsString)>,
}

/// One mistake in the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mistake {
    /// Where it was made.
    pub(crate) origin: Option<Origin>,
    /// What is wrong.
    pub(crate) message: String,
    /// What to do about it.
    pub(crate) hint: Option<String>,
}

impl fmt::Display for Mistake {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(origin) = &self.origin {
            write!(formatter, "{origin}: ")?;
        }
        formatter.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(formatter, "; {hint}"),
            None => Ok(()),
        }
    }
}

/// Finds all values and checks their types; every mistake is reported, not only the first.
pub(crate) fn load(sources: &Sources) -> Result<Loaded, Failure> {
    let mut layers = vec![layer::of_values(&sources.command_defaults, |reason| {
        Origin::CommandDefault(reason)
    })];
    let file = file::find(sources.file.as_deref(), &sources.environment)?;
    if let Some(path) = &file {
        layers.push(file::read(path)?);
    }
    layers.push(environment::read(&sources.environment));
    layers.push(layer::of_values(&sources.flags, Origin::Flag));

    let Merged {
        mut tree,
        origins,
        mut mistakes,
        warnings,
    } = layer::merge(layers);
    name_loopback(&mut tree);
    let config = deserialize(tree, &origins, &mut mistakes);
    if mistakes.is_empty() {
        Ok(Loaded {
            config,
            origins,
            file,
            warnings,
            environment: sources.environment.clone(),
        })
    } else {
        Err(failure(mistakes))
    }
}

/// Takes `localhost` for the loopback address that it stands for on every machine; other names are not looked up.
fn name_loopback(tree: &mut Value) {
    let Some(listen) = tree.pointer_mut("/http/listen") else {
        return;
    };
    if let Some(port) = listen
        .as_str()
        .and_then(|text| text.strip_prefix("localhost:"))
    {
        *listen = format!("127.0.0.1:{port}").into();
    }
}

/// Makes the struct; a value that it refuses is noted with its origin and left out, until what remains is accepted.
fn deserialize(
    mut tree: Value,
    origins: &HashMap<String, Origin>,
    mistakes: &mut Vec<Mistake>,
) -> Config {
    loop {
        let error = match serde_path_to_error::deserialize::<_, Config>(&tree) {
            Ok(config) => return config,
            Err(error) => error,
        };
        let path = error.path().to_string();
        let what = error.into_inner().to_string();
        // What is missing may be missing because of a mistake that is known already.
        if mistakes.is_empty() || !what.starts_with("missing field") {
            mistakes.push(Mistake {
                origin: layer::nearest_origin(origins, &path).cloned(),
                message: match what.as_str() {
                    "invalid socket address syntax" => {
                        format!(
                            "`{path}` has to be an address with a port, such as `127.0.0.1:8081`"
                        )
                    }
                    what => format!("`{path}`: {what}"),
                },
                hint: None,
            });
        }
        if !layer::remove(&mut tree, &path) {
            return Config::default();
        }
    }
}

fn failure(mut mistakes: Vec<Mistake>) -> Failure {
    // Those of the file by their lines, then the others as they were found.
    mistakes.sort_by_key(|mistake| match mistake.origin {
        Some(Origin::File { line, column, .. }) => (0, line, column),
        _ => (1, 0, 0),
    });
    let lines: Vec<String> = mistakes.iter().map(Mistake::to_string).collect();
    Failure::new(Exit::Unusable, lines.join("\n"))
        .hint("`foreword config --reference` lists every setting")
}

/// The path of a key below `parent`.
fn join(parent: &str, key: &str) -> String {
    if parent.is_empty() {
        key.to_owned()
    } else {
        format!("{parent}.{key}")
    }
}

/// A variable's value, where it is set and not empty.
pub(crate) fn variable<'a>(
    environment: &'a [(OsString, OsString)],
    name: &str,
) -> Option<&'a Path> {
    environment
        .iter()
        .find(|(key, value)| key == name && !value.is_empty())
        .map(|(_, value)| Path::new(value))
}

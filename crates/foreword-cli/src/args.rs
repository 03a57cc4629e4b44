//! The command line: what can be typed. What it does stands in `commands/`.

#![expect(
    clippy::doc_markdown,
    reason = "these comments are printed by `--help`, where backticks would stand as they are"
)]

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, Parser, Subcommand};
use foreword_compose::SectionType;
use serde_json::{Value, json};

use crate::config::{LogFormat, Sources};

/// One system prompt, composed once, delivered everywhere.
///
/// Without a command, `foreword` is `foreword serve`.
#[derive(Debug, Parser)]
#[command(name = "foreword", version)]
#[command(after_help = EXIT_CODES, after_long_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(flatten)]
    pub(crate) serving: Serving,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  not done; or `check` found errors
  2  not started: the command line, the configuration or the library cannot be used as it is";

const EXAMPLES: &str = "\
Examples:
  foreword                                   serve on 127.0.0.1:8081 with data in ./data
  FOREWORD_API_KEY=… foreword --listen 0.0.0.0:8081
                                             serve a network, with a key
  foreword init                              write a library and a configuration to start from
  foreword check                             all mistakes of the library, with their lines
  foreword compose --profile developer --explain
                                             what a prompt is made of, part by part
  foreword sections set safety < safety.md   write a shared section
  foreword undo                              take the last edit back

Exit codes:
  0  done
  1  not done; or `check` found errors
  2  not started: the command line, the configuration or the library cannot be used as it is";

/// What the options that every command understands stand under.
const GLOBAL: &str = "Global options";

/// What every command understands.
#[derive(Debug, Clone, Args)]
pub(crate) struct Common {
    /// Read this configuration file [default: ./foreword.toml, else the one in $XDG_CONFIG_HOME/foreword]
    #[arg(long, global = true, value_name = "FILE", help_heading = GLOBAL)]
    config: Option<PathBuf>,
    /// Keep the library and its history here [default: ./data]
    #[arg(long, global = true, value_name = "DIRECTORY", help_heading = GLOBAL)]
    data: Option<String>,
    /// How log lines on stderr look [default: text]
    #[arg(long, global = true, value_name = "FORMAT", help_heading = GLOBAL)]
    log_format: Option<LogFormat>,
}

/// What commands understand that serve, or say how serving would be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub(crate) struct Serving {
    /// Listen here; localhost is 127.0.0.1, port 0 takes a free one, which is printed [default: 127.0.0.1:8081]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// Where commands run: auto, namespace, docker or none [default: auto]
    #[arg(long, value_name = "BACKEND")]
    sandbox: Option<String>,
    /// Serve addresses beyond this machine although no key is set
    #[arg(long)]
    pub(crate) allow_unauthenticated: bool,
}

impl Serving {
    /// The part of it that a server on stdin and stdout has.
    pub(crate) fn with_sandbox(sandbox: Option<String>) -> Self {
        Self {
            sandbox,
            ..Self::default()
        }
    }
}

impl Common {
    /// Where the configuration may come from, for a command that is given these flags.
    pub(crate) fn sources(&self, serving: Option<&Serving>) -> Sources {
        let mut flags: Vec<(&'static str, Value, &'static str)> = Vec::new();
        if let Some(data) = &self.data {
            flags.push(("data_dir", json!(data), "--data"));
        }
        if let Some(format) = self.log_format {
            flags.push(("log.format", json!(format), "--log-format"));
        }
        if let Some(listen) = serving.and_then(|serving| serving.listen.as_ref()) {
            flags.push(("http.listen", json!(listen), "--listen"));
        }
        if let Some(sandbox) = serving.and_then(|serving| serving.sandbox.as_ref()) {
            flags.push(("sandbox.backend", json!(sandbox), "--sandbox"));
        }
        Sources {
            file: self.config.clone(),
            environment: std::env::vars_os().collect::<Vec<(OsString, OsString)>>(),
            flags,
            command_defaults: Vec::new(),
        }
    }
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve MCP, REST and pages (the default)
    Serve(Serving),
    /// Serve MCP on stdin and stdout, for one session
    ///
    /// Data is kept in $XDG_DATA_HOME/foreword unless the configuration or --data says otherwise. Logs go to stderr.
    Stdio {
        /// The chat id [default: made of the working directory's name and path]
        #[arg(long, value_name = "ID")]
        chat: Option<String>,
        /// Where commands run: auto, namespace, docker or none [default: auto]
        #[arg(long, value_name = "BACKEND")]
        sandbox: Option<String>,
    },
    /// List, show and change profiles
    #[command(subcommand, visible_alias = "profile")]
    Profiles(ProfilesCommand),
    /// List, show and change sections, shared ones and those of a profile
    #[command(subcommand, visible_alias = "section")]
    Sections(SectionsCommand),
    /// Show and change the global prompt
    #[command(subcommand)]
    Global(TextCommand),
    /// Show and change the workspace guide
    #[command(subcommand)]
    Guide(TextCommand),
    /// List and change variables
    #[command(subcommand, visible_alias = "variable")]
    Variables(VariablesCommand),
    /// Take the last edit of the library back
    Undo,
    /// Find the directories of users' skills
    #[command(subcommand)]
    Skills(SkillsCommand),
    /// Manage capability links
    #[command(subcommand)]
    Links(LinksCommand),
    /// Print a composed prompt
    ///
    /// With --chat it is exactly what every tier delivers to that chat; without, what the library alone gives. Into a
    /// file or a pipe the prompt is written byte for byte; on a terminal a line break follows it.
    Compose(Composing),
    /// Print all mistakes of a library, as file:line:column
    ///
    /// Errors make the exit code 1; warnings and notes do not. Without FILE, what would keep `serve` from starting on the
    /// data directory is said too, with exit code 2.
    Check {
        /// The file [default: the library of the data directory]
        file: Option<PathBuf>,
        #[command(flatten)]
        output: Output,
    },
    /// Write a commented library and configuration; never overwrites
    Init,
    /// Replace the whole library by a file, after showing the difference
    Import {
        /// The YAML file, or - for stdin
        file: PathBuf,
        /// Only show the difference
        #[arg(long)]
        dry_run: bool,
        /// Replace a library that cannot be read; the old file is kept beside the new one
        #[arg(long)]
        replace_broken: bool,
    },
    /// Print the whole library as YAML
    Export,
    /// Say what works here and what to do about the rest
    Doctor {
        #[command(flatten)]
        serving: Serving,
        #[command(flatten)]
        output: Output,
    },
    /// Print the configuration in force and where each value comes from
    Config {
        #[command(flatten)]
        serving: Serving,
        #[command(flatten)]
        output: Output,
        /// Print the reference page of all settings instead
        #[arg(long, conflicts_with_all = ["json", "schema"])]
        reference: bool,
        /// Print the JSON schema of foreword.toml instead
        #[arg(long, conflicts_with = "json")]
        schema: bool,
    },
    /// Print a completion script for a shell
    #[command(
        after_help = "Example:\n  foreword completions bash > ~/.local/share/bash-completion/completions/foreword"
    )]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// How a command prints.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Output {
    /// Print JSON, for scripts
    #[arg(long)]
    pub(crate) json: bool,
}

/// What is composed.
#[derive(Debug, Args)]
pub(crate) struct Composing {
    /// The profile [default: the library's default profile]
    #[arg(long, value_name = "ID")]
    pub(crate) profile: Option<String>,
    /// The chat to render for
    #[arg(long, value_name = "ID")]
    pub(crate) chat: Option<String>,
    /// The user to render for
    #[arg(long, value_name = "E-MAIL", requires = "chat")]
    pub(crate) email: Option<String>,
    /// Show part by part where it comes from, and how long it is
    #[arg(long)]
    pub(crate) explain: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// Where a text comes from.
#[derive(Debug, Clone, Args)]
#[group(multiple = false)]
pub(crate) struct Content {
    /// The text itself
    #[arg(long, value_name = "TEXT")]
    pub(crate) content: Option<String>,
    /// Read the text from this file, or - for stdin
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

/// `foreword profiles …`
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  foreword profiles set writer --name Writer --description 'Edits prose'
  foreword sections set safety --profile writer
  foreword profiles default writer")]
pub(crate) enum ProfilesCommand {
    /// List the profiles
    #[command(visible_alias = "ls")]
    List {
        #[command(flatten)]
        output: Output,
    },
    /// Show a profile and its sections
    Show {
        /// The profile
        id: String,
        #[command(flatten)]
        output: Output,
    },
    /// Make a profile, or change the given fields of one
    Set {
        /// The profile
        id: String,
        /// What people call it
        #[arg(long)]
        name: Option<String>,
        /// A note for people; an empty one removes it
        #[arg(long)]
        description: Option<String>,
        /// Whether the tools prompt is part of it
        #[arg(long, value_name = "BOOL")]
        tools_prompt: Option<bool>,
    },
    /// Make a profile the default
    Default {
        /// The profile
        id: String,
    },
    /// Put all sections of a profile into a new order
    Order {
        /// The profile
        id: String,
        /// All its sections, each once
        #[arg(required = true)]
        sections: Vec<String>,
    },
    /// Delete a profile
    #[command(visible_alias = "rm")]
    Delete {
        /// The profile
        id: String,
    },
}

/// `foreword sections …`
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  foreword sections set safety --type constraints < safety.md
  foreword sections set identity --profile developer --content 'You are an engineer.'
  foreword sections disable safety --profile developer")]
pub(crate) enum SectionsCommand {
    /// List all sections, or those of a profile in their order
    #[command(visible_alias = "ls")]
    List {
        /// Only of this profile
        #[arg(long, value_name = "ID")]
        profile: Option<String>,
        #[command(flatten)]
        output: Output,
    },
    /// Print a section's text
    Show {
        /// The section
        id: String,
        /// The profile, for a section that is written in it
        #[arg(long, value_name = "ID")]
        profile: Option<String>,
        #[command(flatten)]
        output: Output,
    },
    /// Make a section, or change the given fields of one; without --profile a shared one
    ///
    /// The text is taken from --content, --file, or stdin where that is not a terminal and no other field is given.
    Set {
        /// The section
        id: String,
        /// Write it in this profile; a shared one is put there, or gets its order and priority there
        #[arg(long, value_name = "ID")]
        profile: Option<String>,
        #[command(flatten)]
        content: Content,
        /// What people call it
        #[arg(long)]
        name: Option<String>,
        /// persona, task, format, constraints, examples, context or custom
        #[arg(long = "type", value_name = "TYPE")]
        section_type: Option<SectionType>,
        /// A note for authors, of a shared section; an empty one removes it
        #[arg(long, conflicts_with = "profile")]
        description: Option<String>,
        /// Where it stands in the profile, ascending
        #[arg(long, requires = "profile", allow_negative_numbers = true)]
        order: Option<i64>,
        /// Higher goes first where a short form has no room for everything
        #[arg(long, requires = "profile", allow_negative_numbers = true)]
        priority: Option<i64>,
    },
    /// Switch a section on in a profile
    Enable(InProfile),
    /// Switch a section off in a profile
    Disable(InProfile),
    /// Delete a shared section, or take a section out of a profile
    #[command(visible_alias = "rm")]
    Delete {
        /// The section
        id: String,
        /// The profile to take it out of
        #[arg(long, value_name = "ID")]
        profile: Option<String>,
    },
}

/// A section of a profile.
#[derive(Debug, Args)]
pub(crate) struct InProfile {
    /// The section
    pub(crate) id: String,
    /// The profile [default: the library's default profile]
    #[arg(long, value_name = "ID")]
    pub(crate) profile: Option<String>,
}

/// `foreword global …` and `foreword guide …`
#[derive(Debug, Subcommand)]
pub(crate) enum TextCommand {
    /// Print the text
    Show {
        #[command(flatten)]
        output: Output,
    },
    /// Replace the text, by --content, --file or stdin
    Set {
        #[command(flatten)]
        content: Content,
    },
    /// Make it part of prompts
    Enable,
    /// Leave it out of prompts; the text stays
    Disable,
}

/// `foreword variables …`
#[derive(Debug, Subcommand)]
pub(crate) enum VariablesCommand {
    /// List the variables with their default values
    #[command(visible_alias = "ls")]
    List {
        #[command(flatten)]
        output: Output,
    },
    /// Declare a variable, or change its default value
    Set {
        /// The name
        name: String,
        /// The default value
        value: String,
    },
    /// Remove a variable
    #[command(visible_alias = "rm")]
    Delete {
        /// The name
        name: String,
    },
}

/// `foreword skills …`
#[derive(Debug, Subcommand)]
pub(crate) enum SkillsCommand {
    /// Print the directory of a user's own skills, which need not exist yet
    Path {
        /// The user's e-mail address
        #[arg(value_name = "EMAIL")]
        email: String,
    },
}

/// `foreword links …`
#[derive(Debug, Subcommand)]
pub(crate) enum LinksCommand {
    /// Make a new link key: every link handed out before stops working
    Rotate,
}

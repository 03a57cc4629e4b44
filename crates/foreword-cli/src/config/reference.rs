//! The reference page and the JSON schema, made from the same structs and names that are read.

use serde_json::{Value, json};

use super::{
    Config, environment,
    names::{FLAGS, NOT_YET, SHORT, Writing},
    shape::{Setting, Shape, Table, root},
    show::toml,
};

/// The reference page in Markdown.
pub(crate) fn page() -> String {
    let mut page = vec![INTRODUCTION.to_owned()];
    let (sections, top): (Vec<_>, Vec<_>) = root()
        .iter()
        .partition(|(_, setting)| matches!(setting.shape, Shape::Table(_)));
    section(&mut page, "Outside of sections", "", top);
    for (name, setting) in sections {
        if let Shape::Table(table) = &setting.shape {
            let heading = format!("`[{name}]`: {}", sentence(&setting.description));
            section(&mut page, &heading, name, table);
        }
    }
    names(&mut page);
    page.concat()
}

/// The JSON schema of `foreword.toml`, for editors.
pub(crate) fn schema() -> Value {
    let mut schema = schemars::schema_for!(Config).to_value();
    if let Some(definitions) = schema["$defs"].as_object_mut() {
        definitions.values_mut().for_each(add_file_twins);
        definitions["Secret"]["description"] = "A secret; it is never shown.".into();
    }
    schema
}

/// A `foreword.toml` to start from: every setting with its meaning, switched off, at its default.
pub(crate) fn example() -> String {
    let mut example = vec![EXAMPLE_HEAD.to_owned()];
    let (sections, top): (Vec<_>, Vec<_>) = root()
        .iter()
        .partition(|(_, setting)| matches!(setting.shape, Shape::Table(_)));
    let (named, top): (Vec<_>, Vec<_>) = top
        .into_iter()
        .partition(|(_, setting)| matches!(setting.shape, Shape::Named(_)));
    for (key, setting) in top {
        example.push(example_setting("", key, setting));
    }
    for (name, setting) in sections.into_iter().chain(named) {
        match &setting.shape {
            Shape::Table(table) => example_section(&mut example, name, &setting.description, table),
            Shape::Named(table) => example_named(&mut example, name, &setting.description, table),
            _ => {}
        }
    }
    example.concat()
}

/// Two of the sections that operators name: of a program, and of a server on the network.
fn example_named(example: &mut Vec<String>, name: &str, description: &str, table: &Table) {
    example.push(format!("\n# {description}\n"));
    for (section, of_network) in [("files", false), ("search", true)] {
        example.push(format!("# [{name}.{section}]{EXAMPLE}\n"));
        let fields = table
            .iter()
            .filter(|(field, _)| ["url", "headers"].contains(&field.as_str()) == of_network);
        for (field, setting) in fields {
            let lines = example_setting(name, field, setting);
            let has_example = lines.trim_end().ends_with(EXAMPLE);
            for line in lines.lines() {
                let is_default =
                    line.starts_with(&format!("# {field} = ")) && !line.ends_with(EXAMPLE);
                match (is_default, has_example) {
                    (true, true) => {}
                    (true, false) => example.push(format!("{line}{EXAMPLE}\n")),
                    (false, _) => example.push(format!("{line}\n")),
                }
            }
        }
    }
}

/// A section with its settings, then the lists and sections in it: whatever follows one of those belongs to it.
fn example_section(example: &mut Vec<String>, name: &str, description: &str, table: &Table) {
    example.push(format!("\n# {description}\n[{name}]\n"));
    let mut inner = Vec::new();
    for (key, setting) in table {
        match setting.shape {
            Shape::Tables(_) | Shape::Table(_) => inner.push((super::join(name, key), setting)),
            _ => example.push(example_setting(name, key, setting)),
        }
    }
    for (path, setting) in inner {
        let description = &setting.description;
        match &setting.shape {
            Shape::Tables(table) => {
                example.push(format!("\n# {description}\n# [[{path}]]{EXAMPLE}\n"));
                for (field, setting) in table {
                    example.push(example_setting(&path, field, setting));
                }
            }
            Shape::Table(table) => example_section(example, &path, description, table),
            _ => {}
        }
    }
}

const EXAMPLE_HEAD: &str = "\
# The configuration of Foreword. Every setting is here at its default, or, where it has none, with an example; take the
# `#` before the setting away to change one. `foreword config` shows what is in force and where it comes from.

";

/// Marks a line that shows a value other than the default.
const EXAMPLE: &str = "  # an example";

/// What settings look like whose default does not show it, as TOML. A test tries all of them. Keys are short ones, so that
/// a start warns of a key that was left as it stands here.
const EXAMPLES: &[(&str, &str)] = &[
    ("public_base_url", "\"https://foreword.example\""),
    ("http.allowed_hosts", "[\"foreword\", \"gateway:9000\"]"),
    ("http.cors_origins", "[\"https://chat.example\"]"),
    ("auth.api_keys", "[\"replace-me\"]"),
    ("auth.admin_keys", "[\"replace-me-2\"]"),
    ("auth.keys.name", "\"gateway\""),
    ("auth.keys.key", "\"replace-me-3\""),
    ("auth.keys.role", "\"api\""),
    ("auth.keys.instructions", "\"brief\""),
    ("skills.provider.url", "\"https://skills.example\""),
    ("skills.provider.key", "\"replace-me-4\""),
    ("chat.default_model", "\"gpt-5\""),
    ("chat.upstream.base_url", "\"https://api.openai.com/v1\""),
    ("chat.upstream.api_key", "\"replace-me-5\""),
    ("chat.anthropic.base_url", "\"https://api.anthropic.com\""),
    ("chat.anthropic.api_key", "\"replace-me-6\""),
    ("connections.command", "\"npx\""),
    (
        "connections.args",
        "[\"-y\", \"@modelcontextprotocol/server-filesystem\", \"/srv/files\"]",
    ),
    ("connections.env", "{ TOKEN = \"${FILES_TOKEN}\" }"),
    ("connections.cwd", "\"/srv\""),
    ("connections.url", "\"https://search.example/mcp\""),
    (
        "connections.headers",
        "{ Authorization = \"Bearer ${SEARCH_TOKEN}\" }",
    ),
    ("connections.tools", "[\"read_file\", \"list_directory\"]"),
    ("connections.profiles", "[\"developer\"]"),
    ("connections.users", "[\"*@example.com\"]"),
    ("sandbox.rootfs", "\"/srv/workspace-rootfs\""),
    ("sandbox.docker.host", "\"tcp://engine.example:2376\""),
    ("sandbox.docker.cert_path", "\"/etc/foreword/docker\""),
    ("sandbox.docker.host_data_dir", "\"/srv/foreword\""),
    ("sandbox.docker.program", "\"/opt/foreword/foreword-linux\""),
];

/// A setting with its meaning, its default or an example, and the words that may stand there.
fn example_setting(parent: &str, key: &str, setting: &Setting) -> String {
    let path = super::join(parent, key);
    let mut lines = vec![format!("# {}", setting.description.replace('\n', "\n# "))];
    if setting.shape.is_secret() {
        lines.push(format!(
            "# `{key}_file = \"…\"` names a file that holds it instead."
        ));
    }
    if let Shape::Text { choices } = &setting.shape
        && !choices.is_empty()
    {
        lines.push(format!("# One of {}.", setting.shape.expected()));
    }
    let default = setting.default.as_ref().and_then(toml);
    let example = EXAMPLES.iter().find(|(known, _)| *known == path);
    lines.extend(default.map(|value| format!("# {key} = {value}")));
    lines.extend(example.map(|(_, value)| format!("# {key} = {value}{EXAMPLE}")));
    lines.push(String::new());
    lines.join("\n")
}

const INTRODUCTION: &str = "\
# Configuration

<!-- Made by `foreword config --reference`; a test keeps it fresh. -->

A value is looked for in this order, and the first place that has it wins:

1. flags of the command line,
2. the environment: `FOREWORD_SECTION__KEY`, or one of the short names below; an empty variable counts as unset,
3. `foreword.toml`: the file that `--config` names, else `./foreword.toml`, else
   `$XDG_CONFIG_HOME/foreword/foreword.toml`,
4. the default.

`foreword config` prints the values in force and where each comes from; `foreword config --schema` prints the JSON schema
that is kept in [`foreword.schema.json`](foreword.schema.json). An unknown key, or a variable with `__` that is no
setting, is an error. Other variables that begin with `FOREWORD_` have no effect and are warned about.

A secret may come from a file: in `foreword.toml` under its key with `_file` at the end, in the environment under its name
with `_FILE` at the end. Lists in variables are separated by commas, in secret files by commas or lines. Paths are
relative to the working directory.

While the server runs, SIGHUP reads all this again; `log.level` changes at once, and each other change is logged as
waiting for a restart. The prompt library needs no signal: it is watched.
";

fn section<'a>(
    page: &mut Vec<String>,
    heading: &str,
    parent: &str,
    settings: impl IntoIterator<Item = (&'a String, &'a Setting)>,
) {
    let (mut tables, mut sections) = (Vec::new(), Vec::new());
    page.push(format!("\n## {heading}\n\n{TABLE_HEAD}"));
    for (key, setting) in settings {
        if let Shape::Table(table) = &setting.shape {
            sections.push((super::join(parent, key), table));
            continue;
        }
        let path = super::join(parent, key);
        page.push(row(&path, key, setting));
        match &setting.shape {
            Shape::Tables(table) => tables.push((format!("[[{path}]]"), table)),
            Shape::Named(table) => tables.push((format!("[{path}.NAME]"), table)),
            _ => {}
        }
    }
    for (heading, table) in tables {
        page.push(format!("\nEach `{heading}`:\n\n{ITEM_HEAD}"));
        item_rows(page, table);
    }
    for (path, table) in sections {
        section(page, &format!("`[{path}]`"), &path, table);
    }
}

const TABLE_HEAD: &str = "| Key | Default | Environment | Meaning |\n|---|---|---|---|\n";
const ITEM_HEAD: &str = "| Key | Default | Meaning |\n|---|---|---|\n";

fn row(path: &str, key: &str, setting: &Setting) -> String {
    let mut names: Vec<String> = environment::variables(path, setting)
        .into_iter()
        .map(|variable| format!("`{}`", variable.name))
        .collect();
    names.extend(
        FLAGS
            .iter()
            .filter(|(_, target)| *target == path)
            .map(|(flag, _)| format!("flag `{flag}`")),
    );
    if names.is_empty() {
        names.push("only in the file".to_owned());
    }
    format!(
        "| `{key}` | {} | {} | {} |\n",
        default(setting),
        names.join("<br>"),
        meaning(setting)
    )
}

fn item_rows(page: &mut Vec<String>, table: &Table) {
    for (key, setting) in table {
        let file = if setting.shape.is_secret() {
            format!(" or `{key}_file`")
        } else {
            String::new()
        };
        page.push(format!(
            "| `{key}`{file} | {} | {} |\n",
            default(setting),
            meaning(setting)
        ));
    }
}

fn default(setting: &Setting) -> String {
    match &setting.default {
        None => "required".to_owned(),
        Some(value) => {
            toml(value).map_or_else(|| "not set".to_owned(), |value| format!("`{value}`"))
        }
    }
}

/// The description, and what each of the words means that may stand there.
fn meaning(setting: &Setting) -> String {
    let mut meaning = vec![setting.description.replace('\n', " ")];
    if let Shape::Text { choices } = &setting.shape {
        for (word, description) in choices {
            let description = sentence(description);
            meaning.push(format!("<br>`{word}`: {description}"));
        }
    }
    meaning.concat().replace('|', "\\|")
}

fn names(page: &mut Vec<String>) {
    page.push("\n## Short names\n\nOf one setting's names the first that is set wins, the full name before all.\n\n\
         | Variable | Setting |\n|---|---|\n".to_owned());
    for short in SHORT {
        let words = match short.writing {
            Writing::AsItIs => String::new(),
            Writing::Words(words) => {
                let words: Vec<String> = words
                    .iter()
                    .map(|(word, meaning)| format!("`{word}` means `{meaning}`"))
                    .collect();
                format!(": {}", words.join(", "))
            }
            Writing::DockerSize => ": a size as Docker writes it, `512m` or `2g`".to_owned(),
            Writing::Processors => ": a number of processors, `1` or `1.5`".to_owned(),
        };
        page.push(format!("| `{}` | `{}`{words} |\n", short.name, short.path));
    }
    page.push("\nKnown, and answered with a warning for now:\n\n| Variable | Why it has no effect |\n|---|---|\n".to_owned());
    for (name, reason) in NOT_YET {
        page.push(format!("| `{name}` | {reason} |\n"));
    }
    page.push(OTHER_VARIABLES.to_owned());
}

const OTHER_VARIABLES: &str = "
## Other variables

| Variable | Meaning |
|---|---|
| `OTEL_EXPORTER_OTLP_ENDPOINT` | Traces are sent to this OpenTelemetry collector (`http://host:4318`, over HTTP with protobuf, without TLS). They hold route patterns, status codes and times; no path, query, prompt or key. |
| `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`, `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_EXPORTER_OTLP_TIMEOUT`, `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_TRACES_SAMPLER` | As OpenTelemetry defines them; the service is called `foreword` by default. |
| `NO_COLOR` | No colours, also on a terminal. |
| `XDG_CONFIG_HOME`, `XDG_DATA_HOME` | Where `foreword.toml` is looked for, and where `foreword stdio` keeps its data. |
";

/// Lets each secret of an object come from a file too.
fn add_file_twins(object: &mut Value) {
    let Some(properties) = object["properties"].as_object_mut() else {
        return;
    };
    let secrets: Vec<String> = properties
        .iter()
        .filter(|(_, schema)| schema["$ref"] == SECRET || schema["items"]["$ref"] == SECRET)
        .map(|(key, _)| key.clone())
        .collect();
    for key in &secrets {
        let twin = json!({ "type": "string", "description": format!("The path of a file that holds `{key}`.") });
        properties.insert(format!("{key}_file"), twin);
    }
    let Some(required) = object["required"].as_array_mut() else {
        return;
    };
    let (either, required): (Vec<Value>, Vec<Value>) = std::mem::take(required)
        .into_iter()
        .partition(|key| secrets.iter().any(|secret| key == secret));
    object["required"] = required.into();
    if let Some(Value::String(key)) = either.into_iter().next() {
        let twin = format!("{key}_file");
        object["oneOf"] = json!([{ "required": [key] }, { "required": [twin] }]);
    }
}

const SECRET: &str = "#/$defs/Secret";

fn sentence(text: &str) -> String {
    let first = text.split("\n\n").next().unwrap_or(text).replace('\n', " ");
    first.strip_suffix('.').unwrap_or(&first).to_owned()
}

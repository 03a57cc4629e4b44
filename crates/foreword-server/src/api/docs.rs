//! The documentation page: the OpenAPI document as plain HTML.
//!
//! Everything is in the one answer, so it opens behind any proxy or policy, and can be kept as a file. It is the same for
//! every server of a version and holds nothing of a library, so no key is asked for: a browser could not send one.
//! Deliberately absent: scripts, and anything loaded from elsewhere.

use std::{fmt::Write as _, sync::LazyLock};

use axum::response::{Html, IntoResponse, Redirect};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderValue, header};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::openapi;

/// Shows the documentation of this API.
#[utoipa::path(
    get, path = "/docs", tag = "documentation", security(()),
    responses((status = 200, description = "A page", body = String, content_type = "text/html")),
)]
pub(crate) async fn show_docs() -> impl IntoResponse {
    let policy = HeaderValue::from_static(&POLICY);
    (
        [(header::CONTENT_SECURITY_POLICY, policy)],
        Html(PAGE.as_str()),
    )
}

/// Leads whoever opens the server in a browser to the documentation; relative, so that it works below a path too.
pub(crate) async fn redirect_to_docs() -> Redirect {
    Redirect::temporary("docs")
}

const STYLE: &str = include_str!("docs.css");

static PAGE: LazyLock<String> = LazyLock::new(|| {
    let document = serde_json::to_value(openapi::document()).expect("the document is plain data");
    page(&document)
});

/// Allows the one style sheet, by its hash, and nothing else.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    let hash = STANDARD.encode(Sha256::digest(STYLE));
    format!(
        "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
});

/// The methods of a path that are shown, in this order.
const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

fn page(document: &Value) -> String {
    let operations = operations(document);
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title} API</title>\n<style>{STYLE}</style>\n</head>\n<body>\n",
        title = escape(text(&document["info"], "title")),
    );
    write_contents(&mut html, document, &operations);
    html.push_str("<main>\n");
    write_introduction(&mut html, document);
    for tag in list(&document["tags"]) {
        let name = text(tag, "name");
        let _ = writeln!(html, "<h2>{}</h2>", escape(name));
        write_prose(&mut html, text(tag, "description"));
        for operation in operations.iter().filter(|operation| operation.tag == name) {
            write_operation(&mut html, document, operation);
        }
    }
    html.push_str("<h2>Schemas</h2>\n");
    for (name, schema) in object(&document["components"]["schemas"]) {
        write_schema(&mut html, name, schema);
    }
    html.push_str("</main>\n</body>\n</html>\n");
    html
}

/// One method of one path.
struct Operation<'a> {
    method: &'static str,
    path: &'a str,
    tag: &'a str,
    id: &'a str,
    value: &'a Value,
}

fn operations(document: &Value) -> Vec<Operation<'_>> {
    let paths = object(&document["paths"]);
    let operations = paths.flat_map(|(path, item)| {
        METHODS.into_iter().filter_map(move |method| {
            let value = item.get(method)?;
            Some(Operation {
                method,
                path,
                tag: value["tags"][0].as_str().unwrap_or_default(),
                id: text(value, "operationId"),
                value,
            })
        })
    });
    operations.collect()
}

fn write_contents(html: &mut String, document: &Value, operations: &[Operation<'_>]) {
    // A box to tick takes the place of a script: on a narrow screen the list is shown when it is ticked.
    html.push_str(
        "<nav>\n<input type=\"checkbox\" id=\"routes-shown\"><label for=\"routes-shown\">Routes</label>\n\
         <div class=\"routes\">\n",
    );
    for tag in list(&document["tags"]) {
        let name = text(tag, "name");
        let _ = writeln!(html, "<h2>{}</h2>\n<ul>", escape(name));
        for operation in operations.iter().filter(|operation| operation.tag == name) {
            let Operation {
                method, path, id, ..
            } = operation;
            let _ = writeln!(
                html,
                "<li><a href=\"#{id}\"><b class=\"{method}\">{method}</b> <code>{path}</code></a></li>",
                path = breakable(path),
            );
        }
        html.push_str("</ul>\n");
    }
    html.push_str("</div>\n</nav>\n");
}

fn write_introduction(html: &mut String, document: &Value) {
    let info = &document["info"];
    let _ = writeln!(
        html,
        "<h1>{} <small>{}</small></h1>",
        escape(text(info, "title")),
        escape(text(info, "version")),
    );
    write_prose(html, text(info, "description"));
    html.push_str(
        "<p>Where the server has keys, send one as <code>Authorization: Bearer …</code>, or as \
         <code>X-Foreword-Key</code>; this page needs none. For programs: <a href=\"openapi.json\">openapi.json</a>.</p>\n",
    );
}

fn write_operation(html: &mut String, document: &Value, operation: &Operation<'_>) {
    let Operation {
        method,
        path,
        id,
        value,
        ..
    } = operation;
    let _ = writeln!(
        html,
        "<article id=\"{id}\">\n<h3><b class=\"{method}\">{method}</b> <code>{path}</code> <i>{id}</i></h3>",
        path = breakable(path),
    );
    write_prose(html, text(value, "summary"));
    write_prose(html, text(value, "description"));
    if needs_admin(value) {
        html.push_str("<p class=\"admin\">Needs an admin key.</p>\n");
    }
    let parameters = list(&value["parameters"]);
    if !parameters.is_empty() {
        html.push_str("<h4>Parameters</h4>\n<table>\n");
        for parameter in parameters {
            write_row(
                html,
                text(parameter, "name"),
                parameter["required"] == true,
                &format!(
                    "{}, in the {}",
                    type_of(&parameter["schema"]),
                    text(parameter, "in")
                ),
                text(parameter, "description"),
            );
        }
        html.push_str("</table>\n");
    }
    for (media_type, content) in object(&value["requestBody"]["content"]) {
        let _ = writeln!(
            html,
            "<h4>Body</h4>\n<p><code>{}</code> {}</p>",
            escape(media_type),
            type_of(&content["schema"]),
        );
    }
    html.push_str("<h4>Answers</h4>\n<table>\n");
    for (status, response) in object(&value["responses"]) {
        let response = resolve(document, response);
        let content = object(&response["content"]).map(|(_, content)| type_of(&content["schema"]));
        let content: Vec<String> = content.collect();
        write_row(
            html,
            status,
            true,
            &content.join(", "),
            text(response, "description"),
        );
    }
    html.push_str("</table>\n</article>\n");
}

fn write_schema(html: &mut String, name: &str, schema: &Value) {
    let _ = writeln!(
        html,
        "<article id=\"schema-{name}\">\n<h3><code>{name}</code></h3>",
        name = escape(name),
    );
    write_prose(html, text(schema, "description"));
    let required = list(&schema["required"]);
    html.push_str("<table>\n");
    for (field, value) in object(&schema["properties"]) {
        let is_required = required.iter().any(|name| name == field);
        write_row(
            html,
            field,
            is_required,
            &type_of(value),
            text(value, "description"),
        );
    }
    html.push_str("</table>\n");
    if let Some(example) = schema.get("example") {
        let example = serde_json::to_string_pretty(example).unwrap_or_default();
        let _ = writeln!(html, "<pre>{}</pre>", escape(&example));
    }
    html.push_str("</article>\n");
}

fn write_row(html: &mut String, name: &str, is_required: bool, kind: &str, description: &str) {
    let _ = writeln!(
        html,
        "<tr><th><code>{name}</code>{optional}</th><td>{kind}</td><td>{description}</td></tr>",
        name = escape(name),
        optional = if is_required {
            ""
        } else {
            " <small>optional</small>"
        },
        description = inline(description),
    );
}

/// A path that is cut before a slash, if it is cut.
fn breakable(path: &str) -> String {
    escape(path).replace('/', "<wbr>/")
}

/// Paragraphs of doc comments.
fn write_prose(html: &mut String, prose: &str) {
    for paragraph in prose
        .split("\n\n")
        .filter(|paragraph| !paragraph.trim().is_empty())
    {
        let _ = writeln!(html, "<p>{}</p>", inline(paragraph));
    }
}

/// What a schema says about a value, in a few words, with links to other schemas.
fn type_of(schema: &Value) -> String {
    if let Some(name) = schema["$ref"]
        .as_str()
        .and_then(|path| path.rsplit('/').next())
    {
        return format!("<a href=\"#schema-{name}\">{name}</a>", name = escape(name));
    }
    if let Some(words) = schema["enum"].as_array() {
        let words = words.iter().filter_map(Value::as_str);
        let words: Vec<String> = words
            .map(|word| format!("<code>{}</code>", escape(word)))
            .collect();
        return words.join(" | ");
    }
    for composed in ["oneOf", "anyOf", "allOf"] {
        if let Some(choices) = schema[composed].as_array() {
            let choices: Vec<String> = choices.iter().map(type_of).collect();
            return choices.join(" | ");
        }
    }
    match &schema["type"] {
        Value::Array(kinds) => {
            let kinds: Vec<&str> = kinds.iter().filter_map(Value::as_str).collect();
            escape(&kinds.join(" | "))
        }
        kind if kind == "array" => format!("list of {}", type_of(&schema["items"])),
        kind if kind == "object" && schema["additionalProperties"].is_object() => {
            format!("map to {}", type_of(&schema["additionalProperties"]))
        }
        kind => escape(kind.as_str().unwrap_or("any")),
    }
}

fn needs_admin(operation: &Value) -> bool {
    list(&operation["security"])
        .iter()
        .any(|scheme| scheme.get("admin_key").is_some())
}

fn resolve<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let reference = value["$ref"]
        .as_str()
        .and_then(|path| path.strip_prefix('#'));
    reference
        .and_then(|path| document.pointer(path))
        .unwrap_or(value)
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn object(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

/// Escaped text in which what stands in backticks is code.
fn inline(text: &str) -> String {
    let pieces = text.split('`').enumerate().map(|(at, piece)| {
        let piece = escape(piece);
        if at % 2 == 1 {
            format!("<code>{piece}</code>")
        } else {
            piece
        }
    });
    pieces.collect()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

//! What kind of file a name promises.

use std::path::Path;

/// Names that the table of types knows as something else than what people have here, or not at all.
const OURS: &[(&str, &str)] = &[
    ("bash", "application/x-sh"),
    ("cfg", "text/plain"),
    ("conf", "text/plain"),
    ("go", "text/x-go"),
    ("ini", "text/plain"),
    ("ipynb", "application/json"),
    ("js", "application/javascript"),
    ("jsonl", "application/json"),
    ("jsx", "text/jsx"),
    ("log", "text/plain"),
    ("md", "text/markdown"),
    ("mjs", "application/javascript"),
    ("parquet", "application/vnd.apache.parquet"),
    ("py", "text/x-python"),
    ("rs", "text/x-rust"),
    ("sh", "application/x-sh"),
    ("sql", "text/x-sql"),
    ("toml", "application/toml"),
    ("ts", "text/x-typescript"),
    ("tsv", "text/tab-separated-values"),
    ("tsx", "text/x-typescript"),
    ("xml", "application/xml"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
];

/// The media type, without parameters.
pub(crate) fn media_type(path: &Path) -> &'static str {
    let extension = path
        .extension()
        .map(|extension| extension.to_string_lossy().to_ascii_lowercase())
        .unwrap_or_default();
    match OURS.binary_search_by(|(known, _)| (*known).cmp(extension.as_str())) {
        Ok(at) => OURS[at].1,
        Err(_) => mime_guess::from_ext(&extension)
            .first_raw()
            .unwrap_or("application/octet-stream"),
    }
}

/// Whether a model can read it as text.
pub(crate) fn is_text(media_type: &str) -> bool {
    media_type.starts_with("text/")
        || matches!(
            media_type,
            "application/json"
                | "application/xml"
                | "application/yaml"
                | "application/x-yaml"
                | "application/javascript"
                | "application/x-sh"
                | "application/toml"
        )
}

/// Whether a browser may show it where it lies: nothing in it can run.
pub(crate) fn is_inline(media_type: &str) -> bool {
    match media_type.split_once('/') {
        Some(("image", kind)) => kind != "svg+xml",
        Some(("audio" | "video", _)) => true,
        _ => matches!(media_type, "text/plain" | "application/pdf"),
    }
}

/// What to call it in a list.
pub(crate) fn kind(media_type: &str) -> &'static str {
    match media_type.split_once('/') {
        Some(("image", _)) => "image",
        Some(("audio", _)) => "audio",
        Some(("video", _)) => "video",
        Some(("text", "html")) => "html",
        Some(("text", "markdown")) => "markdown",
        Some(("text", "csv" | "tab-separated-values")) => "table",
        Some(("text", "plain")) => "text",
        Some(("application", "pdf")) => "pdf",
        _ if is_text(media_type) => "code",
        _ => "other",
    }
}

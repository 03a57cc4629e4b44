//! The list of a chat's outputs.

use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, header};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    blocking, encoded, failed,
    uploads::{ListQuery, file_name},
};
use crate::{
    api::{openapi::FileProblems, page},
    app::App,
    error::ApiError,
    extract::Query,
    middleware::reader::Reader,
    workspace::{
        files::{self, DotFiles, FileEntry},
        media,
    },
};

/// A chat's outputs.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OutputList {
    chat_id: String,
    files: Vec<OutputFile>,
    /// How many there are in all.
    total: usize,
    /// Whether there are more than could be looked at.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    too_many: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// An output.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OutputFile {
    name: String,
    /// Relative to the chat's outputs.
    path: String,
    /// In bytes.
    size: u64,
    /// RFC 3339, UTC.
    modified: String,
    /// `audio`, `code`, `html`, `image`, `markdown`, `pdf`, `table`, `text`, `video` or `other`.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The media type.
    mime: &'static str,
    /// Where it is served.
    url: String,
}

/// Lists a chat's outputs, the newest first; dot files and links are left out.
#[utoipa::path(
    get, path = "/api/outputs/{chat_id}", tag = "files",
    params(("chat_id" = String, Path, description = "The chat, or a capability for it"), ListQuery),
    responses((status = 200, description = "The outputs", body = OutputList), FileProblems),
)]
pub(crate) async fn list_outputs(
    State(app): State<App>,
    reader: Reader,
    Query(query): Query<ListQuery>,
) -> Result<Response, ApiError> {
    let (files, complete) = match reader.workspace(&app).await? {
        None => (Vec::new(), true),
        Some(workspace) => {
            let listed =
                blocking(move || files::list(workspace.outputs(), DotFiles::LeftOut)).await;
            let listing = listed.map_err(|error| failed(&error))?.newest_first();
            (listing.files, listing.complete)
        }
    };
    let page = page::paginate(
        files,
        query.limit.as_deref(),
        query.cursor.as_deref(),
        |file: &FileEntry| file.path.as_os_str().as_encoded_bytes(),
    )?;
    let base = reader.file_base_url(&app);
    let rows = page.items.iter().map(|file| OutputFile::new(file, &base));
    let list = Json(OutputList {
        chat_id: reader.chat_id().to_string(),
        files: rows.collect(),
        total: page.total,
        too_many: !complete,
        next_cursor: page.next_cursor,
    });
    let no_store = HeaderValue::from_static("private, no-store");
    Ok(([(header::CACHE_CONTROL, no_store)], list).into_response())
}

impl OutputFile {
    fn new(entry: &FileEntry, base: &str) -> Self {
        let mime = media::media_type(&entry.path);
        Self {
            name: file_name(&entry.path),
            path: entry.path.to_string_lossy().into_owned(),
            size: entry.size,
            modified: entry.modified.to_string(),
            kind: media::kind(mime),
            mime,
            url: format!("{base}/{}", encoded(&entry.path)),
        }
    }
}

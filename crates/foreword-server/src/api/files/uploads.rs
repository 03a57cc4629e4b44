//! Uploads: bringing files into a chat, listing and deleting them.

use std::{path::Path, sync::Arc};

use axum::{
    Json,
    extract::{Request, State},
};
use foreword_sandbox::UPLOADS;
use http::{StatusCode, header};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{blocking, failed, incoming};
use crate::{
    api::{
        openapi::{FileProblems, UploadProblems},
        page,
    },
    app::App,
    error::ApiError,
    extract::{ChatSession, FilePath, Query},
    session::Session,
    workspace::{
        Workspace,
        files::{self, DotFiles, FileEntry},
        hashes,
        name::UploadName,
        uploads::{self, Part, Stored},
    },
};

/// Which part of a list to show.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// How many, from 1 to 1,000 (the default).
    pub(super) limit: Option<String>,
    /// Where the page before ended: its `next_cursor`.
    pub(super) cursor: Option<String>,
}

/// An upload that was taken.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UploadAnswer {
    status: &'static str,
    /// The last segment of its path.
    filename: String,
    /// Relative to the chat's uploads.
    path: String,
    /// In bytes.
    size: u64,
    md5: String,
    sha256: String,
}

/// A chat's uploads.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UploadList {
    files: Vec<UploadedFile>,
    /// How many there are in all.
    total: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// An upload.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UploadedFile {
    name: String,
    /// Relative to the chat's uploads.
    path: String,
    /// In bytes.
    size: u64,
    /// RFC 3339, UTC.
    modified: String,
    /// Where the sandbox has it.
    container_path: String,
}

/// Takes a file as the body.
#[utoipa::path(
    put, path = "/api/uploads/{chat_id}/{path}", tag = "files",
    params(
        ("chat_id" = String, Path, description = "The chat"),
        ("path" = String, Path, description = "Its name, with directories"),
    ),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses(
        (status = 201, description = "It is new", body = UploadAnswer),
        (status = 200, description = "It has replaced another one", body = UploadAnswer),
        UploadProblems,
    ),
)]
pub(crate) async fn put_upload(
    State(app): State<App>,
    ChatSession(session): ChatSession,
    FilePath(path): FilePath,
    request: Request,
) -> Result<(StatusCode, Json<UploadAnswer>), ApiError> {
    let (_, body) = request.into_parts();
    let patience = app.config().http.timeout();
    let begun = begin(&app, &session, &path, incoming::declared_length(&body)).await;
    let (upload, part) = match begun {
        Ok(begun) => begun,
        Err(error) => {
            incoming::discard(body, patience).await;
            return Err(error);
        }
    };
    let part = incoming::receive_raw(body, part, patience).await?;
    upload.finish(&app, part).await
}

/// Takes a file as the field `file` of a form.
#[utoipa::path(
    post, path = "/api/uploads/{chat_id}/{path}", tag = "files",
    params(
        ("chat_id" = String, Path, description = "The chat"),
        ("path" = String, Path, description = "Its name, with directories; the form's name for it does not count"),
    ),
    request_body(content = UploadForm, content_type = "multipart/form-data"),
    responses(
        (status = 201, description = "It is new", body = UploadAnswer),
        (status = 200, description = "It has replaced another one", body = UploadAnswer),
        UploadProblems,
    ),
)]
pub(crate) async fn post_upload(
    State(app): State<App>,
    ChatSession(session): ChatSession,
    FilePath(path): FilePath,
    request: Request,
) -> Result<(StatusCode, Json<UploadAnswer>), ApiError> {
    let (parts, body) = request.into_parts();
    let patience = app.config().http.timeout();
    let content_type = parts.headers.get(header::CONTENT_TYPE);
    let is_form =
        content_type.is_some_and(|value| value.as_bytes().starts_with(b"multipart/form-data"));
    let begun = if is_form {
        begin(&app, &session, &path, None).await
    } else {
        Err(incoming::not_a_form())
    };
    let (upload, part) = match begun {
        Ok(begun) => begun,
        Err(error) => {
            incoming::discard(body, patience).await;
            return Err(error);
        }
    };
    let part = incoming::receive_form(parts, body, part, patience).await?;
    upload.finish(&app, part).await
}

/// What a form holds.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it only describes the form")]
pub(crate) struct UploadForm {
    /// The file.
    #[schema(format = Binary, content_media_type = "application/octet-stream")]
    file: String,
}

/// Lists a chat's uploads, the newest first.
#[utoipa::path(
    get, path = "/api/uploads/{chat_id}/list", tag = "files",
    params(("chat_id" = String, Path, description = "The chat"), ListQuery),
    responses((status = 200, description = "The uploads", body = UploadList), FileProblems),
)]
pub(crate) async fn list_uploads(
    State(app): State<App>,
    ChatSession(session): ChatSession,
    Query(query): Query<ListQuery>,
) -> Result<Json<UploadList>, ApiError> {
    let files = match app.workspaces().find_for(&session).await? {
        None => Vec::new(),
        Some(workspace) => {
            let listed = blocking(move || files::list(workspace.uploads(), DotFiles::Listed)).await;
            listed.map_err(|error| failed(&error))?.newest_first().files
        }
    };
    let page = page::paginate(
        files,
        query.limit.as_deref(),
        query.cursor.as_deref(),
        |file: &FileEntry| file.path.as_os_str().as_encoded_bytes(),
    )?;
    Ok(Json(UploadList {
        files: page.items.iter().map(UploadedFile::new).collect(),
        total: page.total,
        next_cursor: page.next_cursor,
    }))
}

/// The same list, where a chat's outputs have theirs.
#[utoipa::path(
    get, path = "/api/uploads/{chat_id}", tag = "files",
    params(("chat_id" = String, Path, description = "The chat"), ListQuery),
    responses((status = 200, description = "The uploads", body = UploadList), FileProblems),
)]
pub(crate) async fn list_uploads_of_chat(
    app: State<App>,
    session: ChatSession,
    query: Query<ListQuery>,
) -> Result<Json<UploadList>, ApiError> {
    list_uploads(app, session, query).await
}

/// The MD5 of each of a chat's uploads, by path.
#[utoipa::path(
    get, path = "/api/uploads/{chat_id}/manifest", tag = "files",
    params(("chat_id" = String, Path, description = "The chat")),
    responses((status = 200, description = "The hashes", body = Object), FileProblems),
)]
pub(crate) async fn get_manifest(
    State(app): State<App>,
    ChatSession(session): ChatSession,
) -> Result<Json<IndexMap<String, String>>, ApiError> {
    let Some(workspace) = app.workspaces().find_for(&session).await? else {
        return Ok(Json(IndexMap::new()));
    };
    let manifest = blocking(move || hashes::manifest(&workspace)).await;
    manifest.map(Json).map_err(|error| failed(&error))
}

/// Deletes an upload.
#[utoipa::path(
    delete, path = "/api/uploads/{chat_id}/{path}", tag = "files",
    params(
        ("chat_id" = String, Path, description = "The chat"),
        ("path" = String, Path, description = "The file"),
    ),
    responses((status = 204, description = "It is gone"), FileProblems),
)]
pub(crate) async fn delete_upload(
    State(app): State<App>,
    ChatSession(session): ChatSession,
    FilePath(path): FilePath,
) -> Result<StatusCode, ApiError> {
    let name = UploadName::parse(&path)?;
    let workspace = app.workspaces().find_for(&session).await?;
    let workspace = workspace.ok_or(uploads::UploadError::NotFound)?;
    blocking(move || uploads::delete(&workspace, &name)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// An upload that has begun.
struct Upload {
    workspace: Arc<Workspace>,
    name: UploadName,
}

async fn begin(
    app: &App,
    session: &Session,
    path: &[u8],
    declared: Option<u64>,
) -> Result<(Upload, Part), ApiError> {
    let name = UploadName::parse(path)?;
    let workspace = Arc::new(app.workspaces().enter(session).await?);
    let part = {
        let (workspace, config) = (Arc::clone(&workspace), app.config().uploads.clone());
        blocking(move || Part::begin(&workspace, &config, declared)).await?
    };
    Ok((Upload { workspace, name }, part))
}

impl Upload {
    async fn finish(
        self,
        app: &App,
        part: Part,
    ) -> Result<(StatusCode, Json<UploadAnswer>), ApiError> {
        let config = app.config().uploads.clone();
        let (name, workspace) = (self.name.clone(), Arc::clone(&self.workspace));
        let stored: Stored = blocking(move || part.finish(&workspace, &name, &config)).await?;
        let status = if stored.replaced {
            StatusCode::OK
        } else {
            StatusCode::CREATED
        };
        let answer = UploadAnswer {
            status: "success",
            filename: self.name.file_name().to_owned(),
            path: self.name.as_str().to_owned(),
            size: stored.size,
            md5: stored.md5,
            sha256: stored.sha256,
        };
        Ok((status, Json(answer)))
    }
}

impl UploadedFile {
    fn new(entry: &FileEntry) -> Self {
        let path = entry.path.to_string_lossy().into_owned();
        Self {
            name: file_name(&entry.path),
            size: entry.size,
            modified: entry.modified.to_string(),
            container_path: format!("{UPLOADS}/{path}"),
            path,
        }
    }
}

/// The last segment, as far as it is UTF-8.
pub(super) fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

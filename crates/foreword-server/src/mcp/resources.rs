//! Tier 5: what the user uploaded, as MCP resources.
//!
//! Nothing is registered: the list is the directory, so a restart, a second process and an upload by another path agree. A
//! URI names its chat, since clients do not resend headers when they read; a request that names a chat of its own sees only
//! that one. Deliberately absent: outputs (they have links), subscriptions to single files, and news of changes (see
//! [`super::changes`]).

use std::{
    fmt,
    io::{self, Read},
    os::unix::ffi::OsStrExt,
};

use base64::{Engine, prelude::BASE64_STANDARD, prelude::BASE64_URL_SAFE_NO_PAD};
use foreword_sandbox::UPLOADS;
use percent_encoding::{percent_decode_str, percent_encode};
use rmcp::{
    ErrorData,
    model::{
        Annotations, CompleteRequestParams, CompleteResult, CompletionInfo, ErrorCode, JsonObject,
        ListResourceTemplatesResult, ListResourcesResult, PaginatedRequestParams,
        ReadResourceResult, Reference, Resource, ResourceContents, ResourceTemplate,
        ResourcesCapability, ServerCapabilities,
    },
};
use serde_json::json;

use super::skills;
use crate::{
    app::App,
    config::SessionMode,
    links::UNRESERVED,
    metrics::Tier,
    session::{ChatId, Session},
    workspace::{
        Workspace, WorkspaceError,
        files::{self, DotFiles, FileEntry},
        media,
        name::UploadName,
    },
};

/// How many resources a page holds.
const PAGE: usize = 100;

/// What the URIs of uploads begin with.
const SCHEME: &str = "file://uploads/";

/// The URI with its two variables.
const TEMPLATE: &str = "file://uploads/{chat_id}/{path}";

/// Says what can be had, where files are kept at all.
pub(super) fn declare(app: &App, capabilities: &mut ServerCapabilities) {
    if app.workspaces().are_kept() {
        let mut resources = ResourcesCapability::default();
        resources.list_changed = Some(true);
        capabilities.resources = Some(resources);
        capabilities.completions = Some(JsonObject::new());
    }
}

/// The session's uploads, the newest first.
pub(super) async fn list(
    app: &App,
    session: &Session,
    request: Option<PaginatedRequestParams>,
) -> Result<ListResourcesResult, ErrorData> {
    let cursor = request.and_then(|request| request.cursor);
    let start = cursor.as_deref().map(Cursor::parse).transpose()?;
    let uploads = uploads(app, session).await?;
    let first = start.map_or(0, |start| {
        uploads.partition_point(|file| start.is_at_or_after(file))
    });
    let page = &uploads[first..];
    let page = &page[..page.len().min(PAGE)];
    let resources = page
        .iter()
        .map(|file| resource(&session.chat_id, file))
        .collect();
    let mut result = ListResourcesResult::with_all_items(resources);
    if first + page.len() < uploads.len() {
        result.next_cursor = page.last().map(|file| Cursor::of(file).to_string());
    }
    app.metrics().delivery(Tier::Resources);
    Ok(result)
}

/// The one template.
pub(super) fn templates(app: &App) -> Result<ListResourceTemplatesResult, ErrorData> {
    if !app.workspaces().are_kept() {
        return Err(refused(&WorkspaceError::Off));
    }
    let template = ResourceTemplate::new(TEMPLATE, "upload")
        .with_title("Uploaded file")
        .with_description(
            "A file that the user uploaded to the chat; `path` is percent-encoded, `/` too",
        );
    Ok(ListResourceTemplatesResult::with_all_items(vec![template]))
}

/// Reads an upload from the disk.
pub(super) async fn read(
    app: &App,
    session: &Session,
    uri: &str,
) -> Result<ReadResourceResult, ErrorData> {
    if uri.starts_with(skills::SCHEME) {
        return skills::read(app, session, uri).await;
    }
    let (chat_id, name) = parse(uri).ok_or_else(|| not_found(uri))?;
    let session = reading_session(app, session, &chat_id).ok_or_else(|| not_found(uri))?;
    let workspace = app.workspaces().find_for(&session).await;
    let workspace = workspace
        .map_err(|error| refused(&error))?
        .ok_or_else(|| not_found(uri))?;
    let max = app.config().uploads.max_read_bytes;
    let found = {
        let name = name.clone();
        tokio::task::spawn_blocking(move || read_file(&workspace, &name, max)).await
    };
    let found = found.expect("reading does not panic, and nobody cancels it");
    let bytes = match found.map_err(|error| refused(&error.into()))? {
        Found::Bytes(bytes) => bytes,
        Found::TooLarge(size) => {
            let message = format!(
                "the file has {size} bytes, more than the {max} that are returned here; read it in the workspace, at \
                 `{UPLOADS}/{}`",
                name.as_str()
            );
            let data = json!({ "code": "file_too_large", "size": size, "max_bytes": max });
            return Err(ErrorData::invalid_params(message, Some(data)));
        }
        Found::Nothing => return Err(not_found(uri)),
    };
    let media_type = media::media_type(name.as_path());
    let contents = if media::is_text(media_type) {
        ResourceContents::text(String::from_utf8_lossy(&bytes), uri)
    } else {
        ResourceContents::blob(BASE64_STANDARD.encode(&bytes), uri)
    };
    app.metrics().delivery(Tier::Resources);
    Ok(ReadResourceResult::new(vec![
        contents.with_mime_type(media_type),
    ]))
}

/// The session's files whose path begins like that, percent-encoded as the template wants them.
pub(super) async fn complete(
    app: &App,
    session: &Session,
    request: &CompleteRequestParams,
) -> Result<CompleteResult, ErrorData> {
    let is_ours =
        matches!(&request.r#ref, Reference::Resource(reference) if reference.uri == TEMPLATE);
    if !is_ours {
        let message = format!("only `{TEMPLATE}` can be completed");
        return Err(ErrorData::invalid_params(message, None));
    }
    let typed = &request.argument.value;
    let matching: Vec<String> = match request.argument.name.as_str() {
        "chat_id" => {
            let chat_id = session.chat_id.to_string();
            let matches = chat_id.starts_with(&typed.to_lowercase());
            matches.then_some(chat_id).into_iter().collect()
        }
        "path" => {
            let typed = percent_decode_str(typed).decode_utf8_lossy().to_lowercase();
            let uploads = uploads(app, session).await?;
            uploads
                .iter()
                .filter(|file| {
                    let path = file.path.to_string_lossy().to_lowercase();
                    path.starts_with(&typed)
                })
                .map(encoded)
                .collect()
        }
        name => {
            let message = format!("the template has no variable `{name}`");
            return Err(ErrorData::invalid_params(message, None));
        }
    };
    let total = u32::try_from(matching.len()).ok();
    let has_more = matching.len() > CompletionInfo::MAX_VALUES;
    let values = matching.into_iter().take(CompletionInfo::MAX_VALUES);
    let completion = CompletionInfo::with_pagination(values.collect(), total, has_more)
        .expect("no more values are taken than may be given");
    Ok(CompleteResult::new(completion))
}

async fn uploads(app: &App, session: &Session) -> Result<Vec<FileEntry>, ErrorData> {
    if !app.workspaces().are_kept() {
        return Err(refused(&WorkspaceError::Off));
    }
    let workspace = app.workspaces().find_for(session).await;
    let Some(workspace) = workspace.map_err(|error| refused(&error))? else {
        return Ok(Vec::new());
    };
    let listed =
        tokio::task::spawn_blocking(move || files::list(workspace.uploads(), DotFiles::Listed));
    let listed = listed
        .await
        .expect("listing does not panic, and nobody cancels it");
    let listing = listed.map_err(|error| refused(&error.into()))?;
    Ok(listing.newest_first().files)
}

/// Whose files a URI may be read as; none where the request is another chat's.
fn reading_session(app: &App, session: &Session, chat_id: &ChatId) -> Option<Session> {
    let config = app.config();
    if session.chat_id_given {
        // In `single` mode there is one chat, whatever the URI says.
        let is_single = config.session.mode == SessionMode::Single;
        return (is_single || session.chat_id == *chat_id).then(|| session.clone());
    }
    let may_name_any =
        config.uploads.uri_without_chat && config.session.mode != SessionMode::Strict;
    let is_default = *chat_id == session.chat_id && config.session.mode == SessionMode::Lenient;
    (may_name_any || is_default).then(|| session.in_chat(chat_id.clone()))
}

/// The chat and the file of a URI, however it is spelled.
fn parse(uri: &str) -> Option<(ChatId, UploadName)> {
    let rest = uri
        .get(..SCHEME.len())
        .filter(|scheme| scheme.eq_ignore_ascii_case(SCHEME))
        .map(|_| &uri[SCHEME.len()..])?;
    let (chat_id, path) = rest.split_once('/')?;
    let chat_id = percent_decode_str(chat_id).decode_utf8().ok()?;
    let path: Vec<u8> = percent_decode_str(path).collect();
    Some((
        ChatId::parse(&chat_id).ok()?,
        UploadName::parse(&path).ok()?,
    ))
}

fn resource(chat_id: &ChatId, file: &FileEntry) -> Resource {
    let chat = percent_encode(chat_id.as_str().as_bytes(), UNRESERVED);
    let path = file.path.to_string_lossy();
    let title = file.path.file_name().unwrap_or_default();
    let mut annotations = Annotations::default();
    annotations.last_modified = Some(file.modified.to_string());
    Resource::new(format!("{SCHEME}{chat}/{}", encoded(file)), path)
        .with_title(title.to_string_lossy())
        .with_mime_type(media::media_type(&file.path))
        .with_size(file.size)
        .with_annotations(annotations)
}

fn encoded(file: &FileEntry) -> String {
    percent_encode(file.path.as_os_str().as_encoded_bytes(), UNRESERVED).to_string()
}

enum Found {
    Bytes(Vec<u8>),
    TooLarge(u64),
    Nothing,
}

fn read_file(workspace: &Workspace, name: &UploadName, max: u64) -> io::Result<Found> {
    let Some(opened) = files::open(workspace.uploads(), name.as_path())? else {
        return Ok(Found::Nothing);
    };
    if opened.size > max {
        return Ok(Found::TooLarge(opened.size));
    }
    let mut bytes = Vec::new();
    opened.file.take(max).read_to_end(&mut bytes)?;
    Ok(Found::Bytes(bytes))
}

/// Where a page ended: by time and path, so that what comes or goes in between neither repeats nor skips others.
struct Cursor {
    modified: i128,
    path: Vec<u8>,
}

impl Cursor {
    fn of(file: &FileEntry) -> Self {
        Self {
            modified: file.modified.as_nanosecond(),
            path: file.path.as_os_str().as_encoded_bytes().to_vec(),
        }
    }

    fn parse(text: &str) -> Result<Self, ErrorData> {
        let parsed = BASE64_URL_SAFE_NO_PAD.decode(text).ok().and_then(|bytes| {
            let at = bytes.iter().position(|byte| *byte == b'/')?;
            let modified = std::str::from_utf8(&bytes[..at]).ok()?.parse().ok()?;
            Some(Self {
                modified,
                path: bytes[at + 1..].to_vec(),
            })
        });
        parsed.ok_or_else(|| {
            let message = "the cursor is not known; begin again without one";
            ErrorData::invalid_params(message, None)
        })
    }

    /// Whether `file` stands before the next page.
    fn is_at_or_after(&self, file: &FileEntry) -> bool {
        let modified = file.modified.as_nanosecond();
        modified > self.modified
            || modified == self.modified && file.path.as_os_str().as_bytes() <= self.path.as_slice()
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = format!("{}/", self.modified).into_bytes();
        bytes.extend_from_slice(&self.path);
        formatter.write_str(&BASE64_URL_SAFE_NO_PAD.encode(bytes))
    }
}

/// Older revisions get -32002, 2026-07-28 gets -32602: rmcp knows which client it speaks to.
pub(super) fn not_found(uri: &str) -> ErrorData {
    ErrorData::resource_not_found("there is no such resource", Some(json!({ "uri": uri })))
}

pub(super) fn refused(error: &WorkspaceError) -> ErrorData {
    let code = match error {
        WorkspaceError::Off => {
            return ErrorData::new(ErrorCode::METHOD_NOT_FOUND, error.to_string(), None);
        }
        WorkspaceError::BelongsToAnotherUser => "chat_belongs_to_another_user",
        WorkspaceError::UserRequired => "user_required",
        WorkspaceError::InUse => "chat_in_use",
        WorkspaceError::BelongToAnotherUid { .. } => "files_of_another_uid",
        WorkspaceError::Failed(cause) => {
            tracing::error!(
                error = cause as &dyn std::error::Error,
                "A chat's uploads cannot be read"
            );
            return ErrorData::internal_error(error.to_string(), None);
        }
    };
    ErrorData::invalid_params(error.to_string(), Some(json!({ "code": code })))
}

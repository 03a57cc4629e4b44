//! All outputs of a chat as one ZIP.

use axum::{
    body::Body,
    extract::State,
    response::{IntoResponse, Response},
};
use futures::stream;
use http::{HeaderMap, HeaderValue, header};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{
    blocking,
    download::{DownloadQuery, no_such_file, serve_file},
    failed,
};
use crate::{
    api::openapi::FileProblems,
    app::App,
    error::ApiError,
    extract::{FilePath, Query},
    middleware::reader::Reader,
    pages::refusal,
    workspace::archive::Archive,
};

/// Whether the file is meant that is called like this route.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ArchiveQuery {
    /// `1` for the file named `archive`.
    file: Option<String>,
    #[serde(flatten)]
    #[param(ignore)]
    download: DownloadQuery,
}

/// Serves a chat's outputs as a ZIP, sorted by name, without links and dot files.
#[utoipa::path(
    get, path = "/files/{chat_id}/archive", tag = "files",
    params(("chat_id" = String, Path, description = "The chat, or a capability for it"), ArchiveQuery),
    responses((status = 200, description = "The ZIP", content_type = "application/zip"), FileProblems),
)]
pub(crate) async fn get_archive(
    State(app): State<App>,
    reader: Reader,
    FilePath(path): FilePath,
    Query(query): Query<ArchiveQuery>,
    headers: HeaderMap,
) -> Response {
    let served = if query.file.is_some_and(|file| file != "0") {
        serve_file(&app, &reader, path, &query.download, &headers).await
    } else {
        serve_archive(&app, &reader).await
    };
    served.unwrap_or_else(|error| refusal::answer(error, &headers))
}

async fn serve_archive(app: &App, reader: &Reader) -> Result<Response, ApiError> {
    let workspace = reader.workspace(app).await?.ok_or_else(no_such_file)?;
    let name = format!("chat-{}-outputs.zip", workspace.chat_id().file_name());
    let archive = blocking(move || Archive::new(workspace.outputs().try_clone()?)).await;
    let archive = archive.map_err(|error| failed(&error))?;
    let chunks = stream::try_unfold(archive, |mut archive| {
        blocking(move || {
            let bytes = archive.step()?;
            Ok::<_, std::io::Error>(bytes.map(|bytes| (bytes, archive)))
        })
    });
    let disposition = HeaderValue::try_from(format!("attachment; filename=\"{name}\""))
        .expect("the file name of a chat is visible ASCII without quotes");
    let head = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/zip"),
        ),
        (header::CONTENT_DISPOSITION, disposition),
        (
            header::CACHE_CONTROL,
            HeaderValue::from_static("private, no-store"),
        ),
        (
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        ),
        (
            header::REFERRER_POLICY,
            HeaderValue::from_static("no-referrer"),
        ),
    ];
    Ok((head, Body::from_stream(chunks)).into_response())
}

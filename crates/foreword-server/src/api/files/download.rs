//! A chat's outputs, one by one, as web servers serve files.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::Path,
};

use axum::{
    body::Body,
    extract::State,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures::stream;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use percent_encoding::utf8_percent_encode;
use serde::Deserialize;
use utoipa::IntoParams;

use super::{
    blocking, failed,
    range::{self, Wanted},
    uploads::file_name,
};
use crate::{
    api::openapi::FileProblems,
    app::App,
    error::ApiError,
    extract::{FilePath, Query},
    links::UNRESERVED,
    middleware::reader::Reader,
    pages::refusal,
    workspace::{
        files::{self, OpenFile},
        media, name, system_time,
    },
};

/// How much is read at a time.
const CHUNK: u64 = 256 << 10;

/// How to serve a file.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct DownloadQuery {
    /// `1` to save it rather than show it.
    download: Option<String>,
}

/// Serves an output: whole or a range of it, with conditions.
///
/// Browsers show what cannot run (images but SVG, PDF, plain text, audio, video) and save everything else.
#[utoipa::path(
    get, path = "/files/{chat_id}/{path}", tag = "files",
    params(
        ("chat_id" = String, Path, description = "The chat, or a capability for it"),
        ("path" = String, Path, description = "The file"),
        DownloadQuery,
    ),
    responses(
        (status = 200, description = "The file", content_type = "application/octet-stream"),
        (status = 206, description = "The range of it that was asked for"),
        (status = 416, description = "The range lies behind the end"),
        FileProblems,
    ),
)]
pub(crate) async fn get_file(
    State(app): State<App>,
    reader: Reader,
    FilePath(path): FilePath,
    Query(query): Query<DownloadQuery>,
    headers: HeaderMap,
) -> Response {
    let served = serve_file(&app, &reader, path, &query, &headers).await;
    served.unwrap_or_else(|error| refusal::answer(error, &headers))
}

pub(super) async fn serve_file(
    app: &App,
    reader: &Reader,
    path: Vec<u8>,
    query: &DownloadQuery,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    let path = name::relative_path(path).ok_or_else(no_such_file)?;
    let workspace = reader.workspace(app).await?.ok_or_else(no_such_file)?;
    let opened = {
        let path = path.clone();
        blocking(move || files::open(workspace.outputs(), &path)).await
    };
    let opened = opened
        .map_err(|error| failed(&error))?
        .ok_or_else(no_such_file)?;
    let saves = query
        .download
        .as_ref()
        .is_some_and(|download| download != "0");
    answer(opened, &path, saves, headers).await
}

async fn answer(
    opened: OpenFile,
    path: &Path,
    saves: bool,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    let size = opened.size;
    let modified = system_time(opened.modified);
    let tag = format!(
        "\"{size:x}-{:x}-{:x}\"",
        opened.modified.as_nanosecond(),
        opened.inode
    );
    let wanted = range::wanted(headers, size, &tag, modified);
    let (status, first, length) = match wanted {
        Wanted::Whole => (StatusCode::OK, 0, size),
        Wanted::Part { first, last } => (StatusCode::PARTIAL_CONTENT, first, last - first + 1),
        Wanted::Nothing => (StatusCode::RANGE_NOT_SATISFIABLE, 0, 0),
        Wanted::NotModified => (StatusCode::NOT_MODIFIED, 0, 0),
    };
    let body = if length == 0 {
        Body::empty()
    } else {
        stream_of(opened.file, first, length).await?
    };
    let mut response = (status, body).into_response();
    let head = response.headers_mut();
    head.insert(header::ETAG, value(&tag));
    head.insert(
        header::LAST_MODIFIED,
        value(&httpdate::fmt_http_date(modified)),
    );
    head.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    head.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("private, no-cache"),
    );
    describe(head, path, saves);
    match wanted {
        Wanted::Part { first, last } => {
            head.insert(
                header::CONTENT_RANGE,
                value(&format!("bytes {first}-{last}/{size}")),
            );
        }
        Wanted::Nothing => {
            head.insert(header::CONTENT_RANGE, value(&format!("bytes */{size}")));
        }
        Wanted::Whole | Wanted::NotModified => {}
    }
    if wanted != Wanted::NotModified {
        head.insert(header::CONTENT_LENGTH, length.into());
    }
    Ok(response)
}

/// What the file is and what a browser may do with it.
fn describe(head: &mut HeaderMap, path: &Path, saves: bool) {
    let media_type = media::media_type(path);
    let content_type = if media::is_text(media_type) {
        value(&format!("{media_type}; charset=utf-8"))
    } else {
        HeaderValue::from_static(media_type)
    };
    head.insert(header::CONTENT_TYPE, content_type);
    let is_inline = media::is_inline(media_type) && !saves;
    head.insert(
        header::CONTENT_DISPOSITION,
        disposition(is_inline, &file_name(path)),
    );
    // Browsers show PDF in a viewer of their own, which a sandbox would break.
    if media_type != "application/pdf" {
        head.insert(
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static("sandbox"),
        );
    }
    head.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    head.insert(
        header::REFERRER_POLICY,
        HeaderValue::from_static("no-referrer"),
    );
}

/// The name twice: for all, and for those who read RFC 8187.
fn disposition(is_inline: bool, name: &str) -> HeaderValue {
    let word = if is_inline { "inline" } else { "attachment" };
    let plain: String = name
        .chars()
        .map(|c| match c {
            '"' | '\\' | '%' => '_',
            c if c.is_ascii_graphic() || c == ' ' => c,
            _ => '_',
        })
        .collect();
    let encoded = utf8_percent_encode(name, UNRESERVED);
    value(&if plain == name {
        format!("{word}; filename=\"{plain}\"")
    } else {
        format!("{word}; filename=\"{plain}\"; filename*=UTF-8''{encoded}")
    })
}

/// The bytes, a chunk at a time; a file that became shorter breaks the connection rather than the promise.
async fn stream_of(mut file: File, first: u64, length: u64) -> Result<Body, ApiError> {
    let file = blocking(move || -> io::Result<File> {
        file.seek(SeekFrom::Start(first))?;
        Ok(file)
    })
    .await
    .map_err(|error| failed(&error))?;
    let chunks = stream::try_unfold((file, length), |(mut file, left)| {
        blocking(move || -> io::Result<Option<(Bytes, (File, u64))>> {
            if left == 0 {
                return Ok(None);
            }
            let wanted = left.min(CHUNK);
            let mut chunk = Vec::new();
            let count = (&mut file).take(wanted).read_to_end(&mut chunk)? as u64;
            if count < wanted {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            Ok(Some((chunk.into(), (file, left - count))))
        })
    });
    Ok(Body::from_stream(chunks))
}

pub(super) fn no_such_file() -> ApiError {
    ApiError::new(
        StatusCode::NOT_FOUND,
        "file_not_found",
        "there is no such file in this chat's outputs",
    )
}

fn value(text: &str) -> HeaderValue {
    HeaderValue::try_from(text).expect("what is put in here is visible ASCII")
}

//! Bodies that become files: read piece by piece, each within a time, and written off the async threads.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::{Body, BodyDataStream},
    extract::{FromRequest, Multipart, Request, multipart::Field},
};
use bytes::{Bytes, BytesMut};
use futures::Stream;
use http::{StatusCode, request::Parts};
use http_body::Body as _;
use http_body_util::BodyExt;
use tokio::time::timeout;

use super::blocking;
use crate::{
    error::ApiError,
    workspace::uploads::{Part, UploadError},
};

/// How much is written at a time.
const CHUNK: usize = 256 << 10;

/// How much of a form may be read ahead of what is taken out of it: more than headers of parts need.
const AHEAD: u64 = 512 << 10;

/// How much of a body that was refused is still read, so that the client comes to read the answer.
const DISCARDED: u64 = 64 << 20;

/// What a part of a form is called that holds the file.
const FILE_FIELD: &str = "file";

/// Writes an upload as it arrives.
struct Writer {
    part: Option<Part>,
    waiting: BytesMut,
}

impl Writer {
    fn new(part: Part) -> Self {
        Self {
            part: Some(part),
            waiting: BytesMut::new(),
        }
    }

    async fn take(&mut self, bytes: &[u8]) -> Result<(), ApiError> {
        self.waiting.extend_from_slice(bytes);
        if self.waiting.len() >= CHUNK {
            self.flush().await?;
        }
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), ApiError> {
        let bytes = self.waiting.split();
        let mut part = self
            .part
            .take()
            .expect("nothing is written after a failure");
        let written = blocking(move || -> Result<Part, UploadError> {
            part.write(&bytes)?;
            Ok(part)
        });
        self.part = Some(written.await?);
        Ok(())
    }

    async fn finish(mut self) -> Result<Part, ApiError> {
        self.flush().await?;
        Ok(self.part.expect("a flush leaves the part"))
    }
}

/// Writes a body as it is.
pub(super) async fn receive_raw(
    mut body: Body,
    part: Part,
    patience: Duration,
) -> Result<Part, ApiError> {
    let mut writer = Writer::new(part);
    let received = async {
        while let Some(bytes) = next_bytes(&mut body, patience).await? {
            writer.take(&bytes).await?;
        }
        Ok(())
    };
    if let Err(error) = received.await {
        discard(body, patience).await;
        return Err(error);
    }
    writer.finish().await
}

/// Writes the one file of a form.
pub(super) async fn receive_form(
    parts: Parts,
    body: Body,
    part: Part,
    patience: Duration,
) -> Result<Part, ApiError> {
    let taken = Arc::new(AtomicU64::new(0));
    let body = Body::from_stream(Paced::new(body, Arc::clone(&taken)));
    let request = Request::from_parts(parts, body);
    let mut form = Multipart::from_request(request, &())
        .await
        .map_err(|_| not_a_form())?;
    let mut unused = Some(part);
    let mut written = None;
    while let Some(mut field) = within(patience, form.next_field()).await? {
        if field.name() != Some(FILE_FIELD) {
            while next_chunk(&mut field, patience, &taken).await?.is_some() {}
            continue;
        }
        let part = unused.take().ok_or_else(|| {
            ApiError::new(
                StatusCode::BAD_REQUEST,
                "several_files",
                "a form brings one `file`; send each with its own name",
            )
        })?;
        let mut writer = Writer::new(part);
        while let Some(bytes) = next_chunk(&mut field, patience, &taken).await? {
            if let Err(error) = writer.take(&bytes).await {
                discard_field(&mut field, patience, &taken).await;
                return Err(error);
            }
        }
        written = Some(writer.finish().await?);
    }
    written.ok_or_else(|| {
        ApiError::new(
            StatusCode::BAD_REQUEST,
            "no_file",
            "the form has no field `file`",
        )
    })
}

/// Reads what is left of a body that nobody wants, up to a point.
pub(super) async fn discard(mut body: Body, patience: Duration) {
    let mut discarded = 0;
    while discarded < DISCARDED
        && let Ok(Some(bytes)) = next_bytes(&mut body, patience).await
    {
        discarded += bytes.len() as u64;
    }
}

async fn discard_field(field: &mut Field<'_>, patience: Duration, taken: &AtomicU64) {
    let mut discarded = 0;
    while discarded < DISCARDED
        && let Ok(Some(bytes)) = next_chunk(field, patience, taken).await
    {
        discarded += bytes.len() as u64;
    }
}

/// How long a body is, where its client says so.
pub(super) fn declared_length(body: &Body) -> Option<u64> {
    body.size_hint().exact()
}

async fn next_bytes(body: &mut Body, patience: Duration) -> Result<Option<Bytes>, ApiError> {
    loop {
        let Some(frame) = timeout(patience, body.frame())
            .await
            .map_err(|_| too_slow(patience))?
        else {
            return Ok(None);
        };
        if let Ok(bytes) = frame.map_err(|_| incomplete())?.into_data() {
            return Ok(Some(bytes));
        }
    }
}

async fn next_chunk(
    field: &mut Field<'_>,
    patience: Duration,
    taken: &AtomicU64,
) -> Result<Option<Bytes>, ApiError> {
    let chunk = within(patience, field.chunk()).await?;
    if let Some(chunk) = &chunk {
        taken.fetch_add(chunk.len() as u64, Ordering::Relaxed);
    }
    Ok(chunk)
}

async fn within<T>(
    patience: Duration,
    reading: impl Future<Output = Result<T, axum::extract::multipart::MultipartError>>,
) -> Result<T, ApiError> {
    timeout(patience, reading)
        .await
        .map_err(|_| too_slow(patience))?
        .map_err(|_| incomplete())
}

fn too_slow(patience: Duration) -> ApiError {
    ApiError::new(
        StatusCode::REQUEST_TIMEOUT,
        "request_timed_out",
        format!("nothing arrived for {} s", patience.as_secs()),
    )
}

fn incomplete() -> ApiError {
    ApiError::new(
        StatusCode::BAD_REQUEST,
        "incomplete_body",
        "the body ended before it was complete, or is no form",
    )
}

pub(super) fn not_a_form() -> ApiError {
    ApiError::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "unsupported_media_type",
        "`POST` takes a form (`multipart/form-data`) with the field `file`; `PUT` takes the file itself as the body",
    )
}

/// A body for the reader of forms, which would read as fast as it can and keep all of it: here it gets one piece at a
/// time, and an error where what it keeps grows too large, as it does when a header has no end.
struct Paced {
    body: BodyDataStream,
    taken: Arc<AtomicU64>,
    given: u64,
    rests: bool,
}

impl Paced {
    fn new(body: Body, taken: Arc<AtomicU64>) -> Self {
        Self {
            body: body.into_data_stream(),
            taken,
            given: 0,
            rests: false,
        }
    }
}

impl Stream for Paced {
    type Item = Result<Bytes, axum::BoxError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if std::mem::take(&mut self.rests) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let polled = Pin::new(&mut self.body).poll_next(context);
        if let Poll::Ready(Some(Ok(bytes))) = &polled {
            let kept = self
                .given
                .saturating_sub(self.taken.load(Ordering::Relaxed));
            if kept > AHEAD {
                return Poll::Ready(Some(Err(
                    "a part of the form has headers without an end".into()
                )));
            }
            self.given += bytes.len() as u64;
            self.rests = true;
        }
        polled.map(|item| item.map(|item| item.map_err(Into::into)))
    }
}

//! Reads bodies: whole, within a number of bytes and a time, and in a memory that all requests share.
//!
//! Callers were let in before. What they may still do is send slowly: each connection can hold a small body, but large ones
//! are bounded together, so that a thousand stalled uploads cost no more than a few.

use std::{sync::Arc, time::Duration};

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::{Extensions, StatusCode};
use http_body::Body as _;
use http_body_util::BodyExt;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout_at},
};

use crate::error::ApiError;

/// Up to which size a body, in bytes, needs no share of the memory.
const SMALL_BODY: usize = 64 << 10;

/// What one permit stands for, in bytes.
const UNIT: usize = 1 << 10;

/// How many times the limit is read and thrown away before the connection is cut.
const DISCARDED_BODIES: usize = 4;

/// A body that the route's guard has read to its end.
#[derive(Debug, Clone)]
pub(crate) struct WholeBody(pub(crate) Bytes);

impl WholeBody {
    /// The body of the request that these extensions belong to.
    pub(crate) fn of(extensions: &Extensions) -> Bytes {
        let body = extensions.get::<Self>();
        let Self(bytes) = body.expect("every route has a guard in `router.rs` that reads the body");
        bytes.clone()
    }
}

/// The share of a body that is passed on, for its handler to give back.
#[derive(Clone)]
pub(crate) struct PassedShare(pub(crate) Arc<Share>);

/// How long a body that says itself that it is too large is read before that is answered.
const TO_DISCARD: Duration = Duration::from_secs(2);

/// The memory for the bodies of all requests.
pub(crate) struct BodyMemory {
    units: Arc<Semaphore>,
    most: u32,
}

/// A body's share of the memory, to be kept as long as the body.
pub(crate) struct Share {
    _units: Option<OwnedSemaphorePermit>,
}

impl BodyMemory {
    /// A memory of so many bytes; one body fits in any case.
    pub(crate) fn new(bytes: usize) -> Self {
        let most = u32::try_from(bytes / UNIT)
            .unwrap_or(u32::MAX)
            .clamp(1, u32::try_from(Semaphore::MAX_PERMITS).unwrap_or(u32::MAX));
        Self {
            units: Arc::new(Semaphore::new(most as usize)),
            most,
        }
    }

    /// Reads a body to its end, or refuses it: 413 when it is too large, 408 when it takes too long, 503 when there is
    /// no memory for it in that time.
    pub(crate) async fn read(
        &self,
        body: Body,
        max_bytes: usize,
        time_limit: Duration,
    ) -> Result<(Bytes, Share), ApiError> {
        if body.is_end_stream() {
            return Ok((Bytes::new(), Share { _units: None }));
        }
        Box::pin(self.read_frames(body, max_bytes, time_limit)).await
    }

    async fn read_frames(
        &self,
        body: Body,
        max_bytes: usize,
        time_limit: Duration,
    ) -> Result<(Bytes, Share), ApiError> {
        let declared = body.size_hint().lower();
        let is_too_large = declared > max_bytes as u64;
        let to_read = if is_too_large {
            time_limit.min(TO_DISCARD)
        } else {
            time_limit
        };
        let deadline = Instant::now() + to_read;
        let mut reading = Reading {
            // A client that declares no length may send as much as it likes.
            expected: body
                .size_hint()
                .upper()
                .and_then(|declared| usize::try_from(declared).ok())
                .map_or(max_bytes, |declared| declared.min(max_bytes)),
            max_bytes,
            body,
            kept: BytesMut::new(),
            received: 0,
        };
        let late = |_| {
            if is_too_large {
                return ApiError::body_too_large(max_bytes);
            }
            ApiError::new(
                StatusCode::REQUEST_TIMEOUT,
                "request_timed_out",
                format!("the body did not arrive within {} s", time_limit.as_secs()),
            )
        };
        let small = timeout_at(deadline, reading.until(SMALL_BODY)).await;
        if small.map_err(late)?? {
            return Ok((reading.finish()?, Share { _units: None }));
        }
        let units = timeout_at(deadline, self.reserve(reading.expected)).await;
        let mut units = units.map_err(|_| {
            ApiError::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "busy",
                "the bodies of other requests take all the memory there is for them; try again later",
            )
        })?;
        let rest = timeout_at(deadline, reading.until(usize::MAX)).await;
        rest.map_err(late)??;
        let body = reading.finish()?;
        // What was set aside and is not needed is there for others.
        let needed = body.len().div_ceil(UNIT);
        drop(units.split(units.num_permits().saturating_sub(needed)));
        let share = Share {
            _units: Some(units),
        };
        Ok((body, share))
    }

    async fn reserve(&self, bytes: usize) -> OwnedSemaphorePermit {
        let units = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX);
        Arc::clone(&self.units)
            .acquire_many_owned(units.min(self.most))
            .await
            .expect("the semaphore is never closed")
    }
}

/// A body that is being read.
struct Reading {
    body: Body,
    expected: usize,
    max_bytes: usize,
    kept: BytesMut,
    received: usize,
}

impl Reading {
    /// Reads until more than `pause` bytes have come; answers whether the body has ended.
    ///
    /// A body over the limit is still read for a while, without keeping it: a client that is answered and cut off in the
    /// middle of sending would see a broken connection rather than the answer.
    async fn until(&mut self, pause: usize) -> Result<bool, ApiError> {
        while self.received <= pause {
            let Some(frame) = self.body.frame().await else {
                return Ok(true);
            };
            let frame = frame.map_err(|_| {
                ApiError::new(
                    StatusCode::BAD_REQUEST,
                    "incomplete_body",
                    "the connection broke before the body was complete",
                )
            })?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            self.received = self.received.saturating_add(data.len());
            if self.received <= self.max_bytes {
                self.kept.extend_from_slice(&data);
            } else {
                self.kept = BytesMut::new();
            }
            if self.received > self.max_bytes.saturating_mul(DISCARDED_BODIES + 1) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn finish(self) -> Result<Bytes, ApiError> {
        if self.received <= self.max_bytes {
            Ok(self.kept.freeze())
        } else {
            Err(ApiError::body_too_large(self.max_bytes))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: usize = 100 << 10;
    const LIMIT: Duration = Duration::from_millis(100);

    async fn read(memory: &BodyMemory, bytes: usize) -> Result<(Bytes, Share), ApiError> {
        memory.read(vec![b' '; bytes].into(), LARGE, LIMIT).await
    }

    #[tokio::test]
    async fn large_bodies_share_a_memory_and_small_ones_need_none_of_it() {
        let memory = BodyMemory::new(LARGE + SMALL_BODY);
        let (first, share) = read(&memory, LARGE).await.expect("there is room for one");
        assert_eq!(first.len(), LARGE);
        let refused = read(&memory, LARGE).await.err();
        assert_eq!(refused.map(|error| error.code), Some("busy"));
        assert!(read(&memory, SMALL_BODY).await.is_ok());
        assert!(
            read(&memory, SMALL_BODY + 1)
                .await
                .is_err_and(|error| error.code == "busy")
        );
        drop(share);
        assert!(read(&memory, LARGE).await.is_ok());
    }

    #[tokio::test]
    async fn a_body_larger_than_the_whole_memory_has_it_for_itself() {
        let memory = BodyMemory::new(1);
        let (body, _share) = read(&memory, LARGE).await.expect("nobody else is there");
        assert_eq!(body.len(), LARGE);
        let too_large = read(&memory, LARGE + 1).await.err();
        assert_eq!(too_large.map(|error| error.code), Some("busy"));
    }
}

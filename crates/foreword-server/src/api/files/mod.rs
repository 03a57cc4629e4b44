//! A chat's files over HTTP: uploads in, outputs out.
//!
//! Bodies and files pass in pieces; whatever can block does so off the async threads.

pub(crate) mod archive;
pub(crate) mod chats;
pub(crate) mod download;
mod incoming;
pub(crate) mod outputs;
mod range;
pub(crate) mod uploads;

use std::{io, path::Path};

use percent_encoding::{AsciiSet, percent_encode};

use crate::{error::ApiError, links::UNRESERVED};

/// What may stand in the path of a file as it is.
const PATH: &AsciiSet = &UNRESERVED.remove(b'/');

/// The path of a file in a URL.
fn encoded(path: &Path) -> String {
    percent_encode(path.as_os_str().as_encoded_bytes(), PATH).to_string()
}

/// Does what may block where it holds up nobody.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work)
        .await
        .expect("work with files does not panic, and nobody cancels it")
}

fn failed(error: &io::Error) -> ApiError {
    error.into()
}

//! What the server and our program in a container say to each other, over a stream that the engine passes on.
//!
//! One stream carries everything, so each message is a frame: what it is, which request it belongs to, how long it is. The server greets
//! first, and whoever is there greets back once it is ready. Only why a container ended is not in the stream, whose last bytes may be lost,
//! but in the status that it ends with ([`status_of`]).

use std::{io, path::PathBuf, time::Duration};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use serde::{Deserialize, Serialize};

use super::carry::Survey;
use crate::{
    command::{CommandEnd, Restart},
    error::FileError,
    operation::{FileAnswer, FileOperation},
    spec::{OUTPUTS, SKILLS, UPLOADS},
    state::Usage,
};

/// Kind, request, length.
const HEADER_BYTES: usize = 1 + 4 + 4;
/// The longest that a frame to a container may be: a command of a mebibyte whose every byte may have
/// to be escaped, or all the paths of a place.
pub(crate) const MOST_ASKED_BYTES: usize = 16 << 20;
/// The longest that a frame from a container may be: a listing of ten thousand long names, or a survey.
pub(crate) const MOST_ANSWERED_BYTES: usize = 32 << 20;
/// Which frames there are and what they mean: with it a container greets, so that a server does not speak to another one.
pub(crate) const VERSION: [u8; 2] = [0, 2];
/// How much content goes into a frame.
pub(crate) const PIECE_BYTES: usize = 64 << 10;
/// How many pieces of content may be under way to a container without its word that it took one.
pub(crate) const PIECES_UNDER_WAY: usize = 4;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// The server is there; the other side answers with the same.
    Hello = 1,
    /// Do this: [`Ask`].
    Ask,
    /// The next piece of the content of a file to write.
    Content,
    /// Nobody waits for this request any more.
    Cancel,
    /// A request has arrived.
    Accepted,
    /// The next piece of a command's output, or of a file's content.
    Output,
    /// A piece of content was taken.
    Taken,
    /// A request is done: [`Answer`].
    Done,
    /// The container could not be made into a sandbox, for this reason, and ends.
    NotMade,
}

impl Kind {
    fn from_byte(byte: u8) -> Option<Self> {
        use Kind::{Accepted, Ask, Cancel, Content, Done, Hello, NotMade, Output, Taken};
        [
            Hello, Ask, Content, Cancel, Accepted, Output, Taken, Done, NotMade,
        ]
        .into_iter()
        .find(|kind| *kind as u8 == byte)
    }
}

/// One message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: Kind,
    pub(crate) id: u32,
    pub(crate) payload: Bytes,
}

/// With what the server greets. The first greeting also says what the sandbox is like.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Hello {
    /// What the sandbox is like, if this is the first.
    pub(crate) terms: Option<Terms>,
}

/// What a sandbox in a container is like, as far as the engine does not see to it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Terms {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) open_files: u64,
    /// 0 is without limit.
    pub(crate) quota_bytes: u64,
    pub(crate) min_free_bytes: u64,
    pub(crate) guard_period: Duration,
    /// What counts against the quota.
    pub(crate) counted: Vec<PathBuf>,
}

/// What is asked for.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Ask {
    Run {
        script: String,
        environment: Vec<(String, String)>,
        limit: Duration,
    },
    File(FileOperation),
    /// What the workspace holds, if that is too much.
    OverQuota,
    /// Whether anything runs besides what was asked for.
    Background,
    /// What is in a place.
    Survey(Place),
    /// Deletes these, then makes these directories.
    Arrange {
        place: Place,
        gone: Vec<String>,
        directories: Vec<String>,
    },
    /// Takes a file of so many bytes.
    Bring {
        place: Place,
        path: String,
        bytes: u64,
        modified: i64,
    },
    /// Gives a part of a file.
    Fetch {
        place: Place,
        path: String,
        offset: u64,
        limit: u64,
    },
}

/// A place whose files are carried to containers that do not see the server's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Place {
    Uploads,
    Outputs,
    Skills,
}

impl Place {
    /// Where it is in a container.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Uploads => UPLOADS,
            Self::Outputs => OUTPUTS,
            Self::Skills => SKILLS,
        }
    }
}

/// How it went.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    Ran(CommandEnd),
    File(FileAnswer),
    OverQuota(Option<Usage>),
    Background(bool),
    Survey(Survey),
    Arranged,
    Brought,
    /// How long the file is; the bytes came before.
    Fetched(u64),
    Failed(Failure),
}

/// Why it could not be done; see [`RunError`](crate::pooled::RunError).
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Failure {
    NoProcessLeft,
    NotBegun,
    Ended,
    File(FileError),
    Other(String),
}

/// For what our program ends a container by itself, and with which status, which no shell, engine or signal gives.
const STATUSES: [(Restart, i32); 2] = [(Restart::WroteTooMuch, 81), (Restart::FilledDisk, 82)];

/// The status of a container that ends for this. An engine keeps it until the container is removed; of what is said last, Podman passes
/// on nothing if somebody speaks to the container at that moment.
pub(crate) fn status_of(restart: Restart) -> i32 {
    let mut statuses = STATUSES.into_iter();
    statuses
        .find(|(other, _)| *other == restart)
        .map_or(0, |(_, status)| status)
}

/// What the next one has to tell if a container ended with this status.
pub(crate) fn restart_of(status: i64) -> Option<Restart> {
    let mut statuses = STATUSES.into_iter();
    statuses
        .find(|(_, other)| i64::from(*other) == status)
        .map(|(restart, _)| restart)
}

/// Writes one message.
pub(crate) fn frame(kind: Kind, id: u32, payload: &[u8]) -> Bytes {
    let mut bytes = BytesMut::with_capacity(HEADER_BYTES + payload.len());
    bytes.put_u8(kind as u8);
    bytes.put_u32(id);
    // No payload is longer than a frame may be, which is far below this.
    bytes.put_u32(u32::try_from(payload.len()).unwrap_or(u32::MAX));
    bytes.put_slice(payload);
    bytes.freeze()
}

/// Writes one message whose payload is a value.
pub(crate) fn value_frame(kind: Kind, id: u32, value: &impl Serialize) -> io::Result<Bytes> {
    Ok(frame(kind, id, &serde_json::to_vec(value)?))
}

/// Reads messages from bytes as they come.
#[derive(Debug)]
pub(crate) struct Decoder {
    bytes: BytesMut,
    most: usize,
}

impl Decoder {
    /// Reads frames that are no longer than `most`.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            bytes: BytesMut::new(),
            most,
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Takes the next message, if it is complete.
    pub(crate) fn next(&mut self) -> io::Result<Option<Frame>> {
        if self.bytes.len() < HEADER_BYTES {
            return Ok(None);
        }
        let mut header = &self.bytes[..HEADER_BYTES];
        let kind = Kind::from_byte(header.get_u8()).ok_or(io::ErrorKind::InvalidData)?;
        let (id, length) = (header.get_u32(), header.get_u32() as usize);
        if length > self.most {
            return Err(io::ErrorKind::InvalidData.into());
        }
        if self.bytes.len() < HEADER_BYTES + length {
            self.bytes.reserve(HEADER_BYTES + length - self.bytes.len());
            return Ok(None);
        }
        self.bytes.advance(HEADER_BYTES);
        let payload = self.bytes.split_to(length).freeze();
        Ok(Some(Frame { kind, id, payload }))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(decoder: &mut Decoder) -> Vec<Frame> {
        std::iter::from_fn(|| decoder.next().unwrap()).collect()
    }

    #[test]
    fn what_is_no_frame_and_what_is_too_long_is_refused() {
        let mut decoder = Decoder::new(10);
        decoder.push(&[200; 20]);
        assert!(decoder.next().is_err());
        let mut decoder = Decoder::new(10);
        decoder.push(&frame(Kind::Done, 0, &[0; 11]));
        assert!(decoder.next().is_err());
        let mut decoder = Decoder::new(10);
        decoder.push(&frame(Kind::Done, 0, &[0; 10]));
        assert!(decoder.next().unwrap().is_some());
    }

    proptest! {
        #[test]
        fn frames_arrive_however_they_are_cut(
            payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..10),
            piece in 1_usize..40,
        ) {
            let kinds = [Kind::Hello, Kind::Output, Kind::NotMade];
            let sent: Vec<_> = payloads
                .into_iter()
                .enumerate()
                .map(|(number, payload)| Frame {
                    kind: kinds[number % 3],
                    id: u32::try_from(number).unwrap(),
                    payload: payload.into(),
                })
                .collect();
            let bytes: Vec<u8> = sent
                .iter()
                .flat_map(|sent| frame(sent.kind, sent.id, &sent.payload))
                .collect();
            let mut decoder = Decoder::new(50);
            let mut received = Vec::new();
            for piece in bytes.chunks(piece) {
                decoder.push(piece);
                received.extend(all(&mut decoder));
            }
            prop_assert_eq!(received, sent);
        }
    }
}

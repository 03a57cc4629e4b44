//! Asks a running sandbox to work on files, and moves content in and out.
//!
//! What comes back was written by a process inside, so its lengths are not believed beyond what was asked for.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    path::Path,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    time::timeout,
};

use super::{
    protocol::Request,
    sandbox::{Answer, Sandbox},
};
use crate::{
    error::{FileError, SandboxError},
    operation::{Done, FileAnswer, FileOperation, FileReply},
    pooled::RunError,
    spec::HOME,
};

/// How long work on files may take.
const PATIENCE: Duration = Duration::from_mins(1);
/// The longest answer, without a file's content.
const MOST_ANSWER_BYTES: u32 = 16 << 20;

/// Does `operation`, giving it what `content` holds if it writes.
pub(crate) async fn work(
    sandbox: &Arc<Sandbox>,
    operation: &FileOperation,
    content: Option<&mut (dyn AsyncRead + Send + Unpin)>,
) -> Result<Done, RunError> {
    let _running = sandbox.work.begin().ok_or(RunError::NotBegun)?;
    let (path, most) = (operation.path(), operation.most_content());
    let (ours, theirs) = UnixStream::pair()?;
    let theirs = OwnedFd::from(theirs.into_std()?);
    rustix::io::ioctl_fionbio(&theirs, false).map_err(io::Error::from)?;
    let mut expected = sandbox.expect_answer();
    let request = Request::File {
        id: expected.id,
        operation: operation.clone(),
    };
    let sent = sandbox.send(&request, &[theirs.as_fd()]).await;
    drop(theirs);
    match sent {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::ArgumentListTooLong => {
            return Err(invalid_path(path));
        }
        Err(error) => return Err(RunError::not_sent(error)),
    }
    let (mut from, mut to) = ours.into_split();
    let exchange = async {
        // What cannot be written because the other side gave up is explained by its answer.
        let (_, answer) = tokio::join!(
            send_content(&mut to, content),
            receive_answer(&mut from, most)
        );
        answer
    };
    match timeout(PATIENCE, exchange).await {
        Ok(Ok((Ok(answer), content))) => {
            if matches!(operation, FileOperation::Write { .. }) {
                sandbox.usage.recount();
            }
            return Ok(Done { answer, content });
        }
        Ok(Ok((Err(error), _))) => return Err(RunError::Failed(error.into())),
        Ok(Err(_)) => {}
        Err(_) => sandbox.send_later(Request::Kill { id: expected.id }, None),
    }
    // It ended without an answer. It is said soon which way; what hangs is being killed.
    match timeout(PATIENCE, &mut expected.answer).await {
        Ok(Ok(Answer::NotStarted)) => Err(RunError::NoProcessLeft),
        Ok(Err(_)) => Err(RunError::Ended),
        Ok(Ok(Answer::Ended(_) | Answer::Stuck)) | Err(_) => Err(RunError::Failed(
            SandboxError::File(FileError::Interrupted(Path::new(HOME).join(path))),
        )),
    }
}

async fn send_content(
    to: &mut OwnedWriteHalf,
    content: Option<&mut (dyn AsyncRead + Send + Unpin)>,
) -> io::Result<()> {
    match content {
        None => Ok(()),
        Some(content) => tokio::io::copy(content, to).await.map(drop),
    }
}

async fn receive_answer(from: &mut OwnedReadHalf, most: u64) -> io::Result<(FileReply, Bytes)> {
    let length = from.read_u32().await?;
    if length > MOST_ANSWER_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut reply = vec![0; length as usize];
    from.read_exact(&mut reply).await?;
    let reply: FileReply = serde_json::from_slice(&reply)?;
    let mut content = Vec::new();
    if let Ok(FileAnswer::Read { bytes, .. }) = &reply {
        // A file may have become shorter meanwhile.
        from.take((*bytes).min(most))
            .read_to_end(&mut content)
            .await?;
    }
    Ok((reply, content.into()))
}

fn invalid_path(path: &Path) -> RunError {
    let reason = "it is too long".to_owned();
    RunError::Failed(SandboxError::File(FileError::InvalidPath {
        path: path.to_owned(),
        reason,
    }))
}

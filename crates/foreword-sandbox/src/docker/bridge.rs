//! Leads a server that comes back to the agent of a container: between standard input and output and the agent's socket.
//!
//! The stream to the first process ended with the server before, and not every engine gives another one.

use std::{
    io::{self, Read, Write},
    net::Shutdown,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    thread,
};

const BUFFER_BYTES: usize = 64 << 10;

/// Where the agent listens.
pub(super) fn socket() -> PathBuf {
    Path::new(super::MEETING_PLACE).join("agent.sock")
}

/// Ends when either side does; gives the status to end with.
pub(super) fn main() -> i32 {
    match lead() {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("there is no agent: {error}");
            1
        }
    }
}

fn lead() -> io::Result<()> {
    let mut from_agent = UnixStream::connect(socket())?;
    let mut to_agent = from_agent.try_clone()?;
    thread::spawn(move || {
        let _ = pass_on(&mut io::stdin().lock(), &mut to_agent);
        // Nobody is there any more; passing on the other way ends by this, too.
        let _ = to_agent.shutdown(Shutdown::Both);
    });
    pass_on(&mut from_agent, &mut io::stdout().lock())
}

/// Passes on what comes as it comes. `io::copy` would have the kernel move it, which may keep a little back until there is more.
fn pass_on(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                to.write_all(&buffer[..count])?;
                to.flush()?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_is_passed_on_before_there_is_more() {
        let (mut ours, mut from) = UnixStream::pair().unwrap();
        let (mut to, mut theirs) = UnixStream::pair().unwrap();
        let passing = thread::spawn(move || pass_on(&mut from, &mut to));
        for word in [b"one", b"two"] {
            ours.write_all(word).unwrap();
            let mut received = [0; 3];
            theirs.read_exact(&mut received).unwrap();
            assert_eq!(&received, word);
        }
        drop(ours);
        passing.join().unwrap().unwrap();
    }
}

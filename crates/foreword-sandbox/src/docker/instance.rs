//! Which containers are ours: a word that is made once in the data directory.
//!
//! It is locked while a server runs, so a second one with the same directory takes another word and does not touch the first one's
//! containers.

use std::{
    fs::{self, File, TryLockError},
    hash::{BuildHasher, Hasher, RandomState},
    io::{self, Read, Seek, Write},
    path::Path,
};

/// How many servers may share a data directory.
const MOST: u32 = 64;
const LENGTH: usize = 8;

/// The word, for as long as this is held.
#[derive(Debug)]
pub(super) struct Instance {
    word: String,
    _lock: Option<File>,
}

impl Instance {
    /// Takes the first word of the data directory that no other server has. Where nothing can be kept, the word is for this run only.
    pub(super) fn take(data_dir: &Path) -> Self {
        Self::take_kept(&data_dir.join("docker")).unwrap_or_else(|error| {
            tracing::warn!(%error, "The next start will not find this one's containers: nothing can be kept in the data directory");
            Self {
                word: new_word(),
                _lock: None,
            }
        })
    }

    fn take_kept(directory: &Path) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        for number in 1..=MOST {
            let mut file = File::options()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(directory.join(format!("instance-{number}")))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => continue,
                Err(TryLockError::Error(error)) => return Err(error),
            }
            let mut word = String::new();
            file.read_to_string(&mut word)?;
            if !is_word(&word) {
                word = new_word();
                file.set_len(0)?;
                file.rewind()?;
                file.write_all(word.as_bytes())?;
                file.sync_all()?;
            }
            return Ok(Self {
                word,
                _lock: Some(file),
            });
        }
        Err(io::Error::other(format!(
            "{MOST} servers use this data directory"
        )))
    }

    /// Words of the data directory that no server has now: theirs ended.
    pub(super) fn left(data_dir: &Path) -> Vec<String> {
        let Ok(entries) = fs::read_dir(data_dir.join("docker")) else {
            return Vec::new();
        };
        let instances = entries.flatten().filter(|entry| {
            let name = entry.file_name();
            name.to_str()
                .is_some_and(|name| name.starts_with("instance-"))
        });
        instances
            .filter_map(|entry| {
                let mut file = File::options().read(true).open(entry.path()).ok()?;
                file.try_lock().ok()?;
                let mut word = String::new();
                file.read_to_string(&mut word).ok()?;
                is_word(&word).then_some(word)
            })
            .collect()
    }

    pub(super) fn word(&self) -> &str {
        &self.word
    }
}

/// The word of a data directory, whichever server uses it: made once and never changed.
pub(super) fn word_of_data(data_dir: &Path) -> io::Result<String> {
    let directory = data_dir.join("docker");
    fs::create_dir_all(&directory)?;
    let file = directory.join("word");
    let made = tempfile::NamedTempFile::new_in(&directory)?;
    fs::write(made.path(), new_word())?;
    // The first one stays.
    match made.persist_noclobber(&file) {
        Err(error) if error.error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(error.error);
        }
        _ => {}
    }
    let word = fs::read_to_string(file)?;
    if is_word(&word) {
        Ok(word)
    } else {
        Err(io::Error::other(
            "`docker/word` in the data directory is no word of ours",
        ))
    }
}

/// Whether it is a word that [`new_word`] may have made.
pub(super) fn is_word(word: &str) -> bool {
    word.len() == LENGTH && word.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Eight characters that nobody else has. The keys of a hasher are random, and that is all there is to hash.
pub(super) fn new_word() -> String {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let number = RandomState::new().build_hasher().finish();
    (0..LENGTH)
        .map(|place| {
            let index = (number >> (place * 5)) & 31;
            char::from(ALPHABET[usize::try_from(index).unwrap_or_default()])
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_stays_and_is_for_one_server_at_a_time() {
        let place = tempfile::tempdir().unwrap();
        let first = Instance::take(place.path());
        let second = Instance::take(place.path());
        assert_ne!(first.word(), second.word());
        let word = first.word().to_owned();
        drop(first);
        assert_eq!(Instance::left(place.path()), std::slice::from_ref(&word));
        assert_eq!(Instance::take(place.path()).word(), word);
        assert_eq!(word.len(), LENGTH);
    }

    #[test]
    fn what_is_no_word_is_replaced() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("docker")).unwrap();
        fs::write(place.path().join("docker/instance-1"), "../../etc").unwrap();
        let word = Instance::take(place.path()).word().to_owned();
        assert!(
            word.bytes().all(|byte| byte.is_ascii_alphanumeric()),
            "{word}"
        );
    }
}

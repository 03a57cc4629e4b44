//! What has to be in an image for our program to run in it: the program itself and, unless it is static, its libraries and their
//! loader, so that it does not matter which the image has.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

/// Where it is in a container.
pub(super) const DIRECTORY: &str = ".foreword";

const OURSELVES: &str = "/proc/self/exe";

/// A program for containers.
#[derive(Debug, Clone)]
pub(super) struct Program {
    executable: PathBuf,
    libraries: Vec<PathBuf>,
}

impl Program {
    /// The one at `path`, which has to be static, or else this one.
    pub(super) fn find(path: Option<&Path>) -> io::Result<Self> {
        if let Some(path) = path {
            let about = |error: io::Error| {
                io::Error::new(
                    error.kind(),
                    format!("`sandbox.docker.program` ({}): {error}", path.display()),
                )
            };
            fs::File::open(path).map_err(about)?;
            return Ok(Self {
                executable: path.to_owned(),
                libraries: Vec::new(),
            });
        }
        if cfg!(not(target_os = "linux")) {
            return Err(io::Error::other(
                "containers need a program for Linux: set `sandbox.docker.program` to a static `foreword` for Linux",
            ));
        }
        Ok(Self {
            executable: OURSELVES.into(),
            libraries: libraries(&fs::read_to_string("/proc/self/maps")?),
        })
    }

    /// Whether it is this very program.
    pub(super) fn is_ours(&self) -> bool {
        self.executable == Path::new(OURSELVES)
    }

    /// Another program has another word.
    pub(super) fn stamp(&self) -> io::Result<String> {
        let found = fs::metadata(&self.executable)?;
        let changed = found.modified()?.duration_since(UNIX_EPOCH);
        let changed = changed.map_or(0, |since| since.as_nanos());
        Ok(format!(
            "{} {} {changed}",
            env!("CARGO_PKG_VERSION"),
            found.len()
        ))
    }

    /// Its files on this machine, and their names in a container.
    pub(super) fn files(&self) -> impl Iterator<Item = (&Path, String)> {
        let libraries = self.libraries.iter().filter_map(|library| {
            let name = library.file_name()?.to_str()?;
            Some((library.as_path(), format!("{DIRECTORY}/lib/{name}")))
        });
        [(self.executable.as_path(), format!("{DIRECTORY}/foreword"))]
            .into_iter()
            .chain(libraries)
    }

    /// How it is started in a container.
    pub(super) fn command(&self, argument: &str) -> Vec<String> {
        let executable = format!("/{DIRECTORY}/foreword");
        let loader = self
            .libraries
            .iter()
            .filter_map(|library| library.file_name()?.to_str())
            .find(|name| name.starts_with("ld-"));
        let mut words = match loader {
            None => Vec::new(),
            Some(loader) => vec![
                format!("/{DIRECTORY}/lib/{loader}"),
                "--library-path".to_owned(),
                format!("/{DIRECTORY}/lib"),
            ],
        };
        words.extend([executable, argument.to_owned()]);
        words
    }
}

/// The shared libraries of this process, of which `maps` is the list of mappings.
fn libraries(maps: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = maps
        .lines()
        .filter_map(|line| line.split_ascii_whitespace().nth(5))
        .filter(|path| path.starts_with('/'))
        .map(PathBuf::from)
        .filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.split('.').skip(1).any(|part| part == "so"))
        })
        .collect();
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_found_once_and_the_loader_starts_the_program() {
        let maps = "\
555 r-xp 0 fe:00 1 /usr/bin/foreword
7f1 r--p 0 fe:00 2 /usr/lib/x86_64-linux-gnu/libc.so.6
7f2 r-xp 1 fe:00 2 /usr/lib/x86_64-linux-gnu/libc.so.6
7f3 r-xp 1 fe:00 3 /usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2
7f4 rw-p 0 00:00 0 [stack]
7f5 rw-s 0 00:01 9 /dev/shm/something
";
        let program = Program {
            executable: "/x".into(),
            libraries: libraries(maps),
        };
        let names: Vec<_> = program.files().map(|(_, name)| name).collect();
        assert_eq!(
            names,
            [
                ".foreword/foreword",
                ".foreword/lib/ld-linux-x86-64.so.2",
                ".foreword/lib/libc.so.6"
            ]
        );
        assert_eq!(
            program.command("be"),
            [
                "/.foreword/lib/ld-linux-x86-64.so.2",
                "--library-path",
                "/.foreword/lib",
                "/.foreword/foreword",
                "be"
            ]
        );
        let program = Program {
            executable: "/x".into(),
            libraries: Vec::new(),
        };
        assert_eq!(program.command("be"), ["/.foreword/foreword", "be"]);
    }
}

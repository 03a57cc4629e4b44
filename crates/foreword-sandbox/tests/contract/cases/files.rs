//! File operations: they work inside, whatever links and special files there are.

use std::{
    fs,
    io::{Seek, Write},
    os::unix::fs::PermissionsExt,
    path::Path,
    time::Duration,
};

use bytes::Bytes;
use foreword_sandbox::{
    Content, FileError, FileKind, FileRead, InsteadOf, ListDirectory, ReadFile, SandboxError,
    WriteFile, Written,
};

use crate::support::{Backend, Chat};

super::cases! {
    a_file_is_read_whole_or_in_part
    a_file_that_does_not_know_its_size_is_read
    a_file_is_created_with_its_parents
    replacing_keeps_the_mode_and_follows_links
    a_file_that_may_not_be_written_is_not_replaced
    what_is_larger_than_memory_is_written_from_a_file
    an_unfinished_file_is_not_left_behind
    a_directory_is_listed_to_its_depth_and_no_further_than_asked
    what_is_missing_is_said_with_what_is_there
    pipes_and_devices_are_refused_and_do_not_block
    links_lead_nowhere_outside
    uploads_skills_and_the_system_are_read_only
    fault_9_skills_that_are_missing_are_left_out_and_all_else_works
    impossible_paths_are_errors_and_not_failures
    files_are_found_by_names_that_are_no_text
    a_directory_swapped_for_a_link_leads_nowhere_outside
}

async fn read(chat: &Chat, path: impl AsRef<Path>) -> Result<FileRead, FileError> {
    read_part(chat, path, 0, 1 << 20).await
}

async fn read_part(
    chat: &Chat,
    path: impl AsRef<Path>,
    offset: u64,
    limit: u64,
) -> Result<FileRead, FileError> {
    let read = ReadFile {
        path: path.as_ref().to_owned(),
        offset,
        limit,
    };
    file_error(chat.sandboxes.read_file(&chat.spec, read).await)
}

async fn write(
    chat: &Chat,
    path: impl AsRef<Path>,
    mode: Option<u32>,
    text: &str,
) -> Result<Written, FileError> {
    let content = Content::Bytes(Bytes::copy_from_slice(text.as_bytes()));
    let write = WriteFile {
        path: path.as_ref().to_owned(),
        instead_of: InsteadOf::File,
        mode,
        content,
    };
    file_error(chat.sandboxes.write_file(&chat.spec, write).await)
}

fn file_error<T>(result: Result<T, SandboxError>) -> Result<T, FileError> {
    result.map_err(|error| match error {
        SandboxError::File(error) => error,
        other => panic!("{other:?}"),
    })
}

fn list(path: &str, depth: u32, max_entries: u32) -> ListDirectory {
    ListDirectory {
        path: path.into(),
        depth,
        max_entries,
        hidden: false,
    }
}

async fn a_file_is_read_whole_or_in_part(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    chat.text("printf 0123456789 > digits; chmod 640 digits; : > empty")
        .await;
    let whole = read(&chat, "digits").await.unwrap();
    assert_eq!(
        (&whole.bytes[..], whole.stat.size, whole.stat.mode),
        (&b"0123456789"[..], 10, 0o640)
    );
    assert_eq!(
        &read_part(&chat, "/home/assistant/digits", 3, 4)
            .await
            .unwrap()
            .bytes[..],
        b"3456"
    );
    assert_eq!(
        &read_part(&chat, "digits", 8, 100).await.unwrap().bytes[..],
        b"89"
    );
    assert_eq!(
        &read_part(&chat, "digits", 100, 100).await.unwrap().bytes[..],
        b""
    );
    assert_eq!(
        &read_part(&chat, "digits", u64::MAX, 1)
            .await
            .map_err(|_| ())
            .map(|read| read.bytes)
            .unwrap_or_default()[..],
        b""
    );
    assert_eq!(read(&chat, "empty").await.unwrap().stat.size, 0);
    let directory = read(&chat, ".").await.unwrap();
    assert_eq!(
        (directory.stat.kind, directory.bytes.len()),
        (FileKind::Directory, 0)
    );
    let stat = chat
        .sandboxes
        .stat(&chat.spec, Path::new("digits"))
        .await
        .unwrap();
    assert_eq!((stat.kind, stat.size), (FileKind::File, 10));
}

async fn a_file_that_does_not_know_its_size_is_read(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    let whole = read(&chat, "/proc/cpuinfo").await.unwrap();
    assert_eq!(whole.stat.size, 0);
    assert!(whole.bytes.starts_with(b"processor"), "{whole:?}");
    let part = read_part(&chat, "/proc/cpuinfo", 4, 5).await.unwrap();
    assert_eq!(part.bytes, "essor");
    assert_eq!(
        read_part(&chat, "/proc/cpuinfo", 0, 0).await.unwrap().bytes,
        ""
    );
}

async fn a_file_is_created_with_its_parents(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    let written = write(&chat, "a/b/c.txt", None, "text").await.unwrap();
    assert_eq!(
        written,
        Written {
            created: true,
            mode: 0o644
        }
    );
    let written = write(
        &chat,
        "/mnt/user-data/outputs/run.sh",
        Some(0o755),
        "#!/bin/sh\necho ran\n",
    )
    .await
    .unwrap();
    assert_eq!(
        written,
        Written {
            created: true,
            mode: 0o755
        }
    );
    assert_eq!(
        chat.text("cat a/b/c.txt; /mnt/user-data/outputs/run.sh; stat -c '%U %a' a a/b/c.txt")
            .await,
        "textran\nassistant 755\nassistant 644\n"
    );
    assert_eq!(
        fs::read_to_string(chat.spec.outputs.join("run.sh")).unwrap(),
        "#!/bin/sh\necho ran\n"
    );
    assert!(write(&chat, "/tmp/t", None, "x").await.unwrap().created);
}

async fn replacing_keeps_the_mode_and_follows_links(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    chat.text("echo old > script; chmod 750 script; ln -s script link; ln -s new dangling; mkdir d; ln -s ../x d/up").await;
    assert_eq!(
        write(&chat, "link", None, "new").await.unwrap(),
        Written {
            created: false,
            mode: 0o750
        }
    );
    assert_eq!(
        write(&chat, "dangling", None, "made").await.unwrap(),
        Written {
            created: true,
            mode: 0o644
        }
    );
    assert_eq!(
        write(&chat, "d/up", None, "above").await.unwrap(),
        Written {
            created: true,
            mode: 0o644
        }
    );
    let seen = chat
        .text("cat script new x; readlink link dangling d/up; stat -c %a script; ls -A")
        .await;
    assert_eq!(
        seen,
        "newmadeabovescript\nnew\n../x\n750\nd\ndangling\nlink\nnew\nscript\nx\n"
    );
}

async fn a_file_that_may_not_be_written_is_not_replaced(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    chat.text("echo old > locked; chmod 444 locked; mkdir d; chmod 555 d")
        .await;
    assert_eq!(
        write(&chat, "locked", None, "new").await,
        Err(FileError::Denied("/home/assistant/locked".into()))
    );
    assert_eq!(
        write(&chat, "d/file", None, "new").await,
        Err(FileError::Denied("/home/assistant/d/file".into()))
    );
    let written = write(&chat, "locked", Some(0o644), "new").await;
    assert!(!written.unwrap().created);
}

async fn what_is_larger_than_memory_is_written_from_a_file(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    let mut file = tempfile::tempfile().unwrap();
    for number in 0..64_u8 {
        file.write_all(&vec![number; 1 << 20]).unwrap();
    }
    file.seek(std::io::SeekFrom::End(0)).unwrap();
    let write = WriteFile {
        path: "large".into(),
        instead_of: InsteadOf::File,
        mode: None,
        content: Content::File(file),
    };
    chat.sandboxes.write_file(&chat.spec, write).await.unwrap();
    assert_eq!(
        chat.text("stat -c %s large; tail -c 1 large | od -An -tu1")
            .await,
        "67108864\n  63\n"
    );
}

async fn an_unfinished_file_is_not_left_behind(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    chat.text("true").await;
    let file = tempfile::tempfile().unwrap();
    file.set_len(512 << 20).unwrap();
    let writing = tokio::spawn({
        let chat = chat.clone();
        let write = WriteFile {
            path: "large".into(),
            instead_of: InsteadOf::File,
            mode: None,
            content: Content::File(file),
        };
        async move { chat.sandboxes.write_file(&chat.spec, write).await }
    });
    let names = || fs::read_dir(chat.home("")).unwrap().count();
    // What has no name cannot be waited for. Writing half a gibibyte takes longer than this.
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(names(), 0);
    writing.abort();
    assert!(
        writing.await.is_err_and(|error| error.is_cancelled()),
        "it was finished too soon for this test"
    );
    assert_eq!(chat.text("ls -A").await, "");
}

async fn a_directory_is_listed_to_its_depth_and_no_further_than_asked(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    chat.text("mkdir -p b/c/d a.d; echo 12345 > b/file; echo > b.txt; : > .hidden; ln -s /etc/passwd link; mkfifo pipe; : > b/c/deep").await;
    let show = |listing: foreword_sandbox::Listing| {
        let lines = listing
            .entries
            .iter()
            .map(|entry| format!("{} {:?} {}\n", entry.path, entry.kind, entry.size));
        lines
            .chain(listing.truncated.then(|| "…".to_owned()))
            .collect::<String>()
    };
    let listing = chat
        .sandboxes
        .list_directory(&chat.spec, list(".", 2, 100))
        .await
        .unwrap();
    assert_eq!(
        show(listing),
        "a.d Directory 0\nb Directory 0\nb/c Directory 0\nb/file File 6\nb.txt File 1\nlink Link 0\npipe Special 0\n"
    );
    let bounded = chat
        .sandboxes
        .list_directory(&chat.spec, list(".", 9, 3))
        .await
        .unwrap();
    assert!(bounded.truncated && bounded.entries.len() == 3);
    let hidden = ListDirectory {
        hidden: true,
        ..list(".", 1, 100)
    };
    let hidden = chat
        .sandboxes
        .list_directory(&chat.spec, hidden)
        .await
        .unwrap();
    assert!(hidden.entries.iter().any(|entry| entry.path == ".hidden"));
    let many = chat
        .run("mkdir many; cd many; seq 12000 | xargs touch")
        .await;
    assert_eq!(many.text(), "");
    let listing = chat
        .sandboxes
        .list_directory(&chat.spec, list("many", 1, u32::MAX))
        .await
        .unwrap();
    assert!(listing.truncated && listing.entries.len() == 10_000);
    let refused = file_error(
        chat.sandboxes
            .list_directory(&chat.spec, list("b.txt", 1, 10))
            .await,
    );
    assert_eq!(
        refused,
        Err(FileError::NotADirectory("/home/assistant/b.txt".into()))
    );
}

async fn what_is_missing_is_said_with_what_is_there(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    chat.text("mkdir -p docs; touch docs/report.md docs/other")
        .await;
    let Err(FileError::NotFound(missing)) = read(&chat, "docs/reprot.md").await else {
        panic!("it is there")
    };
    assert_eq!(
        (missing.nearest.as_path(), missing.names),
        (
            Path::new("/home/assistant/docs"),
            vec!["other".to_owned(), "report.md".to_owned()]
        )
    );
    let Err(FileError::NotFound(missing)) = read(&chat, "/no/such/place").await else {
        panic!("it is there")
    };
    assert_eq!(missing.nearest, Path::new("/"));
    assert_eq!(
        read(&chat, "docs/other/below").await,
        Err(FileError::NotADirectory(
            "/home/assistant/docs/other/below".into()
        ))
    );
}

async fn pipes_and_devices_are_refused_and_do_not_block(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    chat.text("mkfifo pipe; ln -s /dev/zero zero; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")'").await;
    for path in ["pipe", "zero", "sock", "/dev/tty", "/dev/ptmx"] {
        let refused = read(&chat, path).await;
        assert!(
            matches!(refused, Err(FileError::NotAFile(_))),
            "{path}: {refused:?}"
        );
    }
    for path in ["pipe", "sock", "/dev/null"] {
        let refused = write(&chat, path, None, "x").await;
        assert!(
            matches!(refused, Err(FileError::NotAFile(_))),
            "{path}: {refused:?}"
        );
    }
}

async fn links_lead_nowhere_outside(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    chat.text("true").await;
    let secret = place.directory.path().join("secret");
    fs::write(&secret, "of the server").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o644)).unwrap();
    for (name, target) in [
        ("absolute", secret.to_str().unwrap()),
        ("climbing", "../../../../../../../../etc/shadow"),
        ("home", "/root"),
    ] {
        std::os::unix::fs::symlink(target, chat.home(name)).unwrap();
        let refused = read(&chat, name).await;
        assert!(
            matches!(refused, Err(FileError::NotFound(_)))
                || backend.is_container() && matches!(refused, Err(FileError::Denied(_))),
            "{name}: {refused:?}"
        );
    }
    std::os::unix::fs::symlink("/proc/1/environ", chat.home("environment")).unwrap();
    assert!(matches!(
        read(&chat, "environment").await,
        Err(FileError::Denied(_))
    ));
    std::os::unix::fs::symlink(place.directory.path().join("made"), chat.home("making")).unwrap();
    // If at all, it is made where the sandbox has this path.
    let _ = write(&chat, "making", None, "x").await;
    assert!(!secret.with_file_name("made").exists());
    chat.text("ln -s loop loop").await;
    assert!(matches!(
        read(&chat, "loop").await,
        Err(FileError::InvalidPath { .. })
    ));
}

async fn uploads_skills_and_the_system_are_read_only(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    fs::write(chat.spec.uploads.join("given"), "by the user").unwrap();
    fs::create_dir(chat.spec.skills[0].host.join("pdf")).unwrap();
    assert_eq!(
        &read(&chat, "/mnt/user-data/uploads/given")
            .await
            .unwrap()
            .bytes[..],
        b"by the user"
    );
    for path in [
        "/mnt/user-data/uploads/given",
        "/mnt/user-data/uploads/new",
        "/mnt/skills/public/pdf/x",
        "/usr/bin/new",
        "/etc/passwd",
        "/new",
        "/mnt/new",
    ] {
        let refused = write(&chat, path, None, "x").await;
        assert_eq!(refused, Err(FileError::ReadOnly(path.into())), "{path}");
    }
    fs::write(
        chat.spec.skills[0].host.join("pdf/SKILL.md"),
        "added while it runs",
    )
    .unwrap();
    assert_eq!(
        chat.text("cat /mnt/skills/public/pdf/SKILL.md").await,
        "added while it runs"
    );
}

async fn fault_9_skills_that_are_missing_are_left_out_and_all_else_works(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    fs::remove_dir_all(&chat.spec.skills[0].host).unwrap();
    assert_eq!(chat.text("echo made > made; cat made").await, "made\n");
    assert_eq!(&read(&chat, "made").await.unwrap().bytes[..], b"made\n");
    assert_eq!(
        chat.text("ls -A /mnt/skills 2> /dev/null || true").await,
        ""
    );
}

async fn impossible_paths_are_errors_and_not_failures(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    let long = "n".repeat(300);
    let endless = "d/".repeat(20_000);
    for path in [long.as_str(), endless.as_str(), "a\0b"] {
        assert!(
            matches!(read(&chat, path).await, Err(FileError::InvalidPath { .. })),
            "{path:.10}"
        );
        assert!(
            matches!(
                write(&chat, path, None, "x").await,
                Err(FileError::InvalidPath { .. })
            ),
            "{path:.10}"
        );
    }
    let huge = "d/".repeat(50_000);
    assert!(matches!(
        read(&chat, &huge).await,
        Err(FileError::InvalidPath { .. })
    ));
    chat.text("mkdir d").await;
    assert_eq!(
        write(&chat, "d", None, "x").await,
        Err(FileError::IsADirectory("/home/assistant/d".into()))
    );
    assert!(write(&chat, "/", None, "x").await.is_err());
    assert!(write(&chat, "", None, "x").await.is_err());
    assert!(write(&chat, "..", None, "x").await.is_err());
}

async fn files_are_found_by_names_that_are_no_text(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    chat.text("printf x > $'bad\\xff'; printf y > 'grüße 🎉'; printf z > $'line\\nbreak'")
        .await;
    assert_eq!(&read(&chat, "grüße 🎉").await.unwrap().bytes[..], b"y");
    assert_eq!(&read(&chat, "line\nbreak").await.unwrap().bytes[..], b"z");
    let listing = chat
        .sandboxes
        .list_directory(&chat.spec, list(".", 1, 10))
        .await
        .unwrap();
    assert!(
        listing
            .entries
            .iter()
            .any(|entry| entry.path == "bad\u{fffd}")
    );
}

async fn a_directory_swapped_for_a_link_leads_nowhere_outside(backend: Backend) {
    let place = backend.open();
    let chat = place.chat("a");
    let outside = place.directory.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::set_permissions(&outside, fs::Permissions::from_mode(0o777)).unwrap();
    fs::write(outside.join("file"), "of the server").unwrap();
    let target = outside.display();
    let swap = format!(
        "mkdir d other; echo mine > d/file; ln -s {target} link; while :; do mv -T d t; mv -T link d; mv -T d link; mv -T t d; done > /dev/null 2>&1 &"
    );
    chat.text(&swap).await;
    for _ in 0..100 {
        if let Ok(read) = read(&chat, "d/file").await {
            assert_eq!(&read.bytes[..], b"mine\n");
        }
        let _ = write(&chat, "d/new", None, "x").await;
    }
    assert!(!outside.join("new").exists());
}

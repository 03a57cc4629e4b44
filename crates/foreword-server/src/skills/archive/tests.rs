use std::{
    collections::BTreeMap,
    io::{Cursor, Write as _},
};

use expect_test::{Expect, expect};
use tempfile::TempDir;
use zip::{ZipWriter, write::SimpleFileOptions};

use super::*;

const REGULAR: u32 = 0o100_644;

/// A member as the bytes of an archive say it is, which no program would write.
struct Raw {
    name: Vec<u8>,
    data: Vec<u8>,
    mode: u32,
    flags: u16,
    method: u16,
    /// The size that the headers say.
    said: u32,
    extra: Vec<u8>,
    /// Where the directory says it starts; where it does, if none.
    start: Option<u32>,
}

fn raw(name: impl AsRef<[u8]>, data: impl AsRef<[u8]>) -> Raw {
    let data = data.as_ref().to_vec();
    Raw {
        name: name.as_ref().to_vec(),
        said: u32::try_from(data.len()).unwrap(),
        data,
        mode: REGULAR,
        flags: 0,
        method: 0,
        extra: Vec::new(),
        start: None,
    }
}

impl Raw {
    fn mode(self, mode: u32) -> Self {
        Self { mode, ..self }
    }
}

fn skill_file() -> Raw {
    raw("SKILL.md", "---\n")
}

/// The archive of `members`, stored.
fn archive(members: &[Raw]) -> Vec<u8> {
    let (mut bytes, directory) = members_and_directory(members);
    let start = u32::try_from(bytes.len()).unwrap();
    let count = u16::try_from(members.len()).unwrap();
    bytes.extend(&directory);
    bytes.extend(b"PK\x05\x06\0\0\0\0");
    bytes.extend([count.to_le_bytes(), count.to_le_bytes()].concat());
    bytes.extend(u32::try_from(directory.len()).unwrap().to_le_bytes());
    bytes.extend(start.to_le_bytes());
    bytes.extend([0; 2]);
    bytes
}

fn members_and_directory(members: &[Raw]) -> (Vec<u8>, Vec<u8>) {
    let mut bytes = Vec::new();
    let mut directory = Vec::new();
    for member in members {
        let start = u32::try_from(bytes.len()).unwrap();
        let length = |bytes: &[u8]| u16::try_from(bytes.len()).unwrap().to_le_bytes();
        let mut common = Vec::new();
        common.extend(20_u16.to_le_bytes());
        common.extend(member.flags.to_le_bytes());
        common.extend(member.method.to_le_bytes());
        common.extend([0, 0, 0x21, 0]);
        common.extend(checksum(&member.data).to_le_bytes());
        common.extend(u32::try_from(member.data.len()).unwrap().to_le_bytes());
        common.extend(member.said.to_le_bytes());
        common.extend(length(&member.name));
        common.extend(length(&member.extra));

        bytes.extend(b"PK\x03\x04");
        bytes.extend(&common);
        bytes.extend(&member.name);
        bytes.extend(&member.extra);
        bytes.extend(&member.data);

        // Made on Unix.
        directory.extend(b"PK\x01\x02\x14\x03");
        directory.extend(&common);
        directory.extend([0; 6]);
        directory.extend((member.mode << 16).to_le_bytes());
        directory.extend(member.start.unwrap_or(start).to_le_bytes());
        directory.extend(&member.name);
        directory.extend(&member.extra);
    }
    (bytes, directory)
}

fn checksum(data: &[u8]) -> u32 {
    !data.iter().fold(!0, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            (sum >> 1) ^ (0xedb8_8320 & 0_u32.wrapping_sub(sum & 1))
        })
    })
}

/// The archive of `members`, compressed by the crate.
fn compressed(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, data) in members {
        zip.start_file(*name, SimpleFileOptions::default()).unwrap();
        zip.write_all(data).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn try_unpack(bytes: &[u8], limits: &Limits) -> (TempDir, Result<(), ArchiveFault>) {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    let around = tempfile::tempdir().unwrap();
    let into = around.path().join("into");
    fs::create_dir(&into).unwrap();
    let result = unpack_within(&file, &into, limits);
    let beside: Vec<_> = fs::read_dir(around.path()).unwrap().collect();
    assert_eq!(beside.len(), 1, "something was written beside the folder");
    (around, result)
}

/// What is unpacked, with modes.
fn unpacked(bytes: &[u8]) -> BTreeMap<String, u32> {
    unpacked_within(bytes, &Limits::default())
}

fn unpacked_within(bytes: &[u8], limits: &Limits) -> BTreeMap<String, u32> {
    fn walk(folder: &Path, prefix: &str, found: &mut BTreeMap<String, u32>) {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let path = format!("{prefix}{}", entry.file_name().to_str().unwrap());
            let metadata = entry.metadata().unwrap();
            if metadata.is_dir() {
                walk(&entry.path(), &format!("{path}/"), found);
            }
            found.insert(path, metadata.permissions().mode() & 0o7777);
        }
    }
    let (around, result) = try_unpack(bytes, limits);
    result.unwrap();
    let mut found = BTreeMap::new();
    walk(&around.path().join("into"), "", &mut found);
    found
}

fn listed(bytes: &[u8]) -> String {
    let lines = unpacked(bytes)
        .into_iter()
        .map(|(path, mode)| format!("{mode:o} {path}\n"));
    lines.collect()
}

#[expect(clippy::needless_pass_by_value, reason = "`expect!` makes a value")]
fn refused(bytes: &[u8], fault: Expect) {
    refused_within(bytes, &Limits::default(), &fault);
}

fn refused_within(bytes: &[u8], limits: &Limits, fault: &Expect) {
    let (_, result) = try_unpack(bytes, limits);
    fault.assert_eq(&result.unwrap_err().to_string());
}

/// An archive in which one member beside `SKILL.md` is hostile.
#[expect(clippy::needless_pass_by_value, reason = "`expect!` makes a value")]
fn member_refused(member: Raw, fault: Expect) {
    refused_within(
        &archive(&[skill_file(), member]),
        &Limits::default(),
        &fault,
    );
}

#[test]
fn a_skill_at_the_root_is_unpacked() {
    let bytes = archive(&[
        skill_file(),
        raw("scripts/", "").mode(0o040_700),
        raw("scripts/run.sh", "#!/bin/sh\n").mode(0o100_700),
        raw("scripts/übung 📄.txt", "x").mode(0o100_600),
        raw("empty/", "").mode(0),
    ]);
    expect![[r"
        644 SKILL.md
        755 empty
        755 scripts
        755 scripts/run.sh
        644 scripts/übung 📄.txt
    "]]
    .assert_eq(&listed(&bytes));
}

#[test]
fn the_top_folder_is_left_away() {
    let bytes = archive(&[
        raw("skill/", "").mode(0o040_755),
        raw("skill/SKILL.md", "---\n"),
        raw("skill/a/b/c.txt", "c"),
        raw("skill/.hidden", "kept"),
    ]);
    expect![[r"
        644 .hidden
        644 SKILL.md
        755 a
        755 a/b
        644 a/b/c.txt
    "]]
    .assert_eq(&listed(&bytes));
}

#[test]
fn contents_are_unpacked_whole() {
    let noise: Vec<u8> = (0..300_000_u32)
        .flat_map(|n| n.wrapping_mul(0x9e37_79b9).to_le_bytes())
        .collect();
    let bytes = compressed(&[("SKILL.md", b"---\n"), ("noise", &noise)]);
    let (around, result) = try_unpack(&bytes, &Limits::default());
    result.unwrap();
    assert!(fs::read(around.path().join("into/noise")).unwrap() == noise);
}

#[test]
fn what_macos_and_others_put_beside_a_skill_is_left_out() {
    let beside = || {
        [
            raw("__MACOSX/._SKILL.md", "x"),
            raw(".DS_Store", "x"),
            raw(".git/config", "x"),
        ]
    };
    let at_root = beside()
        .into_iter()
        .chain([skill_file()])
        .collect::<Vec<_>>();
    assert_eq!(listed(&archive(&at_root)), "644 SKILL.md\n");
    let in_folder = beside()
        .into_iter()
        .chain([raw("skill/SKILL.md", "---\n")])
        .collect::<Vec<_>>();
    assert_eq!(listed(&archive(&in_folder)), "644 SKILL.md\n");
}

#[test]
fn what_is_left_out_is_looked_at_all_the_same() {
    member_refused(
        raw("__MACOSX/link", "/etc/passwd").mode(0o120_777),
        expect![
            "its member `__MACOSX/link` is a symbolic link; only regular files and folders are allowed, so pack what it points to"
        ],
    );
}

#[test]
fn setuid_and_the_umask_do_not_reach_the_files() {
    let bytes = archive(&[
        skill_file().mode(0o107_644),
        raw("run", "x").mode(0o106_711),
        raw("folder/", "").mode(0o041_777),
        raw("no mode", "x").mode(0),
    ]);
    expect![[r"
        644 SKILL.md
        755 folder
        644 no mode
        755 run
    "]]
    .assert_eq(&listed(&bytes));
}

#[test]
fn dots_empty_names_and_backslashes_in_paths_mean_the_same_files() {
    let bytes = archive(&[
        raw("./", "").mode(0o040_755),
        raw("./skill//SKILL.md", "---\n"),
        raw("skill\\docs\\", ""),
        raw("skill\\docs\\a.md", "x"),
    ]);
    expect![[r"
        644 SKILL.md
        755 docs
        644 docs/a.md
    "]]
    .assert_eq(&listed(&bytes));
}

#[test]
fn names_that_differ_in_case_are_two_files() {
    let bytes = archive(&[skill_file(), raw("a.md", "x"), raw("A.md", "x")]);
    assert_eq!(unpacked(&bytes).len(), 3);
}

#[test]
fn a_path_with_parent_folders_is_refused() {
    member_refused(
        raw("../x", "x"),
        expect!["its member `../x` could lie outside the skill; paths with `..` are not allowed"],
    );
    member_refused(
        raw("a/../../x", "x"),
        expect![
            "its member `a/../../x` could lie outside the skill; paths with `..` are not allowed"
        ],
    );
    member_refused(
        raw("a\\..\\x", "x"),
        expect![[
            r"its member `a\..\x` could lie outside the skill; paths with `..` are not allowed"
        ]],
    );
    member_refused(
        raw("..", "x").mode(0o040_755),
        expect!["its member `..` could lie outside the skill; paths with `..` are not allowed"],
    );
}

#[test]
fn an_absolute_path_is_refused() {
    member_refused(
        raw("/etc/cron.d/x", "x"),
        expect!["its member `/etc/cron.d/x` has an absolute path; only relative ones are allowed"],
    );
    member_refused(
        raw("\\\\server\\share\\x", "x"),
        expect![[
            r"its member `\\server\share\x` has an absolute path; only relative ones are allowed"
        ]],
    );
}

#[test]
fn a_drive_letter_is_refused() {
    member_refused(
        raw("C:\\x", "x"),
        expect![[r"its member `C:\x` starts with a drive letter; only relative paths are allowed"]],
    );
    member_refused(
        raw("c:x", "x"),
        expect!["its member `c:x` starts with a drive letter; only relative paths are allowed"],
    );
}

#[test]
fn control_characters_in_a_name_are_refused() {
    member_refused(
        raw("a\0b", "x"),
        expect!["the name of its member `ab` holds a control character; none are allowed"],
    );
    member_refused(
        raw("a\nERROR forged", "x"),
        expect![
            "the name of its member `a ERROR forged` holds a control character; none are allowed"
        ],
    );
}

#[test]
fn a_name_that_is_not_utf_8_is_refused() {
    member_refused(
        raw(b"caf\x82.txt", "x"),
        expect![
            "the name of its member `caf�.txt` is not UTF-8; pack it again with names in UTF-8"
        ],
    );
}

#[test]
fn a_name_that_is_empty_is_refused() {
    member_refused(raw("", "x"), expect!["one of its members has no name"]);
    member_refused(raw(".", "x"), expect!["one of its members has no name"]);
}

#[test]
fn a_long_path_is_refused() {
    let path = |length: usize| {
        let mut path = "0123456789abcdef".repeat(12) + "/";
        path = path.repeat(length / path.len()) + &"x".repeat(length % path.len());
        assert_eq!(path.len(), length);
        path
    };
    assert!(unpacked(&archive(&[skill_file(), raw(path(PATH_BYTES), "x")])).len() > 1);
    member_refused(
        raw(path(PATH_BYTES + 1), "x"),
        expect![
            "the path of its member `0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef…` is too long; 1024 bytes are allowed"
        ],
    );
}

#[test]
fn a_long_name_is_refused() {
    let name = "é".repeat(127);
    assert_eq!(
        unpacked(&archive(&[skill_file(), raw(format!("a/{name}x"), "x")])).len(),
        3
    );
    member_refused(
        raw(format!("a/{name}xx"), "x"),
        expect![
            "a name in the path of its member `a/éééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééé…` is too long; 255 bytes are allowed"
        ],
    );
}

#[test]
fn a_deep_path_is_refused() {
    let edge = "a/".repeat(DEPTH - 1);
    assert_eq!(
        unpacked(&archive(&[skill_file(), raw(format!("{edge}x"), "x")])).len(),
        DEPTH + 1
    );
    member_refused(
        raw(format!("{edge}a/x"), "x"),
        expect![
            "its member `a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/x` lies too deep; 16 levels are allowed"
        ],
    );
}

#[test]
fn a_symbolic_link_is_refused() {
    member_refused(
        raw("link", "/etc").mode(0o120_777),
        expect![
            "its member `link` is a symbolic link; only regular files and folders are allowed, so pack what it points to"
        ],
    );
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    zip.add_symlink("SKILL.md", "/etc/passwd", SimpleFileOptions::default())
        .unwrap();
    refused(
        &zip.finish().unwrap().into_inner(),
        expect![
            "its member `SKILL.md` is a symbolic link; only regular files and folders are allowed, so pack what it points to"
        ],
    );
}

#[test]
fn a_symbolic_link_that_claims_to_be_from_windows_is_refused() {
    let mut bytes = archive(&[skill_file(), raw("link", "/etc").mode(0o120_777)]);
    let header = bytes
        .windows(4)
        .rposition(|window| window == b"PK\x01\x02")
        .unwrap();
    bytes[header + 5] = 0;
    refused(
        &bytes,
        expect![
            "its member `link` is a symbolic link; only regular files and folders are allowed, so pack what it points to"
        ],
    );
}

#[test]
fn a_hard_link_is_refused() {
    let field = |target: &[u8]| {
        let mut field = 0x000d_u16.to_le_bytes().to_vec();
        field.extend(u16::try_from(12 + target.len()).unwrap().to_le_bytes());
        field.extend([0; 12]);
        field.extend(target);
        field
    };
    let owner_only = Raw {
        extra: field(b""),
        ..raw("a", "x")
    };
    assert_eq!(unpacked(&archive(&[skill_file(), owner_only])).len(), 2);
    member_refused(
        Raw {
            extra: field(b"/etc/passwd"),
            ..raw("a", "x")
        },
        expect![
            "its member `a` is a hard link; only regular files and folders are allowed, so pack what it points to"
        ],
    );
}

#[test]
fn devices_pipes_and_sockets_are_refused() {
    for kind in [0o010_000, 0o020_000, 0o060_000, 0o140_000, 0o150_000] {
        let bytes = archive(&[skill_file(), raw("dev/sda", "").mode(kind | 0o666)]);
        refused(
            &bytes,
            expect![
                "its member `dev/sda` is a device, a pipe or a socket; only regular files and folders are allowed"
            ],
        );
    }
}

#[test]
fn an_encrypted_member_is_refused() {
    member_refused(
        Raw {
            flags: 1,
            ..raw("secret", "x")
        },
        expect!["its member `secret` is encrypted; pack it without a password"],
    );
}

#[test]
fn another_compression_is_refused() {
    for (method, name) in [(9, "Deflate64"), (99, "AES")] {
        let (_, result) = try_unpack(
            &archive(&[
                skill_file(),
                Raw {
                    method,
                    ..raw("a", "x")
                },
            ]),
            &Limits::default(),
        );
        let fault = result.unwrap_err();
        assert!(
            matches!(fault, ArchiveFault::Method { .. }),
            "{name}: {fault}"
        );
    }
}

#[test]
fn members_with_the_same_name_are_refused() {
    refused(
        &archive(&[skill_file(), raw("SKILL.md", "other")]),
        expect!["two of its members have the same name"],
    );
}

#[test]
fn members_with_the_same_path_are_refused() {
    member_refused(
        raw("./SKILL.md", "other"),
        expect!["another of its members has the same path as `./SKILL.md`"],
    );
    refused(
        &archive(&[skill_file(), raw("a/b", "x"), raw("a\\b", "x")]),
        expect![[r"another of its members has the same path as `a\b`"]],
    );
}

#[test]
fn a_file_that_is_a_folder_too_is_refused() {
    refused(
        &archive(&[skill_file(), raw("a", "x"), raw("a/b", "x")]),
        expect!["its member `a` is a file, and other members lie in it as in a folder"],
    );
    refused(
        &archive(&[skill_file(), raw("a/", ""), raw("a", "x")]),
        expect!["its member `a` is a file, and other members lie in it as in a folder"],
    );
    member_refused(
        raw("SKILL.md/x", "x"),
        expect!["its member `SKILL.md` is a file, and other members lie in it as in a folder"],
    );
}

#[test]
fn members_that_share_bytes_are_refused() {
    let second = Raw {
        start: Some(0),
        ..raw("b", "xxxx")
    };
    refused(
        &archive(&[raw("a", "xxxx"), second, skill_file()]),
        expect!["its members overlap; each must have bytes of its own"],
    );
}

fn with_members(count: usize) -> Vec<u8> {
    let others = (1..count).map(|n| raw(format!("{n}.txt"), ""));
    archive(&others.chain([skill_file()]).collect::<Vec<_>>())
}

#[test]
fn two_thousand_members_are_allowed_and_no_more() {
    assert_eq!(unpacked(&with_members(2_000)).len(), 2_000);
    refused(
        &with_members(2_001),
        expect!["it has 2001 members, and 2000 are allowed"],
    );
}

#[test]
fn members_that_are_left_out_count() {
    let limits = Limits {
        members: 2,
        ..Limits::default()
    };
    let bytes = archive(&[skill_file(), raw("__MACOSX/a", ""), raw("__MACOSX/b", "")]);
    refused_within(
        &bytes,
        &limits,
        &expect!["it has 3 members, and 2 are allowed"],
    );
}

#[test]
fn a_list_of_members_without_end_is_not_read() {
    let bytes = with_members(65_535);
    assert!(bytes.len() < 10 << 20);
    let long = archive(
        &(0..1_999)
            .map(|n| Raw {
                extra: [&[0xfe, 0xca, 0xa0, 0x0f][..], &[0; 4_000]].concat(),
                ..raw(format!("{n}"), "")
            })
            .chain([skill_file()])
            .collect::<Vec<_>>(),
    );
    refused(
        &bytes,
        expect!["it has 65535 members, and 2000 are allowed"],
    );
    refused(
        &long,
        expect![
            "its list of members is longer than 4194304 bytes: it has more than 2000 members, or far too long names"
        ],
    );
}

#[test]
fn as_many_folders_as_members_are_allowed_and_no_more() {
    let bytes = archive(&[skill_file(), raw("a/b/c/x", ""), raw("a/d/x", "")]);
    let limits = |members| Limits {
        members,
        ..Limits::default()
    };
    assert_eq!(unpacked_within(&bytes, &limits(4)).len(), 7);
    refused_within(
        &bytes,
        &limits(3),
        &expect!["it has more than the 3 folders that are allowed"],
    );
}

#[test]
fn the_size_of_the_archive_is_limited() {
    let bytes = archive(&[skill_file()]);
    let packed = bytes.len() as u64;
    assert_eq!(
        unpacked_within(
            &bytes,
            &Limits {
                packed,
                ..Limits::default()
            }
        )
        .len(),
        1
    );
    refused_within(
        &bytes,
        &Limits {
            packed: packed - 1,
            ..Limits::default()
        },
        &expect!["it has 118 bytes, and 117 are allowed"],
    );

    let file = tempfile::tempfile().unwrap();
    file.set_len((50 << 20) + 1).unwrap();
    let into = tempfile::tempdir().unwrap();
    expect!["it has 52428801 bytes, and 52428800 are allowed"]
        .assert_eq(&unpack(&file, into.path()).unwrap_err().to_string());
}

#[test]
fn the_size_of_all_files_is_limited() {
    let zeros = vec![0; 100_000];
    let mut members: Vec<(String, &[u8])> = (0..9).map(|n| (format!("{n}"), &*zeros)).collect();
    members.push(("SKILL.md".to_owned(), &zeros));
    let members: Vec<(&str, &[u8])> = members
        .iter()
        .map(|(name, data)| (&**name, *data))
        .collect();
    let bytes = compressed(&members);
    let limits = |unpacked| Limits {
        unpacked,
        ..Limits::default()
    };
    assert_eq!(unpacked_within(&bytes, &limits(1_000_000)).len(), 10);
    refused_within(
        &bytes,
        &limits(999_999),
        &expect!["it unpacks to more than the 999999 bytes that are allowed"],
    );
}

#[test]
fn two_hundred_mebibytes_of_zeros_are_allowed_and_no_more() {
    let limits = Limits {
        ratio: u64::MAX,
        ..Limits::default()
    };
    let zeros = vec![0; 20 << 20];
    let names: Vec<String> = (0..9).map(|n| format!("{n}")).collect();
    let mut members: Vec<(&str, &[u8])> = names.iter().map(|name| (&**name, &*zeros)).collect();
    members.push(("SKILL.md", &zeros));
    assert_eq!(unpacked_within(&compressed(&members), &limits).len(), 10);
    members.push(("one byte", &[0]));
    refused_within(
        &compressed(&members),
        &limits,
        &expect!["it unpacks to more than the 209715200 bytes that are allowed"],
    );
}

#[test]
fn a_bomb_is_refused_by_its_ratio() {
    let zeros = vec![0; 4 << 20];
    let bytes = compressed(&[("SKILL.md", b"---\n"), ("zeros", &zeros)]);
    refused(
        &bytes,
        expect!["it unpacks to more than the allowed 200 times its size"],
    );

    // What is small enough is no bomb, however well it is packed.
    let zeros = vec![0; (1 << 20) - 4];
    let bytes = compressed(&[("SKILL.md", b"---\n"), ("zeros", &zeros)]);
    assert!(bytes.len() * 200 < zeros.len());
    assert_eq!(unpacked(&bytes).len(), 2);
}

#[test]
fn the_ratio_is_exact_and_not_asked_for_below_its_floor() {
    let bytes = compressed(&[("SKILL.md", &vec![b'-'; 30_000])]);
    let packed = bytes.len() as u64;
    let limits = |ratio, ratio_floor| Limits {
        ratio,
        ratio_floor,
        ..Limits::default()
    };
    let (_, result) = try_unpack(&bytes, &limits(30_000 / packed, 29_999));
    assert!(
        matches!(result, Err(ArchiveFault::Ratio { .. })),
        "{result:?}"
    );
    assert_eq!(
        unpacked_within(&bytes, &limits(30_000 / packed, 30_000)).len(),
        1
    );
    assert_eq!(
        unpacked_within(&bytes, &limits(30_000 / packed + 1, 0)).len(),
        1
    );
}

#[test]
fn headers_that_lie_about_sizes_do_not_help() {
    member_refused(
        Raw {
            said: 10,
            ..raw("more", "x".repeat(100_000))
        },
        expect!["its member `more` is damaged: File is larger than its declared uncompressed size"],
    );
    member_refused(
        Raw {
            said: 10,
            ..raw("less", "x")
        },
        expect!["its member `less` says that it has 10 bytes, but it has 1"],
    );

    // A bomb that says it is small.
    let zeros = vec![0; 4 << 20];
    let mut bytes = compressed(&[("SKILL.md", b"---\n"), ("zeros", &zeros)]);
    let size = u32::try_from(zeros.len()).unwrap().to_le_bytes();
    while let Some(at) = bytes.windows(4).position(|window| window == size) {
        bytes[at..at + 4].copy_from_slice(&100_u32.to_le_bytes());
    }
    refused(
        &bytes,
        expect![
            "its member `zeros` is damaged: File is larger than its declared uncompressed size"
        ],
    );
}

#[test]
fn a_wrong_checksum_is_refused() {
    let mut bytes = archive(&[skill_file()]);
    let at = bytes
        .windows(4)
        .position(|window| window == b"---\n")
        .unwrap();
    bytes[at] = b'+';
    refused(
        &bytes,
        expect!["its member `SKILL.md` is damaged: Invalid checksum"],
    );
}

#[test]
fn broken_compressed_data_is_refused() {
    let bytes = archive(&[Raw {
        method: 8,
        ..raw("SKILL.md", [0xff; 50])
    }]);
    refused(
        &bytes,
        expect!["its member `SKILL.md` is damaged: corrupt deflate stream"],
    );
}

#[test]
fn an_archive_without_a_skill_file_is_refused() {
    let no_skill_file = || {
        expect![
            "there is no `SKILL.md` in it, neither at its root nor in the only folder at its root"
        ]
    };
    refused(&archive(&[]), no_skill_file());
    refused(&archive(&[raw("README.md", "x")]), no_skill_file());
    refused(&archive(&[raw("skill.md", "x")]), no_skill_file());
    refused(&archive(&[raw("SKILL.md/", "")]), no_skill_file());
    refused(&archive(&[raw("skill/SKILL.md/", "")]), no_skill_file());
    // Two levels deep.
    refused(&archive(&[raw("a/b/SKILL.md", "x")]), no_skill_file());
    // Two top folders, and a file beside the only one.
    refused(
        &archive(&[raw("a/SKILL.md", "x"), raw("b/SKILL.md", "x")]),
        no_skill_file(),
    );
    refused(
        &archive(&[raw("a/SKILL.md", "x"), raw("README.md", "x")]),
        no_skill_file(),
    );
    // Only in what does not count.
    refused(&archive(&[raw("__MACOSX/SKILL.md", "x")]), no_skill_file());
    refused(&archive(&[raw(".skill/SKILL.md", "x")]), no_skill_file());
}

#[test]
fn what_is_no_archive_is_refused() {
    refused(
        b"",
        expect!["it is not a ZIP archive, or a damaged one: Could not find EOCD"],
    );
    refused(
        b"{\"skill\": true}",
        expect!["it is not a ZIP archive, or a damaged one: Could not find EOCD"],
    );
}

#[test]
fn an_archive_cut_anywhere_is_refused() {
    let bytes = compressed(&[
        ("SKILL.md", b"---\nname: a\n"),
        ("a/b", b"xxxxxxxxxxxxxxxxxxxx"),
    ]);
    for length in 0..bytes.len() {
        let (_, result) = try_unpack(&bytes[..length], &Limits::default());
        let fault = result.unwrap_err();
        assert!(
            matches!(fault, ArchiveFault::NotAnArchive(_)),
            "at {length}: {fault}"
        );
    }
}

#[test]
fn any_changed_byte_leads_to_a_refusal_or_to_files_in_the_folder() {
    let bytes = archive(&[skill_file(), raw("a/b", "xyz"), raw("c/", "")]);
    for at in 0..bytes.len() {
        for change in [0x01, 0x20, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[at] ^= change;
            // It asserts that nothing lies beside the folder.
            let (_, result) = try_unpack(&changed, &Limits::default());
            assert!(
                !matches!(result, Err(ArchiveFault::Io(_))),
                "at {at}: {result:?}"
            );
        }
    }
}

#[test]
fn bytes_before_and_after_an_archive_are_ignored() {
    let bytes = archive(&[skill_file(), raw("a", "x")]);
    assert_eq!(
        unpacked(&[&bytes[..], b"trailing garbage"].concat()).len(),
        2
    );
    assert_eq!(unpacked(&[b"#!/bin/sh\n", &bytes[..]].concat()).len(), 2);
    let much = vec![0; 100_000];
    refused(
        &[&bytes[..], &much].concat(),
        expect!["it is not a ZIP archive, or a damaged one: Could not find EOCD"],
    );
}

#[test]
fn zip64_is_read() {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    zip.start_file("SKILL.md", SimpleFileOptions::default().large_file(true))
        .unwrap();
    zip.write_all(b"---\n").unwrap();
    assert_eq!(unpacked(&zip.finish().unwrap().into_inner()).len(), 1);

    assert_eq!(unpacked(&zip64(&[skill_file(), raw("a", "x")], 2)).len(), 2);
}

#[test]
fn zip64_that_lies_about_the_number_of_members_is_refused() {
    for count in [3, 1 << 20, u64::MAX / 46, u64::MAX] {
        let (_, result) = try_unpack(
            &zip64(&[skill_file(), raw("a", "x")], count),
            &Limits::default(),
        );
        let fault = result.unwrap_err();
        assert!(
            matches!(fault, ArchiveFault::NotAnArchive(_)),
            "{count}: {fault}"
        );
    }
}

/// The archive of `members`, whose end is that of Zip64 and says that there are `count`.
fn zip64(members: &[Raw], count: u64) -> Vec<u8> {
    let (mut bytes, directory) = members_and_directory(members);
    let start = bytes.len() as u64;
    bytes.extend(&directory);
    let end = bytes.len() as u64;
    bytes.extend(b"PK\x06\x06");
    bytes.extend(44_u64.to_le_bytes());
    bytes.extend([45, 3, 45, 0]);
    bytes.extend([0; 8]);
    bytes.extend([count.to_le_bytes(), count.to_le_bytes()].concat());
    bytes.extend((directory.len() as u64).to_le_bytes());
    bytes.extend(start.to_le_bytes());
    bytes.extend(b"PK\x06\x07\0\0\0\0");
    bytes.extend(end.to_le_bytes());
    bytes.extend(1_u32.to_le_bytes());
    bytes.extend(b"PK\x05\x06\0\0\0\0");
    bytes.extend([0xff; 12]);
    bytes.extend([0; 2]);
    bytes
}

#[test]
fn the_limits_are_those_of_the_specification() {
    let limits = Limits::default();
    assert_eq!(limits.packed, 50 * 1024 * 1024);
    assert_eq!(limits.members, 2_000);
    assert_eq!(limits.unpacked, 200 * 1024 * 1024);
    assert_eq!(limits.ratio, 200);
}

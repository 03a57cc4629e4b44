//! Makes `/etc`: what programs need to work, and nothing that says more about the host.
//!
//! `profile` starts no process. That of a distribution starts several, which doubles the time that `bash -lc true` takes.

use std::{fs, io, path::Path};

use super::root::{directory, file, show};
use crate::driver::protocol::Start;

const PASSWD: &str = "\
root:x:0:0:root:/root:/usr/sbin/nologin
assistant:x:1000:1000:assistant:/home/assistant:/bin/bash
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
";
const GROUP: &str = "\
root:x:0:
assistant:x:1000:
nogroup:x:65534:
";
const HOSTS: &str = "\
127.0.0.1 localhost sandbox
::1 localhost sandbox
";
const PROFILE: &str = "umask 022\n";
const SWITCH: &str = "\
passwd: files
group: files
hosts: files dns
";

/// Shown from the host: settings of programs, certificates, fonts. None of them holds a secret.
const SHOWN: [&str; 20] = [
    "alternatives",
    "ca-certificates",
    // Its program reads all that is there and fails without any; beside these there may be keys.
    "chromium.d/README",
    "chromium.d/default-flags",
    "chromium.d/dev-shm",
    "chromium.d/extensions",
    "crypto-policies",
    "fonts",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "libreoffice",
    "localtime",
    "mime.types",
    "pki/ca-trust",
    "pki/tls/certs",
    "protocols",
    "services",
    "ssl/certs",
    "ssl/openssl.cnf",
];
/// Shown from the host if their names start like this.
const SHOWN_FAMILIES: [&str; 2] = ["java-", "ImageMagick-"];

/// Makes `/etc` from that of the host, which is below `old`; or changes what a root file system of the operator's choice has.
pub(crate) fn make(old: &Path, start: &Start) -> io::Result<()> {
    let host_file = |name: &str| fs::read_to_string(old.join("etc").join(name)).unwrap_or_default();
    let (hosts, resolver) = if start.host_network {
        (host_file("hosts"), host_file("resolv.conf"))
    } else {
        (HOSTS.to_owned(), String::new())
    };
    let made = [
        ("passwd", PASSWD),
        ("group", GROUP),
        ("profile", PROFILE),
        ("nsswitch.conf", SWITCH),
        ("hostname", "sandbox\n"),
        ("hosts", &hosts),
        ("resolv.conf", &resolver),
    ];
    if Path::new("/etc").exists() {
        return cover(&made);
    }
    directory("/etc")?;
    for (name, content) in made {
        file(&format!("/etc/{name}"), content)?;
    }
    for name in SHOWN {
        show_host(old, name)?;
    }
    for entry in fs::read_dir(old.join("etc"))? {
        if let Some(name) = entry?.file_name().to_str()
            && SHOWN_FAMILIES.iter().any(|family| name.starts_with(family))
        {
            show_host(old, name)?;
        }
    }
    Ok(())
}

fn show_host(old: &Path, name: &str) -> io::Result<()> {
    let from = format!("{}/etc/{name}", old.display());
    if fs::symlink_metadata(&from).is_err() {
        return Ok(());
    }
    if let Some((parent, _)) = name.rsplit_once('/') {
        directory(&format!("/etc/{parent}"))?;
    }
    match show(&from, &format!("/etc/{name}")) {
        // Not everything that root may read is for the sandbox's user.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        other => other,
    }
}

/// Puts our files over those of a read-only `/etc`, as far as it has them.
fn cover(made: &[(&str, &str)]) -> io::Result<()> {
    directory("/.etc")?;
    for (name, content) in made {
        let target = format!("/etc/{name}");
        if fs::symlink_metadata(&target).is_ok_and(|found| found.is_file()) {
            let ours = format!("/.etc/{name}");
            file(&ours, content)?;
            super::root::cover(&ours, &target)?;
            fs::remove_file(&ours)?;
        }
    }
    fs::remove_dir("/.etc")
}

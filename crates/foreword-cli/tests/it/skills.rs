//! Skills in a workspace: what the prompt lists is there, read only, and follows what changes while the sandbox runs.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    os::unix::fs::PermissionsExt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::json;

use crate::{
    chat::{Chat, server},
    support::{Place, Server, eventually},
};

/// Writes a skill with a program below the data directory.
pub(crate) fn write_skill(place: &Place, below: &str, description: &str) {
    let name = Path::new(below).file_name().unwrap().to_str().unwrap();
    let text = format!("---\nname: {name}\ndescription: {description}\n---\n\nDo it.\n");
    place.write(&format!("data/skills/{below}/SKILL.md"), &text);
    let program = format!("data/skills/{below}/run.sh");
    place.write(&program, "#!/bin/sh\necho it runs\n");
    fs::set_permissions(place.path(&program), fs::Permissions::from_mode(0o700)).unwrap();
}

fn ask(server: &Server, chat: &str, email: &str, command: &str) -> String {
    let url = server.url("/mcp");
    let chat = Chat {
        url: &url,
        id: chat,
    };
    let arguments = json!({"command": command});
    chat.call_as("bash_tool", &arguments, &[("x-user-email", email)])
        .to_string()
}

#[test]
fn fault_19_what_the_readme_lists_is_there_and_follows_changes_in_a_running_sandbox() {
    let (place, server) = server();
    let ask = |command: &str| ask(&server, "a", "ann@example.com", command);
    assert_eq!(
        ask("ls /mnt/skills/public /mnt/skills/user"),
        "/mnt/skills/public:\nfile-handling\nskill-creator\n\n/mnt/skills/user:"
    );
    assert!(ask("cat /mnt/skills/public/skill-creator/SKILL.md").contains("name: skill-creator"));
    assert_eq!(ask("sh /mnt/skills/public/skill-creator/scripts/check-skill.sh /mnt/skills/public/file-handling > /dev/null; echo $?").trim(), "0");
    write_skill(&place, "public/pdf", "Reads PDF files.");
    write_skill(&place, "user/ann@example.com/own", "Ann's.");
    // At the next command, in the same sandbox.
    assert_eq!(
        ask("cat /mnt/skills/public/pdf/SKILL.md | tail -n 1"),
        "Do it."
    );
    assert_eq!(ask("/mnt/skills/user/own/run.sh"), "it runs");
    let readme = ask("cat ~/README.md");
    assert!(
        readme.contains("/mnt/skills/public/pdf/SKILL.md")
            && readme.contains("/mnt/skills/user/own/SKILL.md")
    );
    let listed = ask("grep -h '^/mnt/skills' ~/README.md | xargs ls -d | wc -l");
    assert_eq!(listed.trim(), "4");
    assert!(ask("touch /mnt/skills/public/pdf/x; echo x >> /mnt/skills/public/pdf/run.sh; chmod 777 /mnt/skills/user/own").contains("Read-only file system"));
    assert_eq!(
        place.read("data/skills/public/pdf/run.sh"),
        "#!/bin/sh\necho it runs\n"
    );
    fs::remove_dir_all(place.path("data/skills/public/pdf")).unwrap();
    assert_eq!(ask("ls /mnt/skills/public"), "file-handling\nskill-creator");
    assert!(!ask("cat ~/README.md").contains("/mnt/skills/public/pdf"));
}

#[test]
fn two_users_with_a_skill_of_one_name_see_their_own_in_their_sandboxes() {
    let (place, server) = server();
    write_skill(&place, "user/ann@example.com/pdf", "Ann's.");
    write_skill(&place, "user/bob@example.com/pdf", "Bob's.");
    let look = "grep description /mnt/skills/user/pdf/SKILL.md";
    assert_eq!(
        ask(&server, "a", "ann@example.com", look),
        "description: Ann's."
    );
    assert_eq!(
        ask(&server, "b", "bob@example.com", look),
        "description: Bob's."
    );
    // A request without a user takes nothing away from the chat's user.
    let url = server.url("/mcp");
    let nobody = Chat { url: &url, id: "a" };
    assert_eq!(nobody.bash(look), "description: Ann's.");
    assert!(!nobody.bash("cat ~/README.md").contains("Ann"));
}

#[test]
fn fault_9_tools_work_while_the_provider_of_skills_is_down() {
    let place = Place::new();
    place.write("data/system_prompts.yaml", "global_prompt: Be kind.\n");
    place.write(
        "foreword.toml",
        "[skills.provider]\nurl = \"http://127.0.0.1:1\"\n",
    );
    let server = place.serve(&["--sandbox", "namespace"]);
    assert_eq!(ask(&server, "a", "ann@example.com", "echo fine"), "fine");
    write_skill(&place, "public/pdf", "Reads PDF files.");
    assert_eq!(
        ask(&server, "a", "ann@example.com", "ls /mnt/skills/public/pdf"),
        "SKILL.md\nrun.sh"
    );
}

/// A provider whose users have the skills that are named here, all of which this server has itself.
fn provider(names: &'static [&'static str]) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(names.len()));
    let enabled = Arc::clone(&count);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut reader = BufReader::new(stream);
            let lines = reader.by_ref().lines().map_while(Result::ok);
            let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
            let body = if head
                .first()
                .is_some_and(|line| line.contains("/user-config/"))
            {
                let enabled = &names[..enabled.load(Ordering::Relaxed)];
                let skills = enabled
                    .iter()
                    .map(|name| json!({"name": name, "category": "public"}));
                json!({"enabled_skills": skills.collect::<Vec<_>>()}).to_string()
            } else {
                json!({"native": true}).to_string()
            };
            let length = body.len();
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
            let _ = write!(
                reader.into_inner(),
                "{head}\r\ncontent-length: {length}\r\n\r\n{body}"
            );
        }
    });
    (url, count)
}

#[test]
fn a_skill_that_the_provider_switches_off_is_gone_from_prompt_and_workspace_within_a_minute() {
    let (url, enabled) = provider(&["stays", "goes"]);
    let place = Place::new();
    place.write("data/system_prompts.yaml", "global_prompt: Be kind.\n");
    place.write(
        "foreword.toml",
        &format!("skills.provider.url = \"{url}\"\n"),
    );
    for name in ["stays", "goes", "never"] {
        write_skill(&place, &format!("public/{name}"), "For some.");
    }
    let server = place.serve(&["--sandbox", "namespace"]);
    let look = || {
        ask(
            &server,
            "a",
            "ann@example.com",
            "ls /mnt/skills/public; grep -c '^/mnt/skills' README.md",
        )
    };
    assert_eq!(look(), "goes\nstays\n2");
    enabled.store(1, Ordering::Relaxed);
    let started = Instant::now();
    eventually("it is gone", Duration::from_secs(90), || {
        (look() == "stays\n1").then_some(())
    });
    assert!(
        started.elapsed() <= Duration::from_mins(1),
        "{:?}",
        started.elapsed()
    );
}

#[test]
fn the_directory_of_a_users_skills_can_be_asked_for() {
    let place = Place::new();
    let path = place.run(&["skills", "path", "Ann@Example.com"]).ok();
    assert_eq!(path, "[DIR]/data/skills/user/ann@example.com\n");
    let odd = place.run(&["skills", "path", "o'neil@example.com"]).ok();
    assert!(odd.starts_with("[DIR]/data/skills/user/x-"), "{odd}");
    for (never, why) in [
        ("nobody", "it has one `@`"),
        ("a@b@c", "it has one `@`"),
        ("a b@example.com", "no spaces"),
        ("{{USER_EMAIL}}@x", "a template"),
    ] {
        let refused = place.run(&["skills", "path", never]);
        assert_eq!(refused.code, Some(2), "{never}");
        assert!(refused.stderr.contains(why), "{}", refused.stderr);
    }
}

#[test]
fn a_server_whose_workspaces_cannot_be_made_says_so_and_lists_no_skills() {
    let place = Place::new();
    write_skill(&place, "public/pdf", "Reads PDF files.");
    place.write(
        "data/workspaces",
        "not a directory, so nobody can write below it",
    );
    let composed = place.run(&["compose", "--chat", "a"]);
    assert!(
        composed.stderr.contains("no skills are offered"),
        "{}",
        composed.stderr
    );
    assert!(!composed.stdout.contains("available_skills"));
}

#[test]
fn in_a_shared_chat_everybodys_calls_find_what_is_there_for_all() {
    let (place, server) = server();
    write_skill(&place, "public/pdf", "Reads PDF files.");
    write_skill(&place, "user/ann@example.com/own", "Ann's.");
    write_skill(&place, "user/bob@example.com/own", "Bob's.");
    let look = "ls /mnt/skills/user | wc -l; ls -d /mnt/skills/public/pdf; grep -c /mnt/skills/user/ ~/README.md; true";
    for email in ["ann@example.com", "bob@example.com", "ann@example.com"] {
        let seen = ask(&server, "channel:x", email, look);
        assert!(seen.starts_with("0\n/mnt/skills/public/pdf\n0"), "{seen}");
    }
    // A chat of their own is another matter, and not for others.
    assert_eq!(
        ask(&server, "a", "ann@example.com", "ls /mnt/skills/user"),
        "own"
    );
    assert!(
        ask(&server, "a", "bob@example.com", "ls /mnt/skills/user")
            .contains("belongs to another user")
    );
}

#[test]
fn doctor_tells_of_skills_and_of_their_provider_and_writes_nothing() {
    let place = Place::new();
    write_skill(&place, "public/pdf", "Reads PDF files.");
    place.write("data/skills/public/broken/SKILL.md", "no front matter");
    place.write(
        "foreword.toml",
        "[skills.provider]\nurl = \"http://127.0.0.1:1\"\n",
    );
    let doctor = place
        .run(&["doctor", "--listen", "127.0.0.1:0", "--sandbox", "none"])
        .stdout;
    for found in [
        "ok     skills         1 skill for all in the data directory, and those that come with Foreword",
        "note   skills         `broken` is left out: ",
        "note   provider       the provider of skills: it cannot be reached",
    ] {
        assert!(doctor.contains(found), "{doctor}");
    }
    assert!(!place.path("data/skills/shipped").exists());
}

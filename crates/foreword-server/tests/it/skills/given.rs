//! Skills that a provider gives: good, slow, down, wrong and hostile.

use std::{
    fs,
    time::{Duration, Instant},
};

use serde_json::json;
use sha2::{Digest, Sha256};

use super::{
    asking, eventually,
    provider::{Instead, Provider, skill_md, zip},
};

const ANN: &str = "ann@example.com";

fn pdf(words: &str) -> Vec<u8> {
    zip(&[
        ("pdf/SKILL.md", &skill_md("pdf", words)),
        ("pdf/run.sh", "echo\n"),
    ])
}

fn digest(archive: &[u8]) -> String {
    hex::encode(Sha256::digest(archive))
}

/// A provider that gives Ann a PDF skill, whose hash it tells.
async fn pdf_for_ann() -> Provider {
    let provider = Provider::start().await;
    let archive = pdf("Given.");
    provider.give(
        ANN,
        json!([{"name": "pdf", "zip_sha256": digest(&archive)}]),
    );
    provider.hold("pdf", archive);
    provider
}

/// Lets the time pass that the server waits by; what the provider is asked takes as long as it takes.
async fn pass(seconds: u64) {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(seconds)).await;
    tokio::time::resume();
}

#[tokio::test]
async fn what_is_enabled_is_fetched_and_what_is_left_out_is_off() {
    let provider = Provider::start().await;
    let archive = pdf("Given.");
    provider.give(
        ANN,
        json!([
            {"name": "pdf", "category": "other", "zip_sha256": digest(&archive), "skill_path": "/etc/passwd"},
            {"name": "here", "category": "public"},
            {"name": "csv", "category": "public"},
        ]),
    );
    provider.hold("pdf", archive);
    provider.hold("csv", zip(&[("SKILL.md", &skill_md("csv", "Tables."))]));
    let server = asking(&provider).start();
    server.write_skill("public/here", "This server's.");
    server.write_skill("public/off", "Not enabled.");
    let summary = server.summary_of(ANN).await;
    assert_eq!(
        summary,
        [
            "user/pdf provider",
            "public/csv provider",
            "public/here local"
        ]
    );
    let prompt = server.prompt_for(ANN).await;
    assert!(prompt.contains("/mnt/skills/user/pdf/SKILL.md") && prompt.contains("Given."));
    assert!(!prompt.contains("Not enabled."));
    // Who has no user has what this server has, and the provider is not asked.
    assert_eq!(
        server.get("/skill-list").await.text(),
        "here: This server's.\noff: Not enabled.\n"
    );
    let asked = provider.said().asked.clone();
    assert!(
        asked.iter().all(|(_, key)| key == "of-the-provider"),
        "{asked:?}"
    );
    assert_eq!(asked[0].0, "list ann@example.com");
}

#[tokio::test]
async fn two_users_with_different_skills_of_one_name_see_their_own() {
    let provider = Provider::start().await;
    for (email, words) in [(ANN, "Ann's."), ("bob@example.com", "Bob's.")] {
        let archive = pdf(words);
        provider.give(
            email,
            json!([{"name": "pdf", "zip_sha256": digest(&archive)}]),
        );
        let key = (email.to_owned(), "pdf".to_owned());
        provider.said().archives.insert(key, archive);
    }
    let server = asking(&provider).start();
    for (email, own, other) in [(ANN, "Ann", "Bob"), ("bob@example.com", "Bob", "Ann")] {
        server.skills_of(email).await;
        let prompt = server.prompt_for(email).await;
        assert!(prompt.contains(own) && !prompt.contains(other), "{prompt}");
    }
}

#[tokio::test]
async fn fault_2_an_archive_that_reaches_out_is_refused_with_the_reason() {
    let provider = Provider::start().await;
    let hostile = [
        (
            "slip",
            zip(&[
                ("SKILL.md", &skill_md("slip", "x")),
                ("../../../escaped", "x"),
            ]),
        ),
        (
            "absolute",
            zip(&[
                ("SKILL.md", &skill_md("absolute", "x")),
                ("/tmp/foreword-escaped", "x"),
            ]),
        ),
        ("none", zip(&[("README.md", "x")])),
        ("text", b"this is no archive".to_vec()),
    ];
    let mut list = vec![
        json!({"name": "pdf", "zip_sha256": "0".repeat(64)}),
        json!({"name": "../up"}),
    ];
    provider.hold("pdf", pdf("Another than said."));
    for (name, archive) in hostile {
        list.push(json!({"name": name}));
        provider.hold(name, archive);
    }
    list.push(json!({"name": "good"}));
    provider.hold("good", zip(&[("SKILL.md", &skill_md("good", "Fine."))]));
    provider.give(ANN, json!(list));
    let server = asking(&provider).start();
    let summary = server.summary_of(ANN).await;
    assert_eq!(summary[0], "user/good provider");
    assert_eq!(summary.len(), 7, "{summary:#?}");
    let reason = |name: &str| {
        let found = summary
            .iter()
            .find(|line| line.starts_with(&format!("{name}: ")));
        found
            .unwrap_or_else(|| panic!("{name} in {summary:#?}"))
            .clone()
    };
    assert!(reason("pdf").contains("SHA-256"));
    assert!(reason("slip").contains("escaped"), "{}", reason("slip"));
    assert!(reason("../up").contains("a skill is called"));
    for name in ["absolute", "none", "text"] {
        reason(name);
    }
    assert!(!server.data.path().join("escaped").exists());
    assert!(
        !server
            .data
            .path()
            .parent()
            .unwrap()
            .join("escaped")
            .exists()
    );
    let kept = fs::read_dir(server.skills_directory("cache")).unwrap();
    assert_eq!(kept.count(), 1, "only the good one is kept");
}

#[tokio::test]
async fn fault_9_a_provider_that_is_down_or_wrong_degrades_and_is_marked() {
    let provider = pdf_for_ann().await;
    let wrong = [
        Instead::Status(500),
        Instead::Text("{\"enabled_skills\": \"none\"}".to_owned()),
        Instead::Text("[".repeat(2 << 20)),
        Instead::Text(format!(
            "{{\"enabled_skills\": [{}]}}",
            vec!["{\"name\":\"a\"}"; 1001].join(",")
        )),
    ];
    for instead in wrong {
        provider.instead(Some(instead));
        let server = asking(&provider).start();
        server.write_skill("public/here", "This server's.");
        let response = server
            .get("/system-prompt?chat_id=a")
            .header("x-user-email", ANN)
            .await;
        assert!(response.text().contains("This server&apos;s."));
        assert!(!response.header("x-prompt-degraded").is_empty());
        let request = server.get("/system-prompt?chat_id=a&format=json");
        let json = request.header("x-user-email", ANN).await.json();
        assert_eq!(json["diagnostics"][0]["code"], "degraded", "{json}");
        assert!(server.skills_of(ANN).await["degraded"].is_string());
        // It comes back without a restart, and what was degraded was not kept as good.
        provider.instead(None);
        eventually("the provider's skill is there", async || {
            let prompt = server.prompt_for(ANN).await;
            prompt.contains("Given.") && !prompt.contains("This server")
        })
        .await;
    }
}

#[tokio::test]
async fn what_a_provider_said_last_is_good_after_a_restart_and_nobody_waits() {
    let provider = pdf_for_ann().await;
    let server = asking(&provider).start();
    server.skills_of(ANN).await;
    provider.instead(Some(Instead::Silence));
    let again = server.restarted(asking(&provider));
    let started = Instant::now();
    assert!(again.prompt_for(ANN).await.contains("Given."));
    assert!(
        started.elapsed().as_millis() < 700,
        "{:?}",
        started.elapsed()
    );
    // A user who was never seen before waits, but not for long.
    let started = Instant::now();
    again.prompt_for("new@example.com").await;
    let waited = started.elapsed().as_millis();
    assert!((700..4000).contains(&waited), "{waited}");
}

#[tokio::test]
async fn a_skill_that_is_switched_off_is_gone_within_a_minute() {
    let provider = pdf_for_ann().await;
    let server = asking(&provider).start();
    assert_eq!(server.summary_of(ANN).await, ["user/pdf provider"]);
    provider.give(ANN, json!([]));
    // As long as an answer is fresh nobody asks; after that who comes makes the server ask, and does not wait for it.
    pass(41).await;
    assert!(server.prompt_for(ANN).await.contains("Given."));
    eventually("it is gone", async || {
        !server.prompt_for(ANN).await.contains("Given.")
    })
    .await;
    assert_eq!(server.summary_of(ANN).await, [""; 0]);
}

#[tokio::test]
async fn fault_26_no_header_points_the_server_at_another_provider() {
    let (provider, other) = (Provider::start().await, Provider::start().await);
    provider.give(ANN, json!([]));
    let server = asking(&provider).start();
    for name in [
        "x-mcp-tokens-url",
        "mcp_tokens_url",
        "x-skills-provider-url",
        "x-forwarded-host",
    ] {
        let request = server
            .get("/system-prompt?chat_id=a")
            .header("x-user-email", ANN);
        let answer = request.header(name, other.url()).await;
        assert_eq!(answer.status, 200);
    }
    assert!(other.said().asked.is_empty());
    assert!(!provider.said().asked.is_empty());
}

#[tokio::test]
async fn an_archive_that_hangs_holds_up_nothing_else() {
    let provider = pdf_for_ann().await;
    let server = asking(&provider).start();
    assert_eq!(server.summary_of(ANN).await, ["user/pdf provider"]);
    let fine = zip(&[("SKILL.md", &skill_md("fine", "Fine."))]);
    provider.give(
        ANN,
        json!([{"name": "slow"}, {"name": "fine", "zip_sha256": digest(&fine)}]),
    );
    provider.hold("slow", Vec::new());
    provider.hold("fine", fine);
    let server = server.restarted(asking(&provider));
    let started = Instant::now();
    assert_eq!(server.summary_of(ANN).await, ["user/fine provider"]);
    assert!(started.elapsed().as_secs() < 8, "{:?}", started.elapsed());
    // Nobody waits for it a second time.
    let started = Instant::now();
    assert!(server.skills_of(ANN).await["degraded"].is_string());
    assert!(started.elapsed().as_secs() < 3, "{:?}", started.elapsed());
}

#[tokio::test]
async fn one_entry_that_cannot_be_read_costs_that_skill_alone() {
    let provider = Provider::start().await;
    let archive = pdf("Given.");
    provider.give(
        ANN,
        json!([{"name": "pdf", "zip_sha256": digest(&archive)}, {"name": "odd", "zip_sha256": 5}, "text"]),
    );
    provider.hold("pdf", archive);
    let server = asking(&provider).start();
    let summary = server.summary_of(ANN).await;
    assert_eq!(summary[0], "user/pdf provider");
    assert_eq!(summary.len(), 3, "{summary:?}");
    assert!(
        summary
            .iter()
            .any(|line| line.starts_with("odd: its entry cannot be read"))
    );
}

#[tokio::test]
async fn an_archive_may_have_50_mib_and_no_byte_more() {
    const MOST: usize = 50 << 20;
    let provider = Provider::start().await;
    provider.give(ANN, json!([{"name": "fits"}, {"name": "large"}]));
    provider.hold("fits", vec![b'x'; MOST]);
    provider.hold("large", vec![b'x'; MOST + 1]);
    let server = asking(&provider).start();
    let summary = server.summary_of(ANN).await;
    assert_eq!(summary.len(), 2, "{summary:?}");
    let is_too_large = |line: &String| line.contains("more than 50 MiB");
    assert!(!is_too_large(&summary[0]), "{summary:?}");
    assert!(is_too_large(&summary[1]), "{summary:?}");
}

#[tokio::test]
async fn a_provider_that_is_silent_is_not_asked_for_everybody() {
    let provider = Provider::start().await;
    provider.instead(Some(Instead::Silence));
    let server = asking(&provider).start();
    let asking = (0..40).map(|number| {
        let server = &server;
        async move { server.skills_of(&format!("user{number}@example.com")).await }
    });
    let answers = futures::future::join_all(asking).await;
    assert!(answers.iter().all(|answer| answer["degraded"].is_string()));
    // As many as may be asked for at once; those behind them learn it from them.
    assert_eq!(provider.said().asked.len(), 16);
}

#[tokio::test]
async fn an_archive_without_a_hash_is_asked_for_again_after_a_minute_by_its_etag() {
    let provider = Provider::start().await;
    provider.said().tags = true;
    provider.give(
        ANN,
        json!([{"name": "pdf"}, {"name": "here"}, {"name": "bad"}]),
    );
    provider.hold("pdf", pdf("Given."));
    provider.hold("bad", b"no archive".to_vec());
    let server = asking(&provider).start();
    server.write_skill("public/here", "This server's.");
    let expected = server.summary_of(ANN).await;
    assert_eq!(expected[..2], ["user/pdf provider", "public/here local"]);
    assert!(expected[2].starts_with("bad: "), "{expected:?}");
    let asked = || {
        [
            "list ann@example.com",
            "archive pdf",
            "archive here",
            "archive bad",
        ]
        .map(|what| provider.count(what))
    };
    assert_eq!(asked(), [1, 1, 1, 1]);
    // A new list does not ask for what came less than a minute ago, whether it was good or not.
    for (seconds, expected_asked, known) in [(41, [2, 1, 1, 1], 0), (41, [3, 2, 2, 2], 2)] {
        pass(seconds).await;
        server.prompt_for(ANN).await;
        eventually("it was asked", async || asked() == expected_asked).await;
        eventually("nothing changed", async || {
            server.summary_of(ANN).await == expected
        })
        .await;
        assert_eq!(
            provider.count("known pdf") + provider.count("known bad"),
            known
        );
    }
}

#[tokio::test]
async fn a_hash_that_is_wrong_is_told_and_mends_itself_without_being_asked_for_all_the_time() {
    let provider = pdf_for_ann().await;
    provider.hold("pdf", pdf("Another than said."));
    let server = asking(&provider).start();
    let summary = server.summary_of(ANN).await;
    assert!(
        summary[0].starts_with("pdf: its bytes have the SHA-256"),
        "{summary:?}"
    );
    for _ in 0..10 {
        pass(6).await;
        server.skills_of(ANN).await;
    }
    assert_eq!(provider.count("list ann@example.com"), 11);
    // After 5 s, 10 s, 20 s and 40 s.
    assert_eq!(provider.count("archive pdf"), 4);
    provider.hold("pdf", pdf("Given."));
    pass(60).await;
    assert_eq!(server.summary_of(ANN).await, ["user/pdf provider"]);
}

#[tokio::test]
async fn a_skill_with_a_hash_cannot_be_one_that_this_server_has() {
    let provider = Provider::start().await;
    provider.give(ANN, json!([{"name": "here", "zip_sha256": "0".repeat(64)}]));
    let server = asking(&provider).start();
    server.write_skill("public/here", "This server's.");
    let skills = server.skills_of(ANN).await;
    assert!(skills["degraded"].is_string(), "{skills}");
    assert_eq!(
        server.summary_of(ANN).await,
        ["here: it came as JSON, though it has a hash"]
    );
}

#[tokio::test]
async fn what_was_had_of_an_incomplete_answer_outlasts_a_restart_and_is_marked() {
    let provider = pdf_for_ann().await;
    let archive = provider.said().archives[&(String::new(), "pdf".to_owned())].clone();
    provider.give(
        ANN,
        json!([{"name": "pdf", "zip_sha256": digest(&archive)}, {"name": "slow"}]),
    );
    provider.hold("slow", Vec::new());
    let server = asking(&provider).start();
    server.skills_of(ANN).await;
    pass(31).await;
    let kept = server.skills_directory("provider/ann@example.com.json");
    eventually("it is kept", async || kept.exists()).await;
    provider.instead(Some(Instead::Silence));
    let again = server.restarted(asking(&provider));
    assert!(again.prompt_for(ANN).await.contains("Given."));
    assert!(again.skills_of(ANN).await["degraded"].is_string());
}

#[tokio::test]
async fn what_cannot_be_kept_here_is_told_and_had_when_it_can() {
    let provider = pdf_for_ann().await;
    let server = asking(&provider).start();
    let cache = server.skills_directory("cache");
    fs::create_dir_all(cache.parent().unwrap()).unwrap();
    fs::write(&cache, "in the way").unwrap();
    let summary = server.summary_of(ANN).await;
    assert!(
        summary[0].starts_with("pdf: it cannot be kept: "),
        "{summary:?}"
    );
    fs::remove_file(&cache).unwrap();
    pass(6).await;
    assert_eq!(server.summary_of(ANN).await, ["user/pdf provider"]);
}

#[tokio::test]
async fn a_list_may_have_1_mib_and_no_byte_more() {
    const MOST: usize = 1 << 20;
    let provider = Provider::start().await;
    for (bytes, is_good) in [(MOST, true), (MOST + 1, false)] {
        let list = "{\"enabled_skills\": []}";
        let padding = " ".repeat(bytes - list.len());
        provider.instead(Some(Instead::Text(padding + list)));
        let server = asking(&provider).start();
        assert_eq!(
            server.skills_of(ANN).await["degraded"].is_null(),
            is_good,
            "{bytes}"
        );
    }
}

#[tokio::test]
async fn of_one_name_the_users_own_counts_before_the_providers_and_that_before_the_one_for_all() {
    let provider = pdf_for_ann().await;
    let server = asking(&provider).start();
    server.write_skill("public/pdf", "For all.");
    assert_eq!(server.summary_of(ANN).await, ["user/pdf provider"]);
    server.write_skill("user/ann@example.com/pdf", "Ann's.");
    assert_eq!(server.summary_of(ANN).await, ["user/pdf local"]);
    assert!(server.prompt_for(ANN).await.contains("Ann&apos;s."));
}

#[tokio::test]
async fn an_address_is_asked_for_as_it_is() {
    let provider = Provider::start().await;
    let server = asking(&provider).start();
    for email in [
        "o'neil+x/y@example.com",
        "a%2fb@example.com",
        "q?a=b&c#d@example.com",
    ] {
        server.prompt_for(email).await;
        assert_eq!(
            provider.count(&format!("list {email}")),
            1,
            "{:?}",
            provider.said().asked
        );
    }
}

#[tokio::test]
async fn two_servers_on_one_directory_keep_an_archive_once_and_neither_disturbs_the_other() {
    let provider = pdf_for_ann().await;
    let one = asking(&provider).start();
    let data = tempfile::tempdir().unwrap();
    fs::create_dir_all(one.skills_directory("")).unwrap();
    std::os::unix::fs::symlink(one.skills_directory(""), data.path().join("skills")).unwrap();
    let other = asking(&provider).data(data).start();
    let list = provider.said().lists[ANN].clone();
    let users = (0..8)
        .map(|number| format!("user{number}@example.com"))
        .collect::<Vec<_>>();
    for user in &users {
        provider.said().lists.insert(user.clone(), list.clone());
    }
    let asked = users.iter().map(async |user| {
        let (here, there) = tokio::join!(one.summary_of(user), other.summary_of(user));
        assert_eq!(
            (&here[..], &there[..]),
            (&["user/pdf provider".to_owned()][..], &here[..])
        );
    });
    futures::future::join_all(asked).await;
    let left = fs::read_dir(one.skills_directory("cache")).unwrap();
    assert_eq!(left.count(), 1);
}

#[tokio::test]
async fn an_archive_that_nobody_has_any_more_is_removed_at_a_start() {
    let provider = pdf_for_ann().await;
    let server = asking(&provider).start();
    assert_eq!(server.summary_of(ANN).await, ["user/pdf provider"]);
    let cache = server.skills_directory("cache");
    let young = cache.join("1".repeat(64));
    let old = cache.join("2".repeat(64));
    for directory in [&young, &old] {
        fs::create_dir(directory).unwrap();
    }
    let long_ago = std::time::SystemTime::now() - Duration::from_hours(25);
    for path in fs::read_dir(&cache)
        .unwrap()
        .map(|entry| entry.unwrap().path())
    {
        if path != young {
            fs::File::open(&path)
                .unwrap()
                .set_modified(long_ago)
                .unwrap();
        }
    }
    let server = server.restarted(asking(&provider));
    assert!(young.exists() && !old.exists());
    provider.instead(Some(Instead::Silence));
    assert!(server.prompt_for(ANN).await.contains("Given."));
}

#[tokio::test]
async fn archives_that_hang_take_nobodys_turn_for_long() {
    let provider = Provider::start().await;
    let hanging = (0..5).map(|at| format!("a{at}")).collect::<Vec<_>>();
    let mut list: Vec<_> = hanging.iter().map(|name| json!({"name": name})).collect();
    for name in &hanging {
        provider.hold(name, Vec::new());
    }
    list.push(json!({"name": "good"}));
    provider.hold("good", zip(&[("SKILL.md", &skill_md("good", "Fine."))]));
    provider.give(ANN, json!(list));
    let server = asking(&provider).start();
    server.prompt_for(ANN).await;
    eventually("those that hang have all turns", async || {
        (0..4).all(|at| provider.count(&format!("archive a{at}")) == 1)
    })
    .await;
    // They are left alone now, and whoever did not come to ask asks first.
    pass(31).await;
    eventually("they are given up", async || {
        server
            .summary_of(ANN)
            .await
            .iter()
            .any(|line| line.starts_with("a0: it did not come in time"))
    })
    .await;
    pass(6).await;
    assert_eq!(server.summary_of(ANN).await[0], "user/good provider");
}

#[tokio::test]
async fn an_archive_that_many_users_have_is_fetched_once() {
    let provider = pdf_for_ann().await;
    let list = provider.said().lists[ANN].clone();
    let users = (0..12)
        .map(|at| format!("user{at}@example.com"))
        .collect::<Vec<_>>();
    for user in &users {
        provider.said().lists.insert(user.clone(), list.clone());
    }
    let server = asking(&provider).start();
    let summaries = users.iter().map(|user| server.summary_of(user));
    for summary in futures::future::join_all(summaries).await {
        assert_eq!(summary, ["user/pdf provider"]);
    }
    // As many as are fetched at once may begin before the first of them has come.
    assert!(
        provider.count("archive pdf") <= 4,
        "{}",
        provider.count("archive pdf")
    );
}

#[tokio::test]
async fn a_user_whom_the_provider_does_not_know_any_more_is_forgotten() {
    let provider = pdf_for_ann().await;
    let server = asking(&provider).start();
    assert_eq!(server.summary_of(ANN).await, ["user/pdf provider"]);
    let kept = server.skills_directory("provider/ann@example.com.json");
    assert!(kept.exists());
    provider.said().lists.remove(ANN);
    pass(61).await;
    assert_eq!(server.summary_of(ANN).await, [""; 0]);
    assert!(!kept.exists());
}

#[tokio::test]
async fn a_list_may_have_1_000_skills_and_no_more() {
    let provider = Provider::start().await;
    for (count, is_good) in [(1_000, true), (1_001, false)] {
        let skills: Vec<_> = (0..count)
            .map(|at| json!({"name": format!("../{at}")}))
            .collect();
        let list = json!({"enabled_skills": skills}).to_string();
        provider.instead(Some(Instead::Text(list)));
        let server = asking(&provider).start();
        assert_eq!(
            server.skills_of(ANN).await["degraded"].is_null(),
            is_good,
            "{count}"
        );
    }
}

//! Skills that a provider gives: good, slow, down, wrong and hostile.

use std::{fs, time::Instant};

use serde_json::json;
use sha2::{Digest, Sha256};

use super::{
    asking, eventually,
    provider::{Instead, Provider, skill_md, zip},
};

fn pdf(words: &str) -> Vec<u8> {
    zip(&[
        ("pdf/SKILL.md", &skill_md("pdf", words)),
        ("pdf/run.sh", "echo\n"),
    ])
}

fn digest(archive: &[u8]) -> String {
    hex::encode(Sha256::digest(archive))
}

#[tokio::test]
async fn what_is_enabled_is_fetched_and_what_is_left_out_is_off() {
    let provider = Provider::start().await;
    let archive = pdf("Given.");
    provider.give(
        "ann@example.com",
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
    let summary = server.summary_of("ann@example.com").await;
    assert_eq!(
        summary,
        [
            "user/pdf provider",
            "public/csv provider",
            "public/here local"
        ]
    );
    let prompt = server.prompt_for("ann@example.com").await;
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
    for (email, words) in [("ann@example.com", "Ann's."), ("bob@example.com", "Bob's.")] {
        let archive = pdf(words);
        provider.give(
            email,
            json!([{"name": "pdf", "zip_sha256": digest(&archive)}]),
        );
        let key = (email.to_owned(), "pdf".to_owned());
        provider.said().archives.insert(key, archive);
    }
    let server = asking(&provider).start();
    for (email, own, other) in [
        ("ann@example.com", "Ann", "Bob"),
        ("bob@example.com", "Bob", "Ann"),
    ] {
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
    provider.give("ann@example.com", json!(list));
    let server = asking(&provider).start();
    let summary = server.summary_of("ann@example.com").await;
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
    let provider = Provider::start().await;
    let archive = pdf("Given.");
    provider.give(
        "ann@example.com",
        json!([{"name": "pdf", "zip_sha256": digest(&archive)}]),
    );
    provider.hold("pdf", archive);
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
            .header("x-user-email", "ann@example.com")
            .await;
        assert!(response.text().contains("This server&apos;s."));
        assert!(!response.header("x-prompt-degraded").is_empty());
        let request = server.get("/system-prompt?chat_id=a&format=json");
        let json = request
            .header("x-user-email", "ann@example.com")
            .await
            .json();
        assert_eq!(json["diagnostics"][0]["code"], "degraded", "{json}");
        assert!(server.skills_of("ann@example.com").await["degraded"].is_string());
        // It comes back without a restart, and what was degraded was not kept as good.
        provider.instead(None);
        eventually("the provider's skill is there", async || {
            let prompt = server.prompt_for("ann@example.com").await;
            prompt.contains("Given.") && !prompt.contains("This server")
        })
        .await;
    }
}

#[tokio::test]
async fn what_a_provider_said_last_is_good_after_a_restart_and_nobody_waits() {
    let provider = Provider::start().await;
    let archive = pdf("Given.");
    provider.give(
        "ann@example.com",
        json!([{"name": "pdf", "zip_sha256": digest(&archive)}]),
    );
    provider.hold("pdf", archive);
    let server = asking(&provider).start();
    server.skills_of("ann@example.com").await;
    provider.instead(Some(Instead::Silence));
    let again = server.restarted(asking(&provider));
    let started = Instant::now();
    assert!(again.prompt_for("ann@example.com").await.contains("Given."));
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
    let provider = Provider::start().await;
    let archive = pdf("Given.");
    provider.give(
        "ann@example.com",
        json!([{"name": "pdf", "zip_sha256": digest(&archive)}]),
    );
    provider.hold("pdf", archive);
    let server = asking(&provider).start();
    assert_eq!(
        server.summary_of("ann@example.com").await,
        ["user/pdf provider"]
    );
    provider.give("ann@example.com", json!([]));
    let started = Instant::now();
    eventually("it is gone", async || {
        !server
            .prompt_for("ann@example.com")
            .await
            .contains("Given.")
    })
    .await;
    assert!(started.elapsed().as_secs() <= 60, "{:?}", started.elapsed());
}

#[tokio::test]
async fn fault_26_no_header_points_the_server_at_another_provider() {
    let (provider, other) = (Provider::start().await, Provider::start().await);
    provider.give("ann@example.com", json!([]));
    let server = asking(&provider).start();
    for name in [
        "x-mcp-tokens-url",
        "mcp_tokens_url",
        "x-skills-provider-url",
        "x-forwarded-host",
    ] {
        let request = server
            .get("/system-prompt?chat_id=a")
            .header("x-user-email", "ann@example.com");
        let answer = request.header(name, other.url()).await;
        assert_eq!(answer.status, 200);
    }
    assert!(other.said().asked.is_empty());
    assert!(!provider.said().asked.is_empty());
}

#[tokio::test]
async fn an_archive_that_hangs_holds_up_nothing_else() {
    let provider = Provider::start().await;
    let archive = pdf("Given.");
    provider.give(
        "ann@example.com",
        json!([{"name": "pdf", "zip_sha256": digest(&archive)}]),
    );
    provider.hold("pdf", archive);
    let server = asking(&provider).start();
    assert_eq!(
        server.summary_of("ann@example.com").await,
        ["user/pdf provider"]
    );
    let fine = zip(&[("SKILL.md", &skill_md("fine", "Fine."))]);
    provider.give(
        "ann@example.com",
        json!([{"name": "slow"}, {"name": "fine", "zip_sha256": digest(&fine)}]),
    );
    provider.hold("slow", Vec::new());
    provider.hold("fine", fine);
    let server = server.restarted(asking(&provider));
    let started = Instant::now();
    assert_eq!(
        server.summary_of("ann@example.com").await,
        ["user/fine provider"]
    );
    assert!(started.elapsed().as_secs() < 8, "{:?}", started.elapsed());
    // Nobody waits for it a second time.
    let started = Instant::now();
    assert!(server.skills_of("ann@example.com").await["degraded"].is_string());
    assert!(started.elapsed().as_secs() < 3, "{:?}", started.elapsed());
}

#[tokio::test]
async fn one_entry_that_cannot_be_read_costs_that_skill_alone() {
    let provider = Provider::start().await;
    let archive = pdf("Given.");
    provider.give(
        "ann@example.com",
        json!([{"name": "pdf", "zip_sha256": digest(&archive)}, {"name": "odd", "zip_sha256": 5}, "text"]),
    );
    provider.hold("pdf", archive);
    let server = asking(&provider).start();
    let summary = server.summary_of("ann@example.com").await;
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
    provider.give(
        "ann@example.com",
        json!([{"name": "fits"}, {"name": "large"}]),
    );
    provider.hold("fits", vec![b'x'; MOST]);
    provider.hold("large", vec![b'x'; MOST + 1]);
    let server = asking(&provider).start();
    let summary = server.summary_of("ann@example.com").await;
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

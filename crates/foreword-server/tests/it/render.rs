//! The renderer behind all tiers: rendered once, kept for a while, within bounds.

use foreword_compose::GlobalPrompt;
use foreword_server::{ChatId, Session, config::Form, render::Extras};
use foreword_store::{Edit, EditError};
use futures::future::join_all;
use insta::assert_snapshot;
use jiff::SignedDuration;

use crate::{
    mcp::{LIBRARY, server},
    support::TestServer,
};

fn session(chat: &str) -> Session {
    Session {
        chat_id: ChatId::parse(chat).unwrap(),
        chat_id_given: true,
        shared: false,
        user_email: None,
        user_name: None,
        profile_id: None,
    }
}

/// How many renders ended well, as the metrics count them.
fn renders(server: &TestServer) -> u64 {
    let metrics = server.app.metrics().encode();
    let line = metrics
        .lines()
        .find(|line| line.starts_with("foreword_renders_total{"));
    line.map_or(0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
}

fn set_global_prompt(text: &'static str) -> Edit {
    Edit::new("changed the global prompt", move |library| {
        let mut draft = library.draft().clone();
        draft.global_prompt = Some(GlobalPrompt {
            content: text.to_owned(),
            enabled: true,
        });
        Ok::<_, EditError>(draft)
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fault_7_200_concurrent_cold_renders_are_one() {
    let server = server();
    let requests = (0..200).map(|_| {
        let request = server.get("/system-prompt?chat_id=abc");
        tokio::spawn(async move { request.await.text().to_owned() })
    });
    let texts: Vec<String> = join_all(requests)
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect();
    assert!(texts.iter().all(|text| *text == texts[0]));
    assert_eq!(renders(&server), 1);
}

#[tokio::test]
async fn fault_20_invented_chats_do_not_grow_the_cache_over_its_bound() {
    let library = format!("global_prompt: '{}'\n", "x".repeat(1_000));
    let bound = 1 << 20;
    let server = TestServer::builder()
        .library(&library)
        .config(|config| config.render.cache_bytes = bound)
        .start();
    let renderer = server.app.renderer();
    for chat in 0..10_000 {
        renderer
            .render(&session(&format!("invented-{chat}")), Form::Full)
            .await
            .unwrap();
    }
    let usage = renderer.cache_usage().await;
    assert!(usage.bytes <= bound, "{usage:?}");
    assert!(usage.entries > 250, "{usage:?}");
}

#[tokio::test]
async fn sessions_of_one_profile_share_their_static_beginning() {
    let library = format!("global_prompt: '{}'\n", "x".repeat(20_000));
    let server = TestServer::builder().library(&library).start();
    let renderer = server.app.renderer();
    let one = renderer.render(&session("one"), Form::Full).await.unwrap();
    let other = renderer
        .render(&session("other"), Form::Full)
        .await
        .unwrap();
    let ([one, _], [other, _]) = (one.chunks(), other.chunks());
    assert_eq!(one.as_ptr(), other.as_ptr());
    assert!(one.len() >= 20_000);

    for chat in 0..100 {
        renderer
            .render(&session(&format!("chat-{chat}")), Form::Full)
            .await
            .unwrap();
    }
    let usage = renderer.cache_usage().await;
    assert!(usage.bytes < 250_000, "{usage:?}");
}

#[tokio::test]
async fn a_cache_without_room_still_renders() {
    let library = format!("global_prompt: '{}'\n", "x".repeat(20_000));
    let server = TestServer::builder()
        .library(&library)
        .config(|config| config.render.cache_bytes = 0)
        .start();
    let first = server.get("/system-prompt").await;
    let second = server.get("/system-prompt").await;
    assert_eq!(first.body, second.body);
    assert!(first.body.len() > 20_000);
}

#[tokio::test]
async fn a_changed_library_shows_in_the_next_answer() {
    let server = server();
    let before = server.get("/system-prompt").await;
    server
        .app
        .store()
        .edit(set_global_prompt("Be brief."))
        .await
        .unwrap();
    let after = server.get("/system-prompt").await;
    assert!(after.text().starts_with("Be brief."));
    assert_ne!(before.header("etag"), after.header("etag"));
}

#[tokio::test]
async fn a_changed_library_does_not_throw_everything_out_at_the_cost_of_the_next_request() {
    let server = server();
    let renderer = server.app.renderer();
    for chat in 0..100 {
        let session = session(&format!("chat-{chat}"));
        renderer.render(&session, Form::Full).await.unwrap();
    }
    let edit = set_global_prompt("Be brief.");
    server.app.store().edit(edit).await.unwrap();
    renderer
        .render(&session("chat-1"), Form::Full)
        .await
        .unwrap();
    // What is kept of the old library leaves by age, or when its room is needed.
    assert_eq!(renderer.cache_usage().await.entries, 101);
    renderer.forget(None).await;
    assert_eq!(renderer.cache_usage().await.entries, 0);
    assert_eq!(renderer.cache_usage().await.bytes, 0);
}

#[tokio::test]
async fn sessions_with_and_without_a_value_do_not_drive_each_other_out() {
    let library = format!(
        "global_prompt: '{} For {{user_email}}. {}'\n",
        "x".repeat(2_000),
        "y".repeat(2_000)
    );
    let server = TestServer::builder().library(&library).start();
    let without = "/system-prompt?chat_id=one";
    let with = "/system-prompt?chat_id=one&user_email=ann@example.com";
    for path in [without, with].into_iter().cycle().take(20) {
        assert_eq!(server.get(path).await.status, 200);
    }
    assert_eq!(renders(&server), 2);
}

#[tokio::test]
async fn a_new_day_shows_in_the_next_answer() {
    let server = TestServer::builder()
        .library("global_prompt: Today is {date}.")
        .start();
    let today = server.get("/system-prompt").await;
    assert!(today.text().starts_with("Today is 2026-07-01."));
    server.advance(SignedDuration::from_hours(12));
    let tomorrow = server.get("/system-prompt").await;
    assert!(tomorrow.text().starts_with("Today is 2026-07-02."));
}

#[tokio::test]
async fn a_new_link_epoch_shows_in_the_next_answer() {
    let server = TestServer::builder().library(LIBRARY).keys().start();
    let ask = || server.get("/system-prompt?chat_id=abc").api();
    let before = ask().await;
    server.advance(SignedDuration::from_hours(8 * 24));
    let after = ask().await;
    assert_ne!(
        before.header("x-file-base-url"),
        after.header("x-file-base-url")
    );
    assert!(after.text().contains(after.header("x-file-base-url")));
}

#[tokio::test]
async fn what_was_rendered_is_kept_until_it_is_dropped() {
    let server = TestServer::builder().library(LIBRARY).keys().start();
    let ask = |chat: &str| server.get(&format!("/system-prompt?chat_id={chat}")).api();
    for chat in ["one", "two", "one", "two"] {
        ask(chat).await;
    }
    assert_eq!(renders(&server), 2);

    let dropped = server.delete("/api/render-cache?chat_id=ONE").admin().await;
    assert_eq!(dropped.status, 204);
    for chat in ["one", "two"] {
        ask(chat).await;
    }
    assert_eq!(renders(&server), 3);

    assert_eq!(server.delete("/api/render-cache").admin().await.status, 204);
    for chat in ["one", "two"] {
        ask(chat).await;
    }
    assert_eq!(renders(&server), 5);
}

#[tokio::test]
async fn dropping_is_for_admins_and_for_chats() {
    let server = TestServer::builder().library(LIBRARY).keys().start();
    assert_eq!(server.delete("/api/render-cache").api().await.status, 403);
    let invalid = server
        .delete("/api/render-cache?chat_id=a..b")
        .admin()
        .await;
    assert_snapshot!(invalid.summary(), @"400 invalid_chat_id: the chat id is not valid: a chat id is not `.` and has no `..`");
}

#[tokio::test]
async fn fault_36_values_are_not_expanded_and_foreign_text_is_not_touched() {
    let server = TestServer::builder()
        .library("global_prompt: Hello {user_name}.")
        .start();
    let response = server
        .get("/system-prompt?chat_id=abc&user_name=%7Bchat_id%7D")
        .await;
    assert!(response.text().starts_with("Hello {chat_id}."));

    let extras = Extras {
        context: vec!["Remember {chat_id}.".to_owned()],
        ..Extras::default()
    };
    let rendered = server
        .app
        .renderer()
        .render_with(&session("abc"), Form::Full, &extras)
        .await
        .unwrap();
    assert!(rendered.text.ends_with("\n\nRemember {chat_id}."));
}

#[tokio::test]
async fn an_override_is_the_prompt_byte_for_byte() {
    let extras = Extras {
        system_override: Some("  Only {this}.\n\n".to_owned()),
        ..Extras::default()
    };
    let server = server();
    let rendered = server
        .app
        .renderer()
        .render_with(&session("abc"), Form::Full, &extras)
        .await
        .unwrap();
    assert_eq!(&*rendered.text, "  Only {this}.\n\n");
    assert_eq!(
        rendered.revision,
        foreword_compose::revision(&rendered.text, None)
    );
}

#[tokio::test]
async fn without_a_guide_nothing_is_said_about_the_text() {
    for guide in ["{enabled: false, content: Hidden.}", "{content: ' '}"] {
        let library = format!("global_prompt: Be kind.\nworkspace_guide: {guide}\n");
        let server = TestServer::builder().library(&library).start();
        assert_eq!(server.get("/system-prompt").await.text(), "Be kind.");
    }
}

#[tokio::test]
async fn a_section_with_the_guides_id_is_not_taken_for_the_guide() {
    let library = "
profiles:
  - id: default
    sections:
      - {id: workspace-guide, content: A section.}
workspace_guide: {content: Guide.}
";
    let server = TestServer::builder().library(library).start();
    let response = server.get("/system-prompt").await;
    let zeroed = response
        .text()
        .replace(response.header("x-prompt-revision"), "0000000000000000");
    assert!(zeroed.contains("revision `0000000000000000`"));
}

//! The URLs that browsers see, and the capabilities in them.

use foreword_server::{
    ChatId, ServerConfig,
    config::{KeyConfig, Role, Secret},
    links::{Linked, Links},
};
use insta::assert_snapshot;

const WEEK: u64 = 2948;

fn config(public_base_url: Option<&str>, keys: &[&str]) -> ServerConfig {
    let mut config = ServerConfig {
        public_base_url: public_base_url.map(str::to_owned),
        ..ServerConfig::default()
    };
    config.auth.keys = keys
        .iter()
        .map(|key| KeyConfig {
            name: "test".to_owned(),
            key: Secret::new(*key),
            role: Role::Api,
            instructions: None,
        })
        .collect();
    config
}

fn links() -> Links {
    Links::new(&config(Some("https://a.example/base/"), &["key"]), [1; 32])
}

fn chat(id: &str) -> ChatId {
    ChatId::parse(id).unwrap()
}

fn summary(links: &Links, id: &str) -> String {
    let urls = links.chat(&chat(id), None, WEEK);
    [urls.file_base_url, urls.archive_url, urls.preview_url].join("\n")
}

fn read(links: &Links, segment: &str, epoch: u64) -> String {
    match links.read(segment, epoch) {
        Ok(Linked::Opened { chat, .. }) => format!("opens {chat}"),
        Ok(Linked::Bare(chat)) => format!("names {chat}"),
        Err(error) => error.to_string(),
    }
}

/// The chat's place in its links.
fn segment(links: &Links, id: &str, epoch: u64) -> String {
    let url = links.chat(&chat(id), None, epoch).file_base_url;
    let (_, segment) = url.rsplit_once('/').unwrap();
    segment.to_owned()
}

#[test]
fn links_carry_a_capability_where_keys_are_set() {
    assert_snapshot!(summary(&links(), "c-1"), @r"
    https://a.example/base/files/c-1~zZPmJFkrVDzNYzcuTYWWnk
    https://a.example/base/files/c-1~zZPmJFkrVDzNYzcuTYWWnk/archive
    https://a.example/base/preview/c-1~zZPmJFkrVDzNYzcuTYWWnk
    ");
    let open = Links::new(&config(Some("https://a.example"), &[]), [1; 32]);
    assert_snapshot!(summary(&open, "c-1"), @r"
    https://a.example/files/c-1
    https://a.example/files/c-1/archive
    https://a.example/preview/c-1
    ");
    let empty_key = Links::new(&config(Some("https://a.example"), &[""]), [1; 32]);
    assert_eq!(summary(&empty_key, "c-1"), summary(&open, "c-1"));
}

#[test]
fn chat_ids_are_percent_encoded_in_links() {
    let open = Links::new(&config(Some("https://a.example"), &[]), [1; 32]);
    assert_snapshot!(summary(&open, "channel:a%0a?#\"<&+.-_"), @r"
    https://a.example/files/channel%3Aa%250a%3F%23%22%3C%26%2B.-_
    https://a.example/files/channel%3Aa%250a%3F%23%22%3C%26%2B.-_/archive
    https://a.example/preview/channel%3Aa%250a%3F%23%22%3C%26%2B.-_
    ");
}

#[test]
fn the_base_url_is_derived_from_the_address_if_it_is_not_set() {
    let base = |listen: &str| {
        let mut config = config(None, &[]);
        config.http.listen = listen.parse().unwrap();
        Links::new(&config, [1; 32]).public_base_url().to_owned()
    };
    assert_eq!(base("127.0.0.1:8081"), "http://127.0.0.1:8081");
    assert_eq!(base("0.0.0.0:80"), "http://localhost:80");
    assert_eq!(base("[::]:8081"), "http://localhost:8081");
    assert_eq!(base("[::1]:8081"), "http://[::1]:8081");
    assert_eq!(base("192.168.1.5:8081"), "http://192.168.1.5:8081");
}

#[test]
fn a_capability_is_valid_in_its_epoch_and_the_next_one() {
    let links = links();
    let segment = segment(&links, "c-1", WEEK);
    assert_eq!(read(&links, &segment, WEEK), "opens c-1");
    assert_eq!(read(&links, &segment, WEEK + 1), "opens c-1");
    assert_snapshot!(read(&links, &segment, WEEK + 2), @"this link has expired; ask in the chat for a fresh one");
    assert_eq!(
        read(&links, &segment, WEEK + 8),
        read(&links, &segment, WEEK + 2)
    );
    assert_snapshot!(read(&links, &segment, WEEK + 9), @"this link is not valid; ask in the chat for a fresh one");
    // A clock that went back: nothing of the future is ours.
    assert_eq!(
        read(&links, &segment, WEEK - 1),
        read(&links, &segment, WEEK + 9)
    );
    assert_eq!(read(&links, &segment, 0), read(&links, &segment, WEEK + 9));
}

#[test]
fn a_capability_opens_one_chat_only() {
    let links = links();
    let segment = segment(&links, "c-1", WEEK);
    let (_, signature) = segment.split_once('~').unwrap();
    assert_eq!(signature.len(), 22);
    assert_eq!(read(&links, &format!("C-1~{signature}"), WEEK), "opens c-1");
    let forged = [
        format!("c-2~{signature}"),
        format!("c-1~{}", &signature[..21]),
        format!("c-1~{signature}A"),
        format!("c-1~{}", signature.to_lowercase()),
        "c-1~".to_owned(),
        format!("c-1~{}", "A".repeat(22)),
        format!("c-1~{signature}~{signature}"),
    ];
    for forged in forged {
        assert_eq!(
            read(&links, &forged, WEEK),
            "this link is not valid; ask in the chat for a fresh one",
            "{forged}"
        );
    }
    let other_key = Links::new(&config(None, &["key"]), [2; 32]);
    assert_eq!(
        read(&other_key, &segment, WEEK),
        "this link is not valid; ask in the chat for a fresh one"
    );
}

#[test]
fn a_link_says_for_whom_it_was_made_and_nobody_can_change_that() {
    let links = links();
    let made_for = |user: Option<&str>| {
        let url = links.chat(&chat("c-1"), user, WEEK).file_base_url;
        url.rsplit_once('/').unwrap().1.to_owned()
    };
    let (ann, nobody) = (made_for(Some("ann@x.example")), made_for(None));
    let Ok(Linked::Opened { tag, .. }) = links.read(&ann, WEEK) else {
        panic!("it does not open");
    };
    assert!(links.is_for(&tag, Some("ann@x.example")));
    assert!(!links.is_for(&tag, Some("bob@x.example")));
    assert!(!links.is_for(&tag, None));
    assert_eq!((ann.len(), nobody.len()), (26, 26));
    let at = "c-1~".len() + 6;
    for mixed in [
        format!("{}{}", &ann[..at], &nobody[at..]),
        format!("{}{}", &nobody[..at], &ann[at..]),
        format!("c-1~{}", &ann[at..]),
        "c-1~ünïcö".to_owned(),
        "c-1~üüüü".to_owned(),
    ] {
        assert_eq!(
            read(&links, &mixed, WEEK),
            "this link is not valid; ask in the chat for a fresh one",
            "{mixed}"
        );
    }
}

#[test]
fn a_chat_id_alone_opens_nothing_by_itself() {
    assert_eq!(read(&links(), "c-1", WEEK), "names c-1");
    assert_snapshot!(read(&links(), "a/b", WEEK), @r#"the chat id is not valid: a chat id has no `/`, `\` or `~`"#);
}

#[test]
fn links_stay_the_same_within_an_epoch() {
    let config = ServerConfig::default();
    let links = Links::new(&config, [1; 32]);
    let epoch = |time: &str| {
        let time = time.parse().unwrap();
        let clock: foreword_store::Clock = std::sync::Arc::new(move || time);
        links.epoch(&clock)
    };
    assert_eq!(epoch("2026-07-02T00:00:00Z"), WEEK);
    assert_eq!(epoch("2026-07-08T23:59:59Z"), WEEK);
    assert_eq!(epoch("2026-07-09T00:00:00Z"), WEEK + 1);
}

//! Which settings can be served, and what an operator is told about them.

use foreword_server::{
    ServerConfig,
    chat::ChatConfig,
    config::{KeyConfig, Role, Secret},
};
use insta::assert_snapshot;

fn check(adjust: impl FnOnce(&mut ServerConfig)) -> String {
    check_with(false, adjust)
}

fn check_with(allow_unauthenticated: bool, adjust: impl FnOnce(&mut ServerConfig)) -> String {
    let mut config = ServerConfig::default();
    adjust(&mut config);
    match config.check(allow_unauthenticated) {
        Ok(warnings) => {
            let lines = warnings
                .iter()
                .map(|warning| format!("{}: {}\n", warning.code, warning.message));
            lines.collect()
        }
        Err(error) => format!("error: {error}"),
    }
}

fn key(key: &str, role: Role) -> KeyConfig {
    KeyConfig {
        name: "test".to_owned(),
        key: Secret::new(key),
        role,
        instructions: None,
    }
}

/// A key of as many characters as a key should have.
const LONG: &str = "sixteen-letters-";

fn with_key_and_url(config: &mut ServerConfig) {
    config.auth.keys = vec![key(LONG, Role::Api), key(&LONG.to_uppercase(), Role::Admin)];
    config.public_base_url = Some("https://a.example/b".to_owned());
}

#[test]
fn the_defaults_work_and_say_what_they_mean() {
    assert_snapshot!(check(|_| ()), @r"
    no_key: no key is set: every process on this machine may read and change the prompts; set `FOREWORD_API_KEY`
    no_public_base_url: `public_base_url` is not set, so links in prompts open on this machine only; set `FOREWORD_PUBLIC_BASE_URL` to the address under which browsers reach the server
    ");
}

#[test]
fn with_a_key_and_a_url_there_is_nothing_to_say() {
    assert_eq!(check(with_key_and_url), "");
    assert_eq!(
        check(|config| {
            with_key_and_url(config);
            config.http.listen = "0.0.0.0:8081".parse().unwrap();
        }),
        ""
    );
}

#[test]
fn an_api_key_that_is_an_admin_key_too_is_said_so() {
    let alone = |config: &mut ServerConfig| {
        with_key_and_url(config);
        config.auth.keys.pop();
    };
    assert_snapshot!(check(alone), @"api_key_is_admin: there is no admin key, so whoever holds the API key may change the prompts too; set `FOREWORD_ADMIN_KEY` to keep that apart");
}

#[test]
fn short_keys_are_named_and_not_shown() {
    let short = |config: &mut ServerConfig| {
        with_key_and_url(config);
        config.auth.keys[0].key = Secret::new("fifteen-letters");
    };
    assert_snapshot!(check(short), @"short_key: shorter than 16 characters, so perhaps to be guessed: the key `test`; `openssl rand -hex 32` makes a good one");
}

#[test]
fn a_server_that_others_reach_under_no_name_is_said_so() {
    let reachable = |listen: &'static str| {
        move |config: &mut ServerConfig| {
            with_key_and_url(config);
            config.public_base_url = None;
            config.http.listen = listen.parse().unwrap();
        }
    };
    assert_snapshot!(check(reachable("0.0.0.0:8081")), @r"
    no_public_base_url: `public_base_url` is not set, so links in prompts open on this machine only; set `FOREWORD_PUBLIC_BASE_URL` to the address under which browsers reach the server
    no_host_names: only requests for `localhost` and loopback addresses are answered, all others get 403 `host_not_allowed`; name the hosts under which the server is asked for in `http.allowed_hosts`, or set `public_base_url`
    ");
    assert_snapshot!(check(reachable("192.168.1.5:8081")), @r"
    no_public_base_url: `public_base_url` is not set, so links in prompts open on this machine only; set `FOREWORD_PUBLIC_BASE_URL` to the address under which browsers reach the server
    no_host_names: only requests for `localhost`, loopback addresses and `192.168.1.5` are answered, all others get 403 `host_not_allowed`; name the hosts under which the server is asked for in `http.allowed_hosts`, or set `public_base_url`
    ");
    let named = check(|config| {
        reachable("0.0.0.0:8081")(config);
        config.http.allowed_hosts = vec!["foreword".to_owned()];
    });
    assert!(!named.contains("no_host_names"), "{named}");
}

#[test]
fn fault_25_listening_off_loopback_without_a_key_is_refused() {
    for listen in ["0.0.0.0:8081", "[::]:8081", "192.168.1.5:8081"] {
        let result = check(|config| config.http.listen = listen.parse().unwrap());
        assert!(result.starts_with("error: listening on"), "{result}");
        let with_empty_key = check(|config| {
            config.http.listen = listen.parse().unwrap();
            config.auth.keys = vec![key("", Role::Api), key(" ", Role::Admin)];
        });
        assert_eq!(with_empty_key, result);
    }
    let off_loopback = |config: &mut ServerConfig| {
        with_key_and_url(config);
        config.auth.keys.clear();
        config.http.listen = "0.0.0.0:8081".parse().unwrap();
    };
    assert_snapshot!(check(off_loopback), @"error: listening on `0.0.0.0:8081` without a key would let everybody on the network read and change the prompts; set `FOREWORD_API_KEY`, or listen on `127.0.0.1`, or start with `--allow-unauthenticated`");
    assert_snapshot!(check_with(true, off_loopback), @"no_key: no key is set and the server listens on `0.0.0.0:8081`: everybody who can connect may read and change the prompts; set `FOREWORD_API_KEY`");
}

#[test]
fn keys_that_cannot_work_are_refused() {
    assert_snapshot!(check(|config| config.auth.keys = vec![key("a", Role::Admin)]), @"error: there is an admin key but no API key, so nobody but admins could use the server; set `FOREWORD_API_KEY` too");
    assert_snapshot!(check(|config| config.auth.keys = vec![key("two words", Role::Api)]), @"error: the key `test` has spaces or characters that a header cannot hold; choose another");
}

#[test]
fn values_that_cannot_work_are_refused() {
    let public = |url: &str| {
        check(|config| {
            with_key_and_url(config);
            config.public_base_url = Some(url.to_owned());
        })
    };
    assert_eq!(public("http://10.0.0.1:8081/"), "");
    assert_snapshot!(public("prompts.example"), @"error: `public_base_url` cannot be `prompts.example`: it is a URL such as `https://foreword.example` or `https://example/foreword`");
    assert_snapshot!(public("ftp://prompts.example"), @"error: `public_base_url` cannot be `ftp://prompts.example`: it is a URL such as `https://foreword.example` or `https://example/foreword`");
    assert_snapshot!(public("https://user:word@prompts.example"), @"error: `public_base_url` cannot be `https://user:word@prompts.example`: it has no user name and password");
    assert_snapshot!(public("https://prompts.example/?a=b"), @"error: `public_base_url` cannot be `https://prompts.example/?a=b`: it has no query and no fragment");
    let named = |adjust: fn(&mut ServerConfig)| check(adjust);
    assert_snapshot!(named(|config| config.http.allowed_hosts = vec!["http://a".into()]), @"error: `http.allowed_hosts` cannot be `http://a`: each is a host name, with or without a port");
    assert_snapshot!(named(|config| config.http.cors_origins = vec!["*".into()]), @"error: `http.cors_origins` cannot be `*`: each is an origin such as `https://chat.example`, without a path; there is no wildcard");
    assert_snapshot!(named(|config| config.http.cors_origins = vec!["https://a/path".into()]), @"error: `http.cors_origins` cannot be `https://a/path`: each is an origin such as `https://chat.example`, without a path; there is no wildcard");
    assert_snapshot!(named(|config| config.session.chat_id_headers = vec!["X Chat".into()]), @"error: `session.chat_id_headers` cannot be `X Chat`: each is the name of a header");
    assert_snapshot!(named(|config| config.http.timeout_seconds = 0), @"error: `http.timeout_seconds` cannot be `0`: it is at least 1");
    assert_snapshot!(named(|config| config.links.epoch = 0), @"error: `links.epoch` cannot be `0`: it is at least 1");
}

#[test]
fn an_upstream_is_whole_and_has_a_url_that_can_be_one() {
    let chat = |adjust: fn(&mut ChatConfig)| {
        check(|config| {
            with_key_and_url(config);
            adjust(&mut config.chat);
        })
    };
    for (half, missing) in [
        (
            chat(|chat| chat.anthropic.base_url = Some("https://api.example".to_owned())),
            "`chat.anthropic.api_key` is not set",
        ),
        (
            chat(|chat| chat.anthropic.api_key = Some(Secret::new("k"))),
            "`chat.anthropic.base_url` is not set",
        ),
        (
            chat(|chat| chat.upstream.api_key = Some(Secret::new("k"))),
            "`chat.upstream.base_url` is not set",
        ),
    ] {
        assert!(
            half.starts_with(&format!("half_an_upstream: {missing}")),
            "{half}"
        );
    }
    for url in [
        "api.example/v1",
        "ftp://a",
        "https://u@a",
        "https://:p@a",
        "https://a?b",
        "https://a#b",
    ] {
        let refused = check(|config| config.chat.upstream.base_url = Some(url.to_owned()));
        assert!(
            refused.starts_with(&format!(
                "error: `chat.upstream.base_url` cannot be `{url}`"
            )),
            "{refused}"
        );
    }
    let key = check(|config| config.chat.upstream.api_key = Some(Secret::new("two words")));
    assert!(
        key.starts_with("error: the key `chat.upstream.api_key`"),
        "{key}"
    );
    for (setting, adjust) in [
        (
            "chat.max_body",
            (|chat| chat.max_body = 0) as fn(&mut ChatConfig),
        ),
        ("chat.upstream.timeout", |chat| chat.upstream.timeout = 0),
        ("chat.upstream.connect_timeout", |chat| {
            chat.upstream.connect_timeout = 0;
        }),
    ] {
        assert_eq!(
            chat(adjust),
            format!("error: `{setting}` cannot be `0`: it is at least 1")
        );
    }
}

//! What the start and `foreword doctor` say of the upstreams of the chat endpoints.

use crate::{support::Place, upstream::Upstream};

fn place(settings: &str) -> Place {
    let place = Place::new();
    place.write("foreword.toml", settings);
    place
}

fn doctor(settings: &str) -> String {
    let arguments = ["doctor", "--listen", "127.0.0.1:0", "--sandbox", "none"];
    place(settings).run(&arguments).stdout
}

#[test]
fn doctor_asks_each_upstream_for_its_models() {
    let upstream = Upstream::start();
    let address = upstream.address;
    let both = format!(
        "[chat.upstream]\nbase_url = 'http://{address}/v1'\napi_key = 'one'\n\
         [chat.anthropic]\nbase_url = 'http://{address}'\napi_key = 'two'\n"
    );
    let found = doctor(&both);
    for line in [
        "ok     chat           `chat.upstream` answers",
        "ok     chat           `chat.anthropic` answers",
    ] {
        assert!(found.contains(line), "{found}");
    }
    assert!(
        upstream.asked().starts_with("GET /v1/models ")
            && upstream.asked().contains("x-api-key: two")
    );
    let away = doctor("[chat.upstream]\nbase_url = 'http://127.0.0.1:1/v1'\n");
    assert!(
        away.contains("note   chat           `chat.upstream`: the upstream cannot be reached"),
        "{away}"
    );
    assert!(!doctor("").contains(" chat "));
    let half = doctor(&format!(
        "[chat.anthropic]\nbase_url = 'http://{address}'\n"
    ));
    assert!(
        half.contains("`chat.anthropic.api_key` is not set"),
        "{half}"
    );
}

#[test]
fn the_start_says_where_chat_requests_go() {
    let settings = "[chat.upstream]\nbase_url = 'http://127.0.0.1:1/v1'\n[chat.anthropic]\nbase_url = 'http://127.0.0.1:1'\n";
    let mut server = place(settings).serve(&["--sandbox", "none"]);
    let said = server.printed();
    assert!(
        said.contains("  chat       /v1/chat/completions goes to http://127.0.0.1:1/v1\n"),
        "{said}"
    );
    // Without its key there is no such route.
    assert!(!said.contains("/v1/messages goes to"), "{said}");
}

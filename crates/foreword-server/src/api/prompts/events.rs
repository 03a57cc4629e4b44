//! `/api/prompts/events`: changes of the library as server-sent events.

use std::{convert::Infallible, time::Duration};

use axum::{
    extract::State,
    response::sse::{Event, KeepAlive, Sse},
};
use futures::{Stream, StreamExt};
use http::HeaderMap;
use serde::Serialize;
use utoipa::ToSchema;

use super::query::NoQuery;
use crate::{
    api::openapi::ReadProblems,
    app::App,
    operations::prompts::{
        self,
        events::{LibraryEvent, Position},
    },
};

/// The data of an event `change`.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LibraryChange {
    /// The revision that it led to.
    revision: String,
    /// When it was published, RFC 3339.
    #[schema(format = "date-time")]
    at: String,
    /// What changed.
    #[schema(example = "replaced profile `developer`")]
    what: String,
}

/// The data of an event `missed`.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MissedChanges {
    /// The revision of the library now.
    revision: String,
}

/// How often a comment is sent where nothing happens, so that nobody takes the connection for dead.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Follows the changes of the library.
///
/// One event `change` per change, with an id. Sent back as `Last-Event-ID`, the changes since then come first, as far as
/// the last 100; where there were more, or the server was started anew, one event `missed` says that the library has to
/// be read again.
#[utoipa::path(
    get, path = "/api/prompts/events", tag = "prompts",
    params(("Last-Event-ID" = Option<String>, Header, description = "The id of the last event received")),
    responses(
        (status = 200, description = "A stream of events", body = LibraryChange, content_type = "text/event-stream"),
        ReadProblems,
    ),
)]
pub(crate) async fn follow_changes(
    State(app): State<App>,
    headers: HeaderMap,
    _: NoQuery,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let last_event_id = headers.get("last-event-id");
    let last_event_id = last_event_id.map(|value| value.to_str().unwrap_or_default());
    let events = prompts::events::follow_changes(&app, last_event_id)
        .take_until(app.stopping().clone().cancelled_owned())
        .map(|event| Ok::<_, Infallible>(Event::from(event)));
    Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
}

impl From<LibraryEvent> for Event {
    fn from(event: LibraryEvent) -> Self {
        let (name, position, data) = match event {
            LibraryEvent::Changed(change) => {
                let data = LibraryChange {
                    revision: change.revision.clone(),
                    at: change.at.to_string(),
                    what: change.what.clone(),
                };
                ("change", Position::of(&change), encode(&data))
            }
            LibraryEvent::Missed(position) => {
                let data = MissedChanges {
                    revision: position.revision.clone(),
                };
                ("missed", position, encode(&data))
            }
        };
        Event::default()
            .event(name)
            .id(position.to_string())
            .data(data)
    }
}

fn encode(data: &impl Serialize) -> String {
    serde_json::to_string(data).expect("plain data")
}

//! The event stream, and a server that stops while somebody listens.

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use futures_util::StreamExt;
use sayso_http::ServeOptions;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tower::ServiceExt;

use crate::served::{Call, Served, get, post, street};

struct Events {
    body: BodyDataStream,
    text: String,
}

#[derive(Debug, PartialEq)]
struct Event {
    id: u64,
    name: String,
    data: Value,
}

impl Events {
    async fn open(served: &Served, call: Call) -> Self {
        let response = served.router.clone().oneshot(call.build()).await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let body: Body = response.into_body();
        Self { body: body.into_data_stream(), text: String::new() }
    }

    /// The next event, or none at the end of the stream.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some((frame, rest)) = self.text.split_once("\n\n") {
                let field =
                    |name: &str| frame.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim();
                let event = (!field("event:").is_empty()).then(|| Event {
                    id: field("id:").parse().unwrap(),
                    name: field("event:").to_owned(),
                    data: serde_json::from_str(field("data:")).unwrap(),
                });
                self.text = rest.to_owned();
                match event {
                    Some(event) => return Some(event),
                    None => continue,
                }
            }
            let chunk =
                tokio::time::timeout(Duration::from_secs(10), self.body.next()).await.expect("an event in time")?;
            self.text.push_str(std::str::from_utf8(&chunk.unwrap()).unwrap());
        }
    }
}

#[tokio::test]
async fn a_stream_begins_with_where_it_stands_and_goes_on_with_what_happens() {
    let served = Served::new().await;
    served.ask_address().await;
    let last = served.sayso.last_event().await.unwrap();
    let mut events = Events::open(&served, get("/v1/events").bearer(&served.person)).await;
    let first = events.next().await.unwrap();
    assert_eq!((first.name.as_str(), first.id, first.data["last_seq"].as_u64()), ("snapshot", last, Some(last)));

    let round = served.ask_address().await;
    let path = format!("/v1/rounds/{}/responses", round.round_id);
    post(&path).bearer(&served.person).key("k").json(street(&round, "s3cret")).send(&served).await.ok();
    let mut names = Vec::new();
    for seq in last + 1.. {
        let event = events.next().await.unwrap();
        assert_eq!((event.id, event.data["seq"].as_u64()), (seq, Some(seq)));
        assert_eq!(event.data["body"]["event"], event.name);
        assert!(!event.data.to_string().contains("s3cret"));
        names.push(event.name.clone());
        if event.name == "answered" {
            assert_eq!(event.data["round_id"], round.round_id.to_string());
            break;
        }
    }
    assert!(names.contains(&"round_created".to_owned()), "{names:?}");
}

#[tokio::test]
async fn whoever_comes_back_misses_nothing_over_many_pages() {
    let served = Served::new().await;
    let start = served.sayso.last_event().await.unwrap();
    for _ in 0..150 {
        served.ask_address().await;
    }
    let last = served.sayso.last_event().await.unwrap();
    assert!(last - start > 250, "more than one page");
    let back = get("/v1/events").header("last-event-id", &start.to_string()).session(&served.session);
    let mut events = Events::open(&served, back).await;
    let marker = events.next().await.unwrap();
    assert_eq!((marker.id, marker.data["last_seq"].as_u64()), (start, Some(last)));
    for seq in start + 1..=last {
        assert_eq!(events.next().await.unwrap().id, seq);
    }
    served.ask_address().await;
    assert_eq!(events.next().await.unwrap().id, last + 1);

    let ahead = get("/v1/events").header("last-event-id", "999999").session(&served.session);
    let now = served.sayso.last_event().await.unwrap();
    assert_eq!(Events::open(&served, ahead).await.next().await.unwrap().id, now);
    let wrong = get("/v1/events").header("last-event-id", "x").session(&served.session).send(&served).await;
    wrong.problem(422, "managed_input_invalid");
}

#[tokio::test]
async fn an_agent_hears_of_its_own_rounds_behind_pages_of_others() {
    let served = Served::new().await;
    let mut events =
        Events::open(&served, get("/v1/events").header("last-event-id", "0").bearer(&served.other_agent)).await;
    assert_eq!(events.next().await.unwrap().name, "snapshot");
    for _ in 0..150 {
        served.ask_address().await;
    }
    let ask = serde_json::json!({"requests": {"note": {"kind": "text", "question": "?"}}});
    let own = post("/v1/rounds").bearer(&served.other_agent).json(ask).send(&served).await.ok();
    let event = events.next().await.unwrap();
    assert_eq!(event.data["execution_id"], own["execution_id"]);
}

#[tokio::test]
async fn a_revoked_credential_hears_nothing_more() {
    let served = Served::new().await;
    let mut events = Events::open(&served, get("/v1/events").session(&served.session)).await;
    events.next().await.unwrap();
    served.sayso.end_session(&served.session).await.unwrap();
    assert_eq!(events.next().await, None);
}

#[tokio::test]
async fn a_server_that_stops_ends_its_streams_and_long_polls() {
    let served = Served::new().await;
    let round = served.ask_address().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = sayso_http::serve(listener, served.sayso.clone(), ServeOptions::default(), async move {
        let _ = stopped.await;
    });
    let serving = tokio::spawn(serving);

    let request = |path: String, method: &str, token: &str| {
        let request = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\r\n");
        async move {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            stream
        }
    };
    let mut events = request("/v1/events".to_owned(), "GET", &served.person).await;
    let mut poll = request(format!("/v1/rounds/{}?wait=45s", round.round_id), "GET", &served.person).await;
    let mut collect = request(format!("/v1/rounds/{}/collect?wait=45s", round.round_id), "POST", &served.agent).await;
    let mut begun = [0; 4096];
    let mut head = String::new();
    while !head.contains("snapshot") {
        let read = events.read(&mut begun).await.unwrap();
        head.push_str(std::str::from_utf8(&begun[..read]).unwrap());
    }
    stop.send(()).unwrap();
    let ended = async {
        let mut rest = String::new();
        events.read_to_string(&mut rest).await.unwrap();
        let (mut polled, mut collected) = (String::new(), String::new());
        // A connection that was not yet accepted is reset, and so is one whose request had not begun.
        let _ = poll.read_to_string(&mut polled).await;
        let _ = collect.read_to_string(&mut collected).await;
        serving.await.unwrap().unwrap();
        (polled, collected)
    };
    let (polled, collected) =
        tokio::time::timeout(Duration::from_secs(4), ended).await.expect("well before the deadline");
    // A request that had not begun when the server stopped may have been dropped; one that had is answered.
    assert!(polled.is_empty() || polled.contains("\"status\":\"pending\""), "{polled}");
    assert!(collected.is_empty() || collected.contains("operation_timeout"), "{collected}");
}

//! Operations against servers over HTTP: those that behave, and those that do not.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may panic"
)]

mod http_peer;

use std::time::Duration;

use http_peer::{HANG, HttpPeer, Part, SESSION, Seen, accepted, answer, asks, bytes, event, json, says, stream};
use sayso::kit::HttpServer;
use sayso::plan::{DEFAULT_KEY, Plan, expect_form};
use sayso::{Json, OperationKind};
use sayso_agents::operate::{Client, OperateError, Operation, Report, reach};
use sayso_core::limits::HTTP_STREAM_EVENTS_MAX;

fn client(server: HttpServer, limit: Duration) -> Client {
    Client::new("shipping", reach(&server.into()).unwrap(), limit)
}

fn book() -> Operation {
    Operation { expect_text: Some("Booked.".to_owned()), ..Operation::new(OperationKind::Tool, "book") }
}

fn to_pune() -> Plan {
    expect_form(DEFAULT_KEY).message("Where to?").accept(Json::parse(r#"{"city":"Pune"}"#).unwrap())
}

/// One call of `book`, and the end of the session.
async fn booked(server: HttpServer, plan: Plan) -> Report {
    let mut client = client(server, HANG);
    let report = client.run(&book(), plan.begin().unwrap()).await;
    client.close().await;
    report
}

/// The one reason why a call came to nothing, in words.
async fn failure(server: HttpServer) -> String {
    let report = booked(server, to_pune()).await;
    let [error] = report.failures.as_slice() else { panic!("one failure: {:?}", report.failures) };
    assert_eq!(error.code(), "unavailable", "{error}");
    error.to_string()
}

/// A server that answers the call of its tool so.
async fn calling(parts: Vec<Part>) -> HttpPeer {
    HttpPeer::start(move |seen| (seen.rpc() == "tools/call").then(|| parts.clone())).await
}

#[tokio::test]
async fn a_server_that_answers_with_json_has_one_session_with_its_headers_and_its_end() {
    let peer = HttpPeer::start(|_| None).await;
    let report = booked(peer.server().header("Authorization", "Bearer s3cret"), Plan::nothing()).await;
    assert_eq!(report.failures, []);
    let words = ["initialize", "notifications/initialized", "GET", "tools/list", "tools/call", "DELETE"];
    assert_eq!(peer.words(), words);
    for seen in peer.seen() {
        let is_first = seen.rpc() == "initialize";
        let (session, version) = if is_first { ("", "") } else { (SESSION, "2025-06-18") };
        assert_eq!((seen.header("mcp-session-id"), seen.header("mcp-protocol-version")), (session, version));
        assert_eq!((seen.header("authorization"), seen.header("host")), ("Bearer s3cret", peer.address.as_str()));
        let (kinds, media) = match seen.method.as_str() {
            "POST" => ("application/json, text/event-stream", "application/json"),
            _ => ("text/event-stream", ""),
        };
        assert_eq!((seen.header("accept"), seen.header("content-type")), (kinds, media));
    }
}

#[tokio::test]
async fn what_a_stream_asks_is_answered_by_posts_wherever_its_pieces_end() {
    for end in ["\n", "\r\n", "\r"] {
        let lines = [
            "\u{feff}: a comment",
            "",
            "id: 1",
            "retry: 20",
            "data:",
            "",
            "event: message",
            r#"data: {"jsonrpc":"2.0","id":77,"method":"ping"}"#,
            "",
            "event: other",
            "data: nothing of ours",
            "",
            "data: no message",
            "",
        ];
        let question = asks("ask", "Where to? Zürich?");
        let (begins, ends) = question.split_at(question.find(",\"method\"").unwrap() + 1);
        let lines = lines.into_iter().map(str::to_owned).chain([
            format!("data: {begins}"),
            format!("data:{ends}"),
            String::new(),
        ]);
        let text: String = lines.map(|line| line + end).collect();
        // A byte a chunk.
        let chunk = |byte: &u8| [b"1\r\n".as_slice(), &[*byte], b"\r\n"].concat();
        let asked: Vec<u8> = text.as_bytes().iter().flat_map(chunk).collect();
        let told: Vec<u8> = format!("data: {}\n\n", says(3, "Booked.")).as_bytes().iter().flat_map(chunk).collect();
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: Text/Event-Stream;charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n";
        let parts =
            vec![bytes(head), Part::Bytes(asked), Part::Await(r#""id":"ask","result""#), Part::Bytes(told), Part::Hang];
        let peer = calling(parts).await;
        let report = booked(peer.server(), to_pune()).await;
        assert_eq!(report.failures, [], "{end:?}");
        let message = report.exchanges[0].asked.request.message.clone();
        assert_eq!(message.as_deref(), Some("Where to? Zürich?"));
        let answers: Vec<_> = peer.seen().into_iter().filter(|seen| seen.rpc() == "answer").collect();
        assert_eq!(answers[0].body, r#"{"jsonrpc":"2.0","id":77,"result":{}}"#);
        assert!(answers[1].body.contains(r#""action":"accept","content":{"city":"Pune"}"#), "{answers:?}");
        assert!(answers.iter().all(|seen| seen.header("mcp-session-id") == SESSION));
    }
}

#[tokio::test]
async fn a_question_on_the_stream_of_no_request_is_answered_too() {
    let peer = HttpPeer::start(|seen| match seen.rpc().as_str() {
        "" if seen.method == "GET" => {
            Some(stream([Part::Await("tools/call"), event(&asks("ask", "Where to?")), Part::Hang]))
        }
        "tools/call" => Some([vec![Part::Await(r#""id":"ask","result""#)], json(&says(3, "Booked."))].concat()),
        _ => None,
    })
    .await;
    assert_eq!(booked(peer.server(), to_pune()).await.failures, []);
    let asked_for = peer.request(|seen| seen.method == "GET").await;
    assert_eq!((asked_for.header("mcp-session-id"), asked_for.header("accept")), (SESSION, "text/event-stream"));
}

#[tokio::test]
async fn a_stream_that_is_cut_goes_on_from_its_last_event() {
    let peer = HttpPeer::start(|seen| match (seen.method.as_str(), seen.header("last-event-id")) {
        ("GET", "a-1") => Some(stream([
            bytes("id: a-2\nretry: 20\ndata:\n\n"),
            event(&asks("ask", "Where to?")),
            Part::Await(r#""id":"ask","result""#),
        ])),
        ("GET", "a-2") => Some(stream([event(&says(3, "Booked."))])),
        _ if seen.rpc() == "tools/call" => Some(stream([bytes("id: a-1\nretry: 20\ndata:\n\ndata: {\"cut")])),
        _ => None,
    })
    .await;
    assert_eq!(booked(peer.server(), to_pune()).await.failures, []);
    let places: Vec<_> = peer.seen().iter().map(|seen| seen.header("last-event-id").to_owned()).collect();
    assert_eq!(places.into_iter().filter(|place| !place.is_empty()).collect::<Vec<_>>(), ["a-1", "a-2"]);
}

#[tokio::test]
async fn a_session_that_is_gone_is_said_to_be_and_the_next_operation_has_a_new_one() {
    let peer = HttpPeer::start(|seen| {
        let is_gone = seen.rpc() == "tools/call" && !seen.body.contains("again");
        is_gone.then(|| answer("404 Not Found", "content-type: application/json\r\n", r#"{"error":{"message":"s"}}"#))
    })
    .await;
    let mut client = client(peer.server(), HANG);
    let report = client.run(&book(), Plan::nothing().begin().unwrap()).await;
    assert!(report.failures[0].to_string().contains("session is gone"), "{:?}", report.failures);
    let again = Operation { arguments: Some(Json::parse(r#"{"again":true}"#).unwrap()), ..book() };
    assert_eq!(client.run(&again, Plan::nothing().begin().unwrap()).await.failures, []);
    client.close().await;
    // What is gone is not ended once more.
    let words = peer.words();
    let count = |word: &str| words.iter().filter(|said| *said == word).count();
    assert_eq!((count("initialize"), count("DELETE")), (2, 1), "{words:?}");
}

#[tokio::test]
async fn what_is_no_answer_ends_the_operation_with_its_reason() {
    let html =
        |status: &str, headers: &str| answer(status, &format!("content-type: text/html\r\n{headers}"), "<p>no</p>");
    let refusal = r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"no\u0007 session"},"id":null}"#;
    for (parts, words) in [
        (html("307 Temporary Redirect", "location: http://elsewhere.example/\r\n"), "redirects (307)"),
        (html("200 OK", ""), "text/html, which is neither"),
        (accepted(), "no answer to it"),
        (json(&says(4, "another's")), "no answer to it"),
        (json("[]"), "no answer to it"),
        (answer("400 Bad Request", "content-type: application/json\r\n", refusal), "answered 400: no"),
        (html("500 Internal Server Error", ""), "answered 500"),
        (stream([]), "ended before its answer"),
        (stream([event(&says(9, "another's"))]), "ended before its answer"),
        (stream([bytes("id: 1\nretry: 20\ndata:\n\n")]), "ended before its answer"),
        (vec![bytes("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{")], "was lost"),
        (vec![bytes("SSH-2.0-hello\r\n")], "was lost"),
        (Vec::new(), "was lost"),
        (stream([bytes("data: x\n\n".repeat(HTTP_STREAM_EVENTS_MAX + 1)), Part::Hang]), "more than 100000 events"),
        (stream([bytes(format!("id: {}\ndata: x\n\n", "i".repeat(2000))), Part::Hang]), "an id of more than 1024"),
    ] {
        let peer = calling(parts).await;
        let error = failure(peer.server()).await;
        assert!(error.contains(words) && !error.contains('\u{7}'), "{words}: {error}");
    }
    let unreachable = failure(HttpServer::new("s", "http://127.0.0.1:1/mcp")).await;
    assert!(unreachable.contains("127.0.0.1:1 cannot be reached"), "{unreachable}");
}

#[tokio::test]
async fn a_message_without_an_end_is_cut_off() {
    let piece = Part::Bytes(vec![b'x'; 1024 * 1024]);
    let endless = |head: &str| [vec![bytes(head)], vec![piece.clone(); 17], vec![Part::Hang]].concat();
    for parts in [
        stream(endless("data: ")),
        endless("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n"),
    ] {
        let peer = calling(parts).await;
        assert!(failure(peer.server()).await.contains("more than 16 MiB"));
    }
}

#[tokio::test]
async fn a_session_id_that_cannot_be_sent_back_is_refused() {
    for id in ["two words", "", "é", &"x".repeat(2000)] {
        let headers = format!("content-type: application/json\r\nmcp-session-id: {id}\r\n");
        let result = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}"#;
        let parts = answer("200 OK", &headers, result);
        let peer = HttpPeer::start(move |seen| (seen.rpc() == "initialize").then(|| parts.clone())).await;
        assert!(failure(peer.server()).await.contains("an id that is none"), "{id}");
    }
}

#[tokio::test]
async fn a_header_is_never_repeated() {
    let echo = |seen: &Seen| {
        let told = format!(r#"{{"error":{{"message":"unknown: {}"}}}}"#, seen.header("authorization"));
        Some(answer("401 Unauthorized", "content-type: application/json\r\n", &told))
    };
    let peer = HttpPeer::start(echo).await;
    let server = peer.server().header("Authorization", "Bearer s3cret");
    let report = booked(server.clone(), Plan::nothing()).await;
    assert!(peer.seen()[0].header("authorization").contains("s3cret"));
    let printed = format!("{report:?} {} {server:?} {:?}", report.failures[0], client(server.clone(), HANG));
    assert!(printed.contains("answered 401") && !printed.contains("s3cret"), "{printed}");
}

#[tokio::test]
async fn an_answer_that_is_not_taken_ends_the_operation() {
    let peer = HttpPeer::start(|seen| match seen.rpc().as_str() {
        "tools/call" => Some(stream([event(&asks("ask", "Where to?")), Part::Hang])),
        "answer" => Some(answer("400 Bad Request", "", "")),
        _ => None,
    })
    .await;
    assert!(failure(peer.server()).await.contains("answered 400"));
}

#[tokio::test]
async fn an_operation_that_is_cut_short_is_cancelled_and_its_session_ended() {
    let peer = calling(stream([Part::Hang])).await;
    let mut client = client(peer.server(), Duration::from_millis(500));
    let report = client.run(&book(), to_pune().begin().unwrap()).await;
    assert!(matches!(report.failures.as_slice(), [OperateError::TimedOut { .. }]), "{:?}", report.failures);
    let cancelled = peer.request(|seen| seen.rpc() == "notifications/cancelled").await;
    assert!(cancelled.body.contains(r#""requestId":3"#), "{}", cancelled.body);
    let end = peer.request(|seen| seen.method == "DELETE").await;
    assert_eq!(end.header("mcp-session-id"), SESSION);
}

//! Tools, prompts and resources called directly: without a store, and with a plan that answers what the server asks.

use sayso::Json;
use sayso::kit::{ExecutionStatus, Kit, StdioServer};
use sayso::plan::{DEFAULT_KEY, Plan, expect_form, expect_url, maybe_form, maybe_url, one_of, optional, sequence};
use sayso_agents::kit::ScriptRunner;

use crate::{asks, booking, failure, json, result, status};

const HELLO: &str = r#"read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}'; read l; read l"#;

/// A server of prompts and resources; what it does once it is asked for one is `script`, in the shell.
fn server(script: &str) -> StdioServer {
    StdioServer::new("library", ["sh", "-c", &format!("{HELLO}; {script}; read l")])
}

fn asks_to_visit(id: &str, url: &str) -> String {
    format!(
        r#"echo '{{"jsonrpc":"2.0","id":"{id}","method":"elicitation/create","params":{{"mode":"url","message":"Log in.","url":"{url}","elicitationId":"visit"}}}}'"#
    )
}

/// Reads an answer, and goes on only where it says so; ends where it does not.
fn told(says: &str) -> String {
    format!(r#"read l; case "$l" in *'{says}'*) ;; *) exit 9 ;; esac"#)
}

fn greeting() -> String {
    r#"echo '{"jsonrpc":"2.0","id":2,"result":{"messages":[{"role":"user","content":{"type":"text","text":"Hello from Pune"}}]}}'"#.to_owned()
}

fn contents() -> String {
    r#"echo '{"jsonrpc":"2.0","id":2,"result":{"contents":[{"uri":"demo://x","text":"the secret of Pune"}]}}'"#
        .to_owned()
}

fn pune() -> Plan {
    expect_form(DEFAULT_KEY).message("Where to").accept(json(r#"{"city":"Pune"}"#))
}

fn kit() -> Kit {
    Kit::unstored().with_runner(ScriptRunner)
}

#[tokio::test(flavor = "multi_thread")]
async fn operations_run_without_a_store_and_answer_by_their_plan() {
    let kit = Kit::unstored().with_runner(ScriptRunner);
    let plan = expect_form(DEFAULT_KEY).accept(json(r#"{"city":"Pune"}"#));
    let handle = kit.tool(booking(), "book", json("{}"), Some(plan)).await.unwrap();
    let done = result(&handle).await;
    assert_eq!(status(&done), "completed");
    assert_eq!(done.result.unwrap().as_str(), r#"{"calls":[{"name":"book","is_error":false,"text":"Booked."}]}"#);
    assert_eq!(handle.snapshot().await.unwrap().lifecycle, ExecutionStatus::Finished);
    assert_eq!(handle.pending_elicitation().await.unwrap(), None);

    let prompts = server(r#"echo '{"id":2,"result":{"messages":[{"content":{"text":"hi"}}]}}'"#);
    let handle = kit.prompt(prompts, "greet", json("{}"), None).await.unwrap();
    assert!(result(&handle).await.result.unwrap().as_str().contains("hi"));
    let resources = server(r#"echo '{"id":2,"error":{"code":-32002,"message":"no such thing"}}'"#);
    let handle = kit.resource(resources, "demo://x", None).await.unwrap();
    let (code, message) = failure(&result(&handle).await);
    assert!(code == "answer_expectation_failed" && message.contains("no such thing"), "{message}");

    // One that is cancelled, and one whose server does not exist.
    let handle = kit.tool(server_that_waits(), "book", json("{}"), None).await.unwrap();
    handle.cancel().await.unwrap();
    assert_eq!(status(&result(&handle).await), "cancelled");
    let missing = StdioServer::new("s", ["/nowhere/at/all"]);
    let handle = kit.tool(missing, "book", json("{}"), None).await.unwrap();
    assert_eq!(failure(&result(&handle).await).0, "unavailable");
    kit.close().await.unwrap();
}

fn server_that_waits() -> StdioServer {
    StdioServer::new("s", ["sh", "-c", "read l; read l"])
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_prompt_asks_is_answered_by_its_plan() {
    let kit = kit();
    let script = [asks("a", "Where to?"), told(r#""city":"Pune""#), greeting()].join("; ");
    let handle = kit.prompt(server(&script), "greet", json(r#"{"who":"Ada"}"#), Some(pune())).await.unwrap();
    let done = result(&handle).await;
    assert_eq!(status(&done), "completed");
    assert!(done.result.as_ref().map(Json::as_str).unwrap().contains("Hello from Pune"), "{done:?}");

    // Two questions in a row, of two kinds; what may come and does not is no fault.
    let script = [
        asks_to_visit("u", "https://example.com/login"),
        told(r#""action":"accept""#),
        asks("a", "Where to?"),
        told(r#""action":"decline""#),
        greeting(),
    ];
    let plan = sequence([
        maybe_form("other").cancel(),
        expect_url(DEFAULT_KEY).accept(),
        one_of([expect_form(DEFAULT_KEY).message("Where from").cancel(), expect_form(DEFAULT_KEY).decline(None)]),
        optional(maybe_url(DEFAULT_KEY).cancel()),
    ]);
    let handle = kit.prompt(server(&script.join("; ")), "greet", json("{}"), Some(plan)).await.unwrap();
    assert_eq!(status(&result(&handle).await), "completed");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_resource_asks_is_answered_by_its_plan() {
    let kit = kit();
    let visit = asks_to_visit("u", "https://example.com/login");
    let script = [visit.clone(), told(r#""action":"accept""#), contents()].join("; ");
    let plan = expect_url(DEFAULT_KEY).message("Log in").accept();
    let handle = kit.resource(server(&script), "demo://x", Some(plan)).await.unwrap();
    let done = result(&handle).await;
    assert_eq!(status(&done), "completed");
    assert!(done.result.as_ref().map(Json::as_str).unwrap().contains("the secret of Pune"), "{done:?}");

    let script = [visit, told(r#""action":"cancel""#), contents()].join("; ");
    let plan = expect_url(DEFAULT_KEY).cancel();
    let handle = kit.resource(server(&script), "demo://x", Some(plan)).await.unwrap();
    assert_eq!(status(&result(&handle).await), "completed", "what a server makes of it is the server's");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_fits_no_operation_says_what_was_expected_and_what_came() {
    let kit = kit();
    let ambiguous = one_of([expect_form(DEFAULT_KEY).cancel(), expect_form(DEFAULT_KEY).decline(None)]);
    let asking = [asks("a", "Where to?"), "read l".to_owned(), greeting()].join("; ");
    for (script, plan, says) in [
        (asking.as_str(), Some(expect_url(DEFAULT_KEY).accept()), "Where to?"),
        (&asking, Some(expect_form("other").cancel()), "other"),
        (&asking, Some(ambiguous), "Where to?"),
        (&asking, None, "Where to?"),
        (&greeting(), Some(pune()), "did not come"),
    ] {
        for is_prompt in [true, false] {
            let server = server(script);
            let handle = match is_prompt {
                true => kit.prompt(server, "greet", json("{}"), plan.clone()).await,
                false => kit.resource(server, "demo://x", plan.clone()).await,
            };
            let (code, message) = failure(&result(&handle.unwrap()).await);
            assert_eq!(code, sayso::plan::EXPECTATION_FAILED, "{message}");
            assert!(message.contains(says), "{says}: {message}");
        }
    }
}

//! Tools of MCP servers: listed when the run starts and goes on, judged by the policy, and asked about like any other.

use std::path::Path;

use sayso::kit::{Server, StdioServer};
use sayso::{Answer, ErrorCode, Json, People, RoundFilter, Status, wire};
use sayso_agents::native::RunOutcome;

use crate::model::Turn;
use crate::scene::{Scene, accept, answers, approval, completed, keys, no, run, yes};
use crate::tools::Kind;

const TRUSTS: &str = "[[server]]\nname = \"files\"\ntrusted = true\n";

/// A server that reads, writes a line into `file`, and asks where to before it books.
pub fn files(file: &Path) -> Server {
    let asks = r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Where to?","requestedSchema":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}}"#;
    let schema = r#"{"type":"object","properties":{"path":{"type":"string"}}}"#;
    let tools = format!(
        r#"{{"name":"read","description":"Reads.","inputSchema":{schema},"annotations":{{"readOnlyHint":true}}}},{{"name":"write","description":"Writes.","inputSchema":{schema}}},{{"name":"book","inputSchema":{schema},"annotations":{{"readOnlyHint":true}}}},{{"name":"die","inputSchema":{schema},"annotations":{{"readOnlyHint":true}}}}"#
    );
    let script = format!(
        r#"say() {{ printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$id" "$1"; }}
text() {{ say '{{"content":[{{"type":"text","text":"'"$1"'"}}]}}'; }}
while read -r l; do
  id=$(printf '%s' "$l" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$l" in
    *'"initialize"'*) say '{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"files","version":"1"}}}}' ;;
    *'"tools/list"'*) say '{{"tools":[{tools}]}}' ;;
    *'"tools/call"'*'"write"'*) printf '%s\n' "$l" >> '{file}'; text 'It is written.' ;;
    *'"tools/call"'*'"die"'*) exit 3 ;;
    *'"tools/call"'*'"book"'*)
      printf '%s\n' '{asks}'; read -r answer
      case "$answer" in *Pune*) text 'Booked to Pune.' ;; *) text 'Not booked.' ;; esac ;;
    *'"tools/call"'*) text 'What it says.' ;;
  esac
done"#,
        file = file.display()
    );
    StdioServer::new("files", ["sh", "-c", &script]).into()
}

fn written(file: &Path) -> Vec<String> {
    std::fs::read_to_string(file).unwrap_or_default().lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn reads_of_a_trusted_server_pass_and_writes_ask_and_run_once() {
    let turns = [
        Turn::Calls(vec![("c1", "files__read", r#"{"path":"a"}"#)]),
        Turn::Calls(vec![("c1", "files__write", r#"{"path":"a"}"#), ("c2", "files__write", r#"{"path":"b"}"#)]),
        Turn::Says("Written."),
    ];
    let scene = Scene::new(turns).await;
    let file = scene.folder.path().join("written");
    let with = |runtime: sayso_agents::native::AgentRuntime| {
        runtime.servers(vec![files(&file)], Vec::new()).policy(scene.policy(TRUSTS), None)
    };
    let runtime = with(scene.runtime(&[("look", Kind::Harmless)]));
    let (execution, outcome) = run(&runtime).await;
    assert_eq!(scene.model.offered(), ["look", "files__read", "files__write", "files__book", "files__die"]);
    let round = approval(&outcome);
    assert_eq!(keys(&round), ["c1", "c2"]);
    let request = round.requests.get("c1").unwrap();
    assert_eq!(request.tool.as_deref(), Some("files:write"));
    assert_eq!(request.session.as_deref(), Some(execution.to_string().as_str()));
    assert!(written(&file).is_empty());
    let verdicts = answers([("c1", accept(r#"{"arguments":{"path":"elsewhere"}}"#)), ("c2", no("not b"))]);
    let elsewhere = scene.another().await;
    let other = with(scene.runtime_in(&elsewhere, &[("look", Kind::Harmless)]));
    completed(&other.approve(&scene.people(), execution, verdicts, "k").await.unwrap());
    let lines = written(&file);
    assert!(lines.len() == 1 && lines[0].contains("elsewhere"), "{lines:?}");
    assert!(scene.model.told("c2").contains("not b"));
}

#[tokio::test]
async fn an_untrusted_servers_word_for_itself_is_not_believed_and_tools_may_be_fewer() {
    let scene = Scene::new([Turn::Calls(vec![("c1", "files__read", "{}"), ("c2", "files__write", "{}")])]).await;
    let file = scene.folder.path().join("written");
    let runtime = scene.runtime(&[]).servers(vec![files(&file)], vec!["files:read".to_owned()]);
    let (_, outcome) = run(&runtime).await;
    assert_eq!(scene.model.offered(), ["files__read"]);
    assert_eq!(keys(&approval(&outcome)), ["c1"], "what is not offered is not asked about");
}

#[tokio::test]
async fn what_a_server_asks_during_a_call_is_a_live_round_of_the_run() {
    let scene = Scene::new([Turn::Calls(vec![("c1", "files__book", "{}")]), Turn::Says("Booked.")]).await;
    let file = scene.folder.path().join("written");
    let runtime = scene.runtime(&[]).servers(vec![files(&file)], Vec::new()).policy(scene.policy(TRUSTS), None);
    let execution = runtime.begin().await.unwrap();
    let at_work = tokio::spawn(async move { runtime.run(execution, "Book it.").await });
    let mut look = tokio::time::interval(std::time::Duration::from_millis(5));
    let round = loop {
        let filter = RoundFilter { status: Some(Status::Pending), ..RoundFilter::default() };
        assert!(!at_work.is_finished(), "it ended before it asked: {:?}", scene.model.asked().last());
        if let Some(round) = scene.people().list(filter).await.unwrap().rounds.pop() {
            break round;
        }
        look.tick().await;
    };
    assert_eq!((round.execution_id, round.server.as_str()), (execution, "files"));
    let content = Json::parse(r#"{"city":"Pune"}"#).unwrap();
    let answer = Answer::one("elicitation", wire::Response::accept(content));
    scene.people().answer(round.round_id, answer, "k").await.unwrap();
    assert_eq!(completed(&at_work.await.unwrap().unwrap()), "Booked.");
    assert_eq!(scene.model.told("c1"), "Booked to Pune.");
}

#[tokio::test]
async fn the_time_in_which_a_person_thinks_is_not_the_servers() {
    const LIMIT: std::time::Duration = std::time::Duration::from_secs(20);
    let scene = Scene::new([Turn::Calls(vec![("c1", "files__book", "{}")]), Turn::Says("Booked.")]).await;
    let file = scene.folder.path().join("written");
    let runtime = scene.runtime(&[]).servers(vec![files(&file)], Vec::new()).policy(scene.policy(TRUSTS), None);
    let runtime = runtime.time_limit(LIMIT);
    let execution = runtime.begin().await.unwrap();
    let at_work = tokio::spawn(async move { runtime.run(execution, "Book it.").await });
    let mut look = tokio::time::interval(std::time::Duration::from_millis(5));
    let pending = || RoundFilter { status: Some(Status::Pending), ..RoundFilter::default() };
    let round = loop {
        if let Some(round) = scene.people().list(pending()).await.unwrap().rounds.pop() {
            break round;
        }
        look.tick().await;
    };
    // An hour passes. Looking between lets the run go as far as it can.
    tokio::time::pause();
    for _ in 0..360 {
        tokio::time::advance(std::time::Duration::from_secs(10)).await;
        assert_eq!(scene.people().list(pending()).await.unwrap().rounds.len(), 1, "the question waits");
    }
    tokio::time::resume();
    assert!(!at_work.is_finished());
    let answer = Answer::one("elicitation", wire::Response::accept(Json::parse(r#"{"city":"Pune"}"#).unwrap()));
    scene.people().answer(round.round_id, answer, "k").await.unwrap();
    assert_eq!(completed(&at_work.await.unwrap().unwrap()), "Booked.");
    assert_eq!(scene.model.told("c1"), "Booked to Pune.");
}

#[tokio::test]
async fn a_server_that_dies_is_a_result_that_leaves_open_whether_it_ran() {
    let turn = Turn::Calls(vec![("c1", "files__die", "{}"), ("c2", "files__read", "{}")]);
    let scene = Scene::new([turn, Turn::Says("Well.")]).await;
    let file = scene.folder.path().join("written");
    let runtime = scene.runtime(&[]).servers(vec![files(&file)], Vec::new()).policy(scene.policy(TRUSTS), None);
    let (_, outcome) = run(&runtime).await;
    assert!(matches!(outcome, RunOutcome::Completed(_)), "{outcome:?}");
    assert!(scene.model.told("c1").contains("Nobody can tell whether it ran"), "{}", scene.model.told("c1"));
    assert!(scene.model.told("c2").starts_with("Error:"));
}

#[tokio::test]
async fn a_tool_of_a_server_that_is_another_now_is_asked_about_again() {
    let scene = Scene::new([Turn::Calls(vec![("c1", "files__write", "{}")]), Turn::Says("Written.")]).await;
    let file = scene.folder.path().join("written");
    let runtime = scene.runtime(&[]).servers(vec![files(&file)], Vec::new());
    let (execution, _) = run(&runtime).await;
    let Server::Stdio(mut other) = files(&file) else { panic!("a program") };
    other.command[2] = other.command[2].replace("Writes.", "Writes, and mails it.");
    let runtime = runtime.servers(vec![other.into()], Vec::new());
    let next = runtime.approve(&scene.people(), execution, answers([("c1", yes())]), "k1").await.unwrap();
    assert!(approval(&next).requests.get("c1").unwrap().message.as_ref().unwrap().contains("mails"));
    assert!(written(&file).is_empty());
    completed(&runtime.approve(&scene.people(), execution, answers([("c1", yes())]), "k2").await.unwrap());
    assert_eq!(written(&file).len(), 1);
}

#[tokio::test]
async fn a_server_that_cannot_be_started_ends_the_run_before_its_first_turn() {
    let scene = Scene::new([]).await;
    let runtime = scene.runtime(&[]).servers(vec![StdioServer::new("files", ["/no/such/server"]).into()], Vec::new());
    let (execution, outcome) = run(&runtime).await;
    assert!(
        matches!(&outcome, RunOutcome::Failed(failure) if failure.message.contains("cannot be started")),
        "{outcome:?}"
    );
    assert_eq!(scene.ended(execution).await.as_deref(), Some("unavailable"));
    let own = StdioServer::new("native", ["server"]).into();
    assert_eq!(runtime.servers(vec![own], Vec::new()).check().unwrap_err().code(), ErrorCode::ModelValidation);
}

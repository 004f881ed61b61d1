//! The engine: what the reference's methods do, and that it goes on after a restart.

use std::sync::Arc;

use sayso::engine::{Elicit, ElicitationEngine, ElicitationType, Gated, Options, PendingElicitation, ToolDef};
use sayso::{Error, ExecutionId, Json, Sayso};
use tokio::sync::mpsc::{Receiver, channel};

use crate::support::{Place, json};

fn engine(sayso: &Sayso, session: &str) -> (Arc<ElicitationEngine>, Receiver<PendingElicitation>) {
    let (told, pauses) = channel(8);
    let options = Options::default().session(session).on_pause(move |pending| told.try_send(pending.clone()).unwrap());
    (Arc::new(ElicitationEngine::new(sayso, options)), pauses)
}

fn create() -> ToolDef {
    ToolDef::destructive("github.issues.create").described("Creates an issue")
}

fn gating(engine: &Arc<ElicitationEngine>, args: &str) -> tokio::task::JoinHandle<Result<Gated, Error>> {
    let (engine, args) = (engine.clone(), json(args));
    tokio::spawn(async move { engine.gate(&create(), &args).await })
}

#[tokio::test]
async fn a_tool_that_is_not_destructive_answers_at_once_and_stores_nothing() {
    let place = Place::new();
    let sayso = place.open().await;
    let (engine, _pauses) = engine(&sayso, "s");
    let answer = engine.gate(&ToolDef::safe("github.issues.list"), &json("{}")).await.unwrap();
    assert_eq!(answer, Gated::Approved { arguments: json("{}") });
    assert_eq!(sayso.last_event().await, Ok(0));
}

#[tokio::test]
async fn a_destructive_tool_pauses_and_goes_on_as_a_person_says() {
    let place = Place::new();
    let sayso = place.open().await;
    let (engine, mut pauses) = engine(&sayso, "s");
    let waiting = gating(&engine, r#"{"title":"a"}"#);
    let pause = pauses.recv().await.unwrap();
    assert_eq!((pause.tool_path.as_str(), pause.kind), ("github.issues.create", ElicitationType::Approval));
    assert_eq!(pause.message, "github.issues.create: Creates an issue");
    assert_eq!(engine.get_pending(pause.execution_id).await, Ok(Some(pause.clone())));
    assert_eq!(engine.get_all_pending().await, Ok(vec![pause.clone()]));
    let reason = json(r#"{"reason":"too soon"}"#);
    assert_eq!(engine.resolve(pause.execution_id, false, Some(reason)).await, Ok(true));
    assert_eq!(waiting.await.unwrap(), Ok(Gated::Denied { reason: Some("too soon".to_owned()) }));
    assert_eq!(engine.resolve(pause.execution_id, true, None).await, Ok(false), "it is settled");
    assert_eq!(engine.resolve(ExecutionId::from_parts(1, 1), true, None).await, Ok(false), "it is unknown");
    assert_eq!(engine.has_pending().await, Ok(false));
}

#[tokio::test]
async fn the_same_gate_after_a_restart_takes_the_answer_given_meanwhile_once() {
    let place = Place::new();
    let (sayso, args) = (place.open().await, r#"{"title":"a"}"#);
    let (first, mut pauses) = engine(&sayso, "s");
    let cut_off = gating(&first, args);
    let pause = pauses.recv().await.unwrap();
    cut_off.abort();
    drop((cut_off.await, first, sayso));

    let sayso = place.open().await;
    let (elsewhere, _pauses) = engine(&sayso, "t");
    assert_eq!(elsewhere.resolve(pause.execution_id, true, None).await, Ok(false), "another session's");
    let (second, mut pauses) = engine(&sayso, "s");
    assert_eq!(second.get_all_pending().await, Ok(vec![pause.clone()]));
    assert_eq!(second.resolve(pause.execution_id, true, None).await, Ok(true));
    assert_eq!(gating(&second, args).await.unwrap(), Ok(Gated::Approved { arguments: json(args) }));
    let again = gating(&second, args);
    assert_ne!(pauses.recv().await.unwrap().execution_id, pause.execution_id, "the next one is asked anew");
    again.abort();
}

#[tokio::test]
async fn a_handler_asks_for_data_and_gets_it() {
    let place = Place::new();
    let sayso = place.open().await;
    let (engine, mut pauses) = engine(&sayso, "s");
    let schema = json(r#"{"type":"object","properties":{"label":{"type":"string"}},"required":["label"]}"#);
    let asking = tokio::spawn({
        let engine = engine.clone();
        let form = Elicit::form("github.issues.create", "Which label?", schema).about(json(r#"{"title":"a"}"#));
        async move { engine.elicit(form).await }
    });
    let pause = pauses.recv().await.unwrap();
    assert_eq!((pause.kind, pause.args.as_str()), (ElicitationType::Form, r#"{"title":"a"}"#));
    let misfit = engine.resolve(pause.execution_id, true, Some(json(r#"{"label":1}"#))).await;
    assert!(matches!(misfit, Err(Error::Validation { .. })), "an answer that does not fit changes nothing");
    let data = json(r#"{"label":"bug"}"#);
    assert_eq!(engine.resolve(pause.execution_id, true, Some(data.clone())).await, Ok(true));
    let response = asking.await.unwrap().unwrap();
    assert_eq!((response.execution_id, response.approved, response.data), (pause.execution_id, true, Some(data)));
    let bare = Elicit { schema: None, ..Elicit::form("x", "y", json("{}")) };
    assert!(matches!(engine.elicit(bare).await, Err(Error::Validation { .. })));
}

#[tokio::test]
async fn session_approvals_are_kept_and_a_pinned_one_is_for_its_arguments_alone() {
    let place = Place::new();
    let sayso = place.open().await;
    let (first, mut pauses) = engine(&sayso, "s");
    let pinned = json(r#"{"title":"a"}"#);
    first.add_session_approval_for("github.issues.create", &pinned).await.unwrap();
    assert_eq!(first.is_session_approved("github.issues.create").await, Ok(false), "not whatever it is called with");
    assert!(matches!(first.gate(&create(), &pinned).await, Ok(Gated::Approved { .. })));
    let other = gating(&first, r#"{"title":"b"}"#);
    pauses.recv().await.unwrap();
    other.abort();

    first.add_session_approval("github.issues.create").await.unwrap();
    let (second, _pauses) = engine(&place.open().await, "s");
    assert_eq!(second.is_session_approved("github.issues.create").await, Ok(true));
    let (elsewhere, _pauses) = engine(&sayso, "t");
    assert_eq!(elsewhere.is_session_approved("github.issues.create").await, Ok(false));
    second.clear_session_approvals().await.unwrap();
    assert_eq!(first.is_session_approved("github.issues.create").await, Ok(false));
    let again = gating(&first, pinned.as_str());
    pauses.recv().await.unwrap();
    again.abort();
}

#[tokio::test]
async fn nothing_is_shown_that_could_not_be_stored() {
    let place = Place::new();
    let (sayso, moody) = place.open_moody();
    let (engine, mut pauses) = engine(&sayso, "s");
    moody.refuse_writes(true);
    let empty: Json = json("{}");
    for outcome in
        [engine.gate(&create(), &empty).await.map(drop), engine.elicit(Elicit::approval("x", "May I?")).await.map(drop)]
    {
        let Err(Error::Unavailable(words)) = outcome else { panic!("nobody could be asked") };
        assert!(words.starts_with("Approval unavailable"), "{words}");
    }
    assert!(pauses.try_recv().is_err());
}

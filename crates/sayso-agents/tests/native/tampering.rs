//! After the claim the record is read and judged again: what was changed behind the store's back runs nothing, and
//! consumes nothing.

use sayso::{Answer, ErrorCode, ExecutionId, People, RoundId, Status};

use crate::model::Turn;
use crate::scene::{Scene, answers, approval, completed, run, yes};
use crate::tools::Kind;

const TOOLS: [(&str, Kind); 2] = [("pay", Kind::Plain), ("look", Kind::Harmless)];

/// A run that was answered and that nobody has taken up.
async fn answered(policy: &str) -> (Scene, ExecutionId, RoundId) {
    let calls = Turn::Calls(vec![("c1", "pay", r#"{"amount":1}"#), ("c2", "look", "{}")]);
    let scene = Scene::new([calls, Turn::Says("Paid.")]).await;
    let runtime = scene.runtime(&TOOLS).policy(scene.policy(policy), None);
    let (execution, outcome) = run(&runtime).await;
    let round = approval(&outcome);
    let answer = Answer { digest: Some(round.digest), ..answers([("c1", yes())]) };
    scene.people().answer(round.round_id, answer, "inbox").await.unwrap();
    (scene, execution, round.round_id)
}

const ASKS: &str = "[[rule]]\nid = \"pay\"\nask = [\"native:pay\"]\n";

/// Tampers, goes on as another process does, which is refused with nothing consumed; puts it back, and the run goes on.
async fn refused(policy: &str, tamper: &str, undo: &str, code: ErrorCode) {
    let (scene, execution, round) = answered(policy).await;
    assert_eq!(scene.tamper(tamper), 1, "{tamper}");
    let elsewhere = scene.another().await;
    let runtime = scene.runtime_in(&elsewhere, &TOOLS).policy(scene.policy(policy), None);
    for _ in 0..2 {
        let refused = runtime.resume(execution).await.unwrap_err();
        assert_eq!(refused.code(), code, "{tamper}");
        assert!(scene.ran().is_empty(), "{tamper}");
        let stands = elsewhere.round(elsewhere.person(), round).await.unwrap();
        assert_eq!(stands.status, Status::ResponseValidated, "{tamper}");
    }
    assert_eq!(scene.ended(execution).await, None);
    assert_eq!(scene.tamper(undo), 1);
    let afresh = scene.another().await;
    drop((runtime, elsewhere));
    scene.clock.advance_ms(sayso::limits::LEASE_MS + 1);
    completed(&scene.runtime_in(&afresh, &TOOLS).policy(scene.policy(policy), None).resume(execution).await.unwrap());
    assert_eq!(scene.ran(), [r#"pay {"amount":1}"#, "look {}"]);
}

#[tokio::test]
async fn requests_that_are_not_those_that_were_answered_run_nothing() {
    let change = |from, to| format!("UPDATE round_facts SET requests = replace(requests, '{from}', '{to}')");
    // What the run itself keeps beside the request does not show this: the digest does.
    let (shown, other) = ("A tool of the test.", "Another tool.");
    refused(ASKS, &change(shown, other), &change(other, shown), ErrorCode::CorruptSuspendedState).await;
    let (scene, execution, _) = answered(ASKS).await;
    assert_eq!(scene.tamper("UPDATE round_facts SET digest = zeroblob(32)"), 1);
    let elsewhere = scene.another().await;
    let refused = scene.runtime_in(&elsewhere, &TOOLS).resume(execution).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::CorruptSuspendedState);
    assert!(scene.ran().is_empty());
}

#[tokio::test]
async fn an_answer_of_somebody_who_may_not_give_one_runs_nothing() {
    let by = |who: &str, channel: &str| {
        format!("UPDATE round_answers SET answered_by = '{who}', answered_channel = '{channel}'")
    };
    let person = by("person local:ada", "library");
    for (who, channel) in [
        ("agent native", "library"),
        ("agent native", "mcp"),
        ("service billing", "http"),
        // Recorded as relayed, and not by the agent whose run it is.
        ("agent other", "relay"),
    ] {
        refused(ASKS, &by(who, channel), &person, ErrorCode::Forbidden).await;
    }
    // A relayed word is nobody's second person.
    let second = format!("{ASKS}require_second_person = true\n");
    refused(&second, &by("agent native", "relay"), &person, ErrorCode::Forbidden).await;
}

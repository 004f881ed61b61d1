//! The calls of a whole turn, judged for whoever asks about them itself: what the policy denies is on record, once a call.

use sayso::gate::{Admitted, Gates, Weighed};
use sayso::policy::{Mode, PolicyFiles};
use sayso::{Error, ErrorCode};

use crate::support::agent;
use crate::{Call, Scene, tool, transfer};

fn close() -> Call {
    Call { tool: tool("bank:close"), ..transfer("1") }
}

#[tokio::test]
async fn each_look_that_denies_a_call_of_a_turn_leaves_one_event() {
    let scene = Scene::new().await;
    let gate = scene.gate();
    assert!(matches!(gate.weigh(&close()).await, Ok(Weighed::Deny(_))));
    assert_eq!(scene.events().await, ["approval"]);
    assert!(matches!(gate.admit(&close()).await, Ok(Admitted::Deny(_))));
    assert_eq!(scene.events().await.len(), 2);
    let arguments = close().arguments;
    assert!(matches!(gate.recheck(&close(), &arguments, &arguments, &[]).await, Ok(Weighed::Deny(_))));
    assert_eq!(scene.events().await, ["approval"; 3]);
    // What is asked has a round for its record.
    assert!(matches!(gate.weigh(&transfer("1")).await, Ok(Weighed::Ask(_))));
    assert_eq!(scene.events().await.len(), 3);
}

#[tokio::test]
async fn a_denial_of_a_turn_stands_without_its_event_and_what_the_mode_allows_does_not() {
    let scene = Scene::new().await;
    let (sayso, moody) = scene.place.open_moody();
    let gate = Gates::new(&sayso, PolicyFiles::open([&scene.file])).of(agent()).in_mode(Mode::Autonomous);
    assert!(matches!(gate.admit(&transfer("1")).await, Ok(Admitted::Allow(_))));
    moody.refuse_writes(true);
    assert!(matches!(gate.weigh(&close()).await, Ok(Weighed::Deny(_))));
    assert!(matches!(gate.admit(&close()).await, Ok(Admitted::Deny(_))));
    assert!(matches!(gate.admit(&transfer("2")).await, Err(Error::Unavailable(_))));
}

#[tokio::test]
async fn the_mode_guarded_is_refused_where_there_is_no_policy() {
    let scene = Scene::new().await;
    let gate = Gates::new(&scene.sayso, PolicyFiles::none()).of(agent()).in_mode(Mode::Guarded);
    let arguments = transfer("1").arguments;
    let refusals = [
        gate.check().unwrap_err(),
        gate.judge(&transfer("1")).await.unwrap_err(),
        gate.weigh(&transfer("1")).await.unwrap_err(),
        gate.admit(&transfer("1")).await.unwrap_err(),
        gate.recheck(&transfer("1"), &arguments, &arguments, &[]).await.unwrap_err(),
    ];
    assert!(refusals.iter().all(|refused| refused.code() == ErrorCode::ModelValidation), "{refusals:?}");
    assert!(scene.events().await.is_empty(), "a mistake is nobody's ruling");
    scene.gate().in_mode(Mode::Guarded).check().unwrap();
    // A policy that cannot be read is one all the same: it denies.
    scene.write_policy("nonsense");
    let gate = scene.gate().in_mode(Mode::Guarded);
    gate.check().unwrap();
    crate::denied(gate.judge(&transfer("1")).await.unwrap());
}

//! What the policy decides in a person's place is on record, without values.

use sayso::gate::{By, Gates};
use sayso::policy::{Mode, PolicyFiles};
use sayso::{Error, PolicyRuling, Step};
use sayso_core::event::{Event, EventBody};

use crate::support::{Place, agent};
use crate::{Call, Desk, Scene, allowed, denied, tool, transfer};

/// The rulings in the events: whether the call may run, its tool, and whose word that is.
fn rulings(events: &[Event]) -> Vec<(bool, String, String)> {
    let ruling = |event: &Event| match &event.event.body {
        EventBody::Approval { approved, decided_by, tool: Some(tool), .. } => {
            assert_eq!((&event.event.principal, event.event.round_id), (&Some(agent()), None));
            Some((*approved, tool.clone(), decided_by.to_string()))
        }
        _ => None,
    };
    events.iter().filter_map(ruling).collect()
}

#[tokio::test]
async fn a_denial_by_the_policy_leaves_its_event() {
    let scene = Scene::new().await;
    denied(scene.judge(&Call { tool: tool("bank:close"), ..transfer("1") }).await);
    scene.write_policy("nonsense");
    denied(scene.judge(&transfer("1")).await);
    let events = scene.sayso.events_after(scene.sayso.person(), 0).await.expect("events");
    let told = |tool: &str, rule: &str| (false, tool.to_owned(), format!("policy {rule}"));
    assert_eq!(rulings(&events), [told("bank:close", "operator never"), told("bank:transfer", "error")]);
    assert!(!format!("{events:?}").contains("grace"), "no value is in an event");
}

#[tokio::test]
async fn what_the_mode_lets_run_is_recorded_before_it_runs_or_does_not_run() {
    let scene = Scene::new().await;
    let gate = scene.gate().in_mode(Mode::Autonomous);
    assert_eq!(allowed(gate.judge(&transfer("1")).await.unwrap()).by, By::Policy { mode: true });
    let events = scene.sayso.events_after(scene.sayso.person(), 0).await.expect("events");
    assert_eq!(rulings(&events), [(true, "bank:transfer".to_owned(), "policy operator pay".to_owned())]);

    let (sayso, moody) = scene.place.open_moody();
    let gate = Gates::new(&sayso, PolicyFiles::open([&scene.file])).of(agent()).in_mode(Mode::Autonomous);
    moody.refuse_writes(true);
    assert!(matches!(gate.judge(&transfer("1")).await, Err(Error::Unavailable(_))));
    let close = Call { tool: tool("bank:close"), ..transfer("1") };
    denied(gate.judge(&close).await.expect("a denial stands without its event"));
}

#[tokio::test]
async fn what_a_rule_allows_is_nobodys_ruling() {
    let scene = Scene::with("[[rule]]\nid = \"all\"\nallow = [\"*:*\"]\n").await;
    assert_eq!(allowed(scene.judge(&transfer("1")).await).by, By::Policy { mode: false });
    assert!(scene.events().await.is_empty());
}

#[tokio::test]
async fn a_worker_reports_rulings_within_limits() {
    let sayso = Place::new().open().await;
    let desk = sayso.desk(agent());
    let ruling = |tool: &str, rule: &str| {
        let (tool, rule) = (tool.to_owned(), rule.to_owned());
        vec![Step::Ruled(PolicyRuling { tool, approved: false, rule })]
    };
    desk.settle(ruling("bank:close", "operator never")).await.expect("is stored");
    let long = "x".repeat(2 * sayso::limits::NAME_BYTES_MAX + 2);
    for (tool, rule, pointer) in
        [("", "operator a", "/tool"), (long.as_str(), "operator a", "/tool"), ("a:b", long.as_str(), "/rule")]
    {
        assert_eq!(crate::support::fields(desk.settle(ruling(tool, rule)).await), [pointer]);
    }
    assert_eq!(sayso.last_event().await.expect("is read"), 1);
}

//! A tool whose definition is another than was last reviewed asks again, also after a restart and in another process.

use std::sync::Arc;

use sayso::gate::{By, CALL_KEY, Call, Gate, Gates, Weighed};
use sayso::policy::{GrantScope, Pins, PolicyFiles};
use sayso::{Desk, Digest, Error, NewGrant, Principal, Step, wire, words};

use crate::support::{Moody, agent, fields};
use crate::{Scene, allowed, asked, denied, tool, transfer};

const ALLOWING: &str = "[[rule]]\nid = \"never\"\ndeny = [\"bank:close\"]\n[[rule]]\nid = \"all\"\nallow = [\"*:*\"]\n";

fn defined(text: &str) -> Call {
    Call { definition: Some(Digest::of_text(text)), ..transfer("1") }
}

fn rule(round: &wire::Round) -> Option<&str> {
    round.requests.get(CALL_KEY).unwrap().rule.as_deref()
}

impl Scene {
    /// A gate as another process has it, or this one once it was restarted.
    async fn elsewhere(&self) -> Gate {
        Gates::new(&self.place.open().await, PolicyFiles::open([&self.file])).of(agent())
    }

    /// A gate on a store that does what it is told to.
    fn moody(&self) -> (Gate, Arc<Moody>) {
        let (sayso, moody) = self.place.open_moody();
        (Gates::new(&sayso, PolicyFiles::open([&self.file])).of(agent()), moody)
    }

    async fn reviewed(&self) -> Option<Digest> {
        self.sayso.desk(agent()).reviewed("bank:transfer").await.expect("is read")
    }
}

fn unavailable<T: std::fmt::Debug>(result: Result<T, Error>) {
    let Err(Error::Unavailable(text)) = result else { panic!("{result:?}") };
    assert!(text.starts_with(words::APPROVAL_UNAVAILABLE), "{text}");
}

#[tokio::test]
async fn a_tool_that_is_another_than_was_reviewed_asks_again_whatever_the_rules_allow() {
    let scene = Scene::with(ALLOWING).await;
    allowed(scene.judge(&defined("first")).await);
    allowed(scene.judge(&defined("first")).await);
    let round = scene.asked(&defined("second")).await;
    assert_eq!(rule(&round), Some("operator definition"));
    asked(scene.judge(&defined("second")).await);
    asked(scene.judge(&Call { session: "t".to_owned(), ..defined("second") }).await);
    scene.approve(&round).await;
    allowed(scene.judge(&defined("second")).await);
    allowed(scene.judge(&defined("second")).await);
    let back = scene.asked(&defined("first")).await;
    scene.approve(&back).await;
    allowed(scene.judge(&defined("first")).await);
    asked(scene.judge(&defined("second")).await);
}

#[tokio::test]
async fn a_tool_that_changed_while_nobody_ran_asks_the_next_process() {
    let scene = Scene::with(ALLOWING).await;
    allowed(scene.judge(&defined("first")).await);
    let restarted = scene.elsewhere().await;
    let round = asked(restarted.judge(&defined("second")).await.unwrap());
    assert_eq!(rule(&round), Some("operator definition"));
    scene.approve(&round).await;
    allowed(restarted.judge(&defined("second")).await.unwrap());
    allowed(scene.elsewhere().await.judge(&defined("second")).await.unwrap());
    allowed(scene.judge(&defined("second")).await);
    asked(scene.judge(&defined("first")).await);
}

#[tokio::test]
async fn what_one_agent_reviewed_is_nothing_to_another() {
    let scene = Scene::with(ALLOWING).await;
    allowed(scene.judge(&defined("first")).await);
    let other = scene.gates.of(Principal::agent("other"));
    allowed(other.judge(&defined("second")).await.unwrap());
    asked(scene.judge(&defined("second")).await);
    asked(other.judge(&defined("first")).await.unwrap());
}

#[tokio::test]
async fn the_first_definition_is_stored_with_the_question_and_every_other_one_with_its_approval() {
    let scene = Scene::new().await;
    let round = scene.asked(&defined("first")).await;
    assert_eq!(scene.reviewed().await, Some(Digest::of_text("first")));
    let restarted = scene.elsewhere().await;
    let other = Call { arguments: transfer("2").arguments, ..defined("second") };
    let next = asked(restarted.judge(&other).await.unwrap());
    assert!(rule(&next).unwrap().contains("operator definition"));
    assert_eq!(scene.reviewed().await, Some(Digest::of_text("first")), "asking about it reviews nothing");
    scene.answer(&next, sayso::Response::decline(None)).await;
    denied(restarted.judge(&other).await.unwrap());
    assert_eq!(scene.reviewed().await, Some(Digest::of_text("first")));
    scene.approve(&round).await;
    allowed(scene.judge(&defined("first")).await);
    let again = asked(restarted.judge(&other).await.unwrap());
    scene.approve(&again).await;
    allowed(restarted.judge(&other).await.unwrap());
    assert_eq!(scene.reviewed().await, Some(Digest::of_text("second")));
}

#[tokio::test]
async fn a_grant_that_knows_the_definition_reviews_it() {
    let scene = Scene::new().await;
    scene.asked(&defined("first")).await;
    let scope = GrantScope::Session {
        session: "s".to_owned(),
        tool: tool("bank:transfer"),
        definition: Digest::of_text("second"),
        pins: Pins::Any,
    };
    let grant = scene.sayso.people().grant(NewGrant::of(scope)).await.expect("granted");
    let call = Call { arguments: transfer("2").arguments, ..defined("second") };
    assert_eq!(allowed(scene.elsewhere().await.judge(&call).await.unwrap()).by, By::Grant(grant.id));
    assert_eq!((scene.reviewed().await, scene.uses().await), (Some(Digest::of_text("second")), 1));
}

#[tokio::test]
async fn what_cannot_be_stored_as_reviewed_does_not_run_and_is_not_remembered() {
    let scene = Scene::with(ALLOWING).await;
    let (gate, moody) = scene.moody();
    moody.refuse_writes(true);
    unavailable(gate.judge(&defined("first")).await);
    unavailable(gate.weigh(&defined("first")).await);
    moody.refuse_writes(false);
    allowed(gate.judge(&defined("second")).await.unwrap());
    moody.refuse_writes(true);
    allowed(gate.judge(&defined("second")).await.unwrap());
    unavailable(gate.judge(&defined("first")).await);
    moody.refuse_writes(false);
    let round = asked(gate.judge(&defined("first")).await.unwrap());
    scene.approve(&round).await;
    moody.refuse_writes(true);
    gate.judge(&defined("first")).await.expect_err("the approval cannot be taken");
    assert_eq!(scene.reviewed().await, Some(Digest::of_text("second")));
}

#[tokio::test]
async fn where_nobody_can_read_what_was_reviewed_nothing_runs_and_denials_stand() {
    let scene = Scene::with(ALLOWING).await;
    let (gate, moody) = scene.moody();
    moody.refuse_reads_after_the_next_write(true);
    allowed(gate.judge(&defined("first")).await.unwrap());
    unavailable(gate.judge(&defined("first")).await);
    denied(gate.judge(&Call { tool: tool("bank:close"), ..defined("first") }).await.unwrap());
    moody.refuse_reads_after_the_next_write(false);
    allowed(gate.judge(&defined("first")).await.unwrap());
}

#[tokio::test]
async fn a_call_of_a_turn_that_was_approved_has_its_tool_reviewed() {
    let scene = Scene::with(ALLOWING).await;
    let gate = scene.gate();
    assert!(matches!(gate.weigh(&defined("first")).await, Ok(Weighed::Free)));
    assert_eq!(scene.reviewed().await, Some(Digest::of_text("first")), "the first is stored before anything runs");
    let second = defined("second");
    let Ok(Weighed::Ask(asked)) = gate.weigh(&second).await else { panic!("it has changed") };
    assert_eq!(scene.reviewed().await, Some(Digest::of_text("first")));
    let arguments = &second.arguments;
    let free = gate.recheck(&second, arguments, arguments, &asked.rules).await;
    assert!(matches!(free, Ok(Weighed::Free)), "{free:?}");
    assert!(matches!(scene.elsewhere().await.weigh(&second).await, Ok(Weighed::Free)));
}

#[tokio::test]
async fn a_worker_reads_and_stores_its_own_reviews_by_the_names_of_tools() {
    let scene = Scene::new().await;
    let desk = scene.sayso.desk(agent());
    let review = |tool: &str| vec![Step::Reviewed { tool: tool.to_owned(), definition: Digest::of_text("first") }];
    desk.settle(review("bank:transfer")).await.expect("is stored");
    assert_eq!(scene.reviewed().await, Some(Digest::of_text("first")));
    assert_eq!(scene.sayso.desk(Principal::agent("other")).reviewed("bank:transfer").await, Ok(None));
    for unnamed in ["", "bank", ":", &format!("bank:{}", "x".repeat(sayso::limits::NAME_BYTES_MAX + 1))] {
        assert_eq!(fields(desk.settle(review(unnamed)).await), ["/tool"]);
        assert_eq!(fields(desk.reviewed(unnamed).await), ["/tool"]);
    }
    let person = scene.sayso.desk(Principal::person("ada"));
    assert!(matches!(person.reviewed("bank:transfer").await, Err(Error::Forbidden(_))));
    assert!(matches!(person.settle(review("bank:transfer")).await, Err(Error::Forbidden(_))));
}

//! What an agent passes on as a person's word about its own run: used where a store takes it, refused where none does.

use sayso::{Answer, Channel, Desk, Error, ErrorCode, Principal, Sayso, Status, wire};
use sayso_agents::mcp::{McpOptions, McpServer};

use crate::model::Turn;
use crate::scene::{AGENT, Scene, accept, answers, approval, completed, input, json, run, yes};
use crate::tools::Kind;

const TOOLS: [(&str, Kind); 2] = [("pay", Kind::Approval), ("ship", Kind::Input)];

fn turns() -> [Turn; 3] {
    [Turn::Calls(vec![("c1", "pay", "{}")]), Turn::Calls(vec![("c2", "ship", "{}")]), Turn::Says("Done.")]
}

async fn relay(sayso: &Sayso, round: &wire::Round, said: (&'static str, wire::Response)) -> Result<wire::Round, Error> {
    let answer = Answer { digest: Some(round.digest), ..answers([said]) };
    sayso.desk(Principal::agent(AGENT)).relay(round.round_id, answer, "relayed").await
}

#[tokio::test]
async fn a_relayed_word_is_used_where_the_store_was_opened_to_trust_it() {
    let scene = Scene::new(turns()).await;
    let trusting = scene.trusting().await;
    let runtime = scene.runtime_in(&trusting, &TOOLS);
    let (execution, outcome) = run(&runtime).await;
    let relayed = relay(&trusting, &approval(&outcome), ("c1", yes())).await.unwrap();
    let answered = relayed.answered.unwrap();
    assert_eq!((answered.principal, answered.channel), (Principal::agent(AGENT), Channel::Relay));
    let next = runtime.resume(execution).await.unwrap();
    assert_eq!(scene.ran(), ["pay {}"]);
    // Values as well; and whoever goes on need not trust anybody itself, since what was taken is on record.
    relay(&trusting, &input(&next), ("c2", accept(r#"{"city":"Oslo"}"#))).await.unwrap();
    completed(&scene.runtime(&TOOLS).resume(execution).await.unwrap());
    assert_eq!(scene.ran(), ["pay {}", r#"ship {"city":"Oslo"}"#]);
    assert_eq!(scene.ended(execution).await.as_deref(), Some("completed"));
}

#[tokio::test]
async fn what_resume_says_of_a_run_is_that_the_agent_relayed_it() {
    for trusts in [false, true] {
        let scene = Scene::new(turns()).await;
        let sayso = if trusts { scene.trusting().await } else { scene.another().await };
        let runtime = scene.runtime_in(&sayso, &TOOLS);
        let mcp = McpServer::new(&sayso, McpOptions { trust_agent_relay: trusts, ..McpOptions::default() });
        let (execution, _) = run(&runtime).await;
        let asked = json(&format!(r#"{{"execution_id":"{execution}","approved":true}}"#));
        let told = mcp.call_tool(&Principal::agent(AGENT), "resume", &asked).await.unwrap();
        assert_eq!(told.contains(r#""relayed_by":"agent native""#), trusts, "{told}");
        assert_eq!(runtime.answered().await.unwrap().len(), usize::from(trusts), "{told}");
        if trusts {
            input(&runtime.resume(execution).await.unwrap());
            assert_eq!(scene.ran(), ["pay {}"]);
        }
    }
}

#[tokio::test]
async fn a_relayed_word_is_refused_before_anything_changes_where_the_store_does_not_trust_it() {
    let scene = Scene::new(turns()).await;
    let runtime = scene.runtime(&TOOLS);
    let (execution, outcome) = run(&runtime).await;
    let round = approval(&outcome);
    let refused = relay(&scene.sayso, &round, ("c1", yes())).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Forbidden);
    // No setting makes another agent's word count, or an agent's through a person's door.
    let trusting = scene.trusting().await;
    let other = trusting.desk(Principal::agent("other"));
    let said = Answer { digest: Some(round.digest), ..answers([("c1", yes())]) };
    assert_eq!(other.relay(round.round_id, said, "k").await.unwrap_err().code(), ErrorCode::NotFound);
    let people = trusting.people_as(Principal::agent(AGENT), Channel::Relay);
    let refused = scene.runtime_in(&trusting, &TOOLS).approve(&people, execution, answers([("c1", yes())]), "k").await;
    assert_eq!(refused.unwrap_err().code(), ErrorCode::Forbidden);
    assert_eq!(runtime.resume(execution).await.unwrap().round().unwrap().status, Status::Pending);
    assert!(scene.ran().is_empty());
    // The round waits for a person as before.
    let next = runtime.approve(&scene.people(), execution, answers([("c1", yes())]), "k").await.unwrap();
    input(&next);
    assert_eq!(scene.ran(), ["pay {}"]);
}

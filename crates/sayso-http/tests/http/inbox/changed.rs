//! A question that changed while its page was open: what changed is shown, it is asked again, and nothing is accepted.

use sayso::wire::{Request, Round};
use sayso::{Ask, Desk, Json, Principal, Status, Step};
use sayso_core::round::Failure;

use super::{path, tag};
use crate::served::{Served, admin, approval, form, post};

/// A question in an execution that goes on when it ends.
pub async fn first(served: &Served, key: &str, request: Request) -> Round {
    let desk = served.sayso.desk(Principal::agent("claude"));
    let execution_id = Some(desk.begin().await.unwrap());
    let ask = Ask { execution_id, server: Some("shipping".to_owned()), ..Ask::one(key, request) };
    desk.ask(ask, None).await.unwrap()
}

/// What is asked in a round's place, as the agent asks it.
pub async fn successor(served: &Served, round: &Round, request: Request) -> Round {
    let key = round.requests.0[0].0.clone();
    let ask = Ask {
        execution_id: Some(round.execution_id),
        logical_operation_id: Some(round.logical_operation_id.clone()),
        server: Some(round.server.clone()),
        operation_name: Some(round.operation_name.clone()),
        ..Ask::one(key, request)
    };
    served.sayso.desk(Principal::agent("claude")).ask(ask, None).await.unwrap()
}

async fn supersede(served: &Served, round: &Round) {
    let failure = Failure::new(Failure::SUPERSEDED, "the call is another now");
    let desk = served.sayso.desk(Principal::agent("claude"));
    desk.settle(vec![Step::Failed(round.round_id, None, failure)]).await.unwrap();
}

#[tokio::test]
async fn an_answer_to_a_question_that_was_replaced_shows_what_changed_and_asks_again() {
    let served = Served::new().await;
    let round = first(&served, "call", approval()).await;
    supersede(&served, &round).await;
    let arguments = Json::parse(r#"{"repo":"acme/<web>","force":true}"#).ok();
    let next = successor(&served, &round, Request { arguments, ..approval() }).await;
    let reply = served.submit(&round, &[("r0-reason", "kept"), ("r0-action", "accept")]).await;
    let html = reply.page(409);
    for part in [
        "The question changed while you were looking at it",
        "Nothing was accepted.",
        "Removed: ",
        "&quot;repo&quot;: &quot;acme/api&quot;",
        "Added: ",
        "&quot;repo&quot;: &quot;acme/&lt;web&gt;&quot;",
        &format!("action=\"/rounds/{}\"", next.round_id),
        &next.digest.to_string(),
        "kept",
    ] {
        assert!(html.contains(part), "{part} in {html}");
    }
    assert!(!html.contains("value=\"inbox-1\""), "another answer has another key");
    assert!(!html.contains("was not used"), "the reason stands in the new form");
    assert_eq!(served.sayso.round(&admin(), next.round_id).await.unwrap().status, Status::Pending);
    assert_eq!(served.submit(&next, &[("r0-action", "accept")]).await.status, 303);
    let ended = served.page(&path(round.round_id)).await;
    assert!(ended.page(200).contains("Another question took this one"));
}

#[tokio::test]
async fn a_page_of_a_replaced_question_leads_to_the_one_that_is_asked_now() {
    let served = Served::new().await;
    let round = first(&served, "address", form("Where to?", crate::served::ADDRESS)).await;
    supersede(&served, &round).await;
    let alone = served.page(&path(round.round_id)).await;
    assert!(!alone.page(200).contains("What is asked instead"));
    let next = successor(&served, &round, form("Where to, exactly?", crate::served::ADDRESS)).await;
    let page = served.page(&path(round.round_id)).await;
    assert!(page.page(200).contains("What is asked instead") && page.text.contains("Where to, exactly?"));
    assert!(page.text.contains(&format!("href=\"/rounds/{}\"", next.round_id)));
    // What was typed into a form that is another now is kept to be copied.
    let late = served.submit(&round, &[("r0-f0", "12 Late Street"), ("r0-action", "accept")]).await;
    assert!(late.page(409).contains("What you typed was not used") && late.text.contains("12 Late Street"));
    assert!(!tag(&late.text, "r0-f0").contains("12 Late Street"));
    assert!(served.submit(&round, &[("check", "1")]).await.page(409).contains("The question changed"));
}

#[tokio::test]
async fn a_digest_of_an_earlier_round_is_stale_and_what_changed_since_is_shown() {
    let served = Served::new().await;
    let round = first(&served, "call", approval()).await;
    supersede(&served, &round).await;
    let next = successor(&served, &round, Request { tool: Some("github:repo.delete".to_owned()), ..approval() }).await;
    let digest = round.digest.to_string();
    let pairs = [("digest", digest.as_str()), ("key", "k"), ("r0-action", "accept")];
    let reply = post(&path(next.round_id)).session(&served.session).form(&pairs).send(&served).await;
    let html = reply.page(409);
    assert!(
        html.contains("Look again before you answer")
            && html.contains("Added: ")
            && html.contains("github:repo.delete")
    );
    assert_eq!(served.sayso.round(&admin(), next.round_id).await.unwrap().status, Status::Pending);
}

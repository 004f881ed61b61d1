//! Several calls decided at once from the list, each by its own digest and key.

use sayso::wire::{Request, Round};
use sayso::{Answer, Desk, Json, People, Principal, Response, Status, Step};
use sayso_core::limits;
use sayso_core::round::Failure;

use super::between;
use crate::served::{Reply, Served, admin, approval, post, text};

async fn call(served: &Served) -> Round {
    served.ask(vec![("call", approval())]).await
}

/// What the check box of a round holds on the list.
async fn pick(served: &Served, round: &Round) -> String {
    let page = served.page("/").await;
    let start = format!("id=\"pick-{}\" name=\"pick\" value=\"", round.round_id);
    between(page.page(200), &start, "\"").to_owned()
}

async fn decide(served: &Served, pairs: &[(&str, &str)]) -> Reply {
    post("/batch").session(&served.session).form(pairs).send(served).await
}

async fn status(served: &Served, round: &Round) -> Status {
    served.sayso.round(&admin(), round.round_id).await.unwrap().status
}

#[tokio::test]
async fn the_list_offers_what_it_shows_whole_and_what_needs_no_more_than_a_yes() {
    let served = Served::new().await;
    let plain = call(&served).await;
    let input = Json::parse(r#"{"type":"object","properties":{"pin":{"type":"integer"}}}"#).ok();
    let needy = served.ask(vec![("call", Request { schema: input, ..approval() })]).await;
    let long = Json::parse(&format!(r#"{{"text":"{}"}}"#, "x".repeat(limits::BATCH_ARGUMENTS_BYTES_MAX))).ok();
    let long = served.ask(vec![("call", Request { arguments: long, ..approval() })]).await;
    let mixed = served.ask(vec![("call", approval()), ("note", text())]).await;
    let page = served.page("/").await;
    let html = page.page(200);
    assert!(
        html.contains(&format!("id=\"pick-{}\"", plain.round_id))
            && html.contains("&quot;repo&quot;: &quot;acme/api&quot;")
    );
    for other in [&needy, &long, &mixed] {
        assert!(!html.contains(&format!("pick-{}", other.round_id)));
    }
    served.ask_address().await;
    assert!(html.contains("action=\"/batch\"") && html.contains("id=\"keys\" hidden"));
}

#[tokio::test]
async fn each_is_answered_by_itself_and_the_page_says_what_became_of_it() {
    let served = Served::new().await;
    let (good, taken, gone, changed) = (
        call(&served).await,
        call(&served).await,
        call(&served).await,
        super::changed::first(&served, "call", approval()).await,
    );
    let picks = [
        pick(&served, &good).await,
        pick(&served, &taken).await,
        pick(&served, &gone).await,
        pick(&served, &changed).await,
    ];
    let people = served.sayso.people_as(Principal::person("grace"), sayso::Channel::Http);
    let theirs = Answer { digest: Some(taken.digest), ..Answer::one("call", Response::decline(None)) };
    people.answer(taken.round_id, theirs, "k").await.unwrap();
    let desk = served.sayso.desk(Principal::agent("claude"));
    let failed = |round: &Round, code: &str| Step::Failed(round.round_id, None, Failure::new(code, "meanwhile"));
    desk.settle(vec![failed(&gone, Failure::WITHDRAWN), failed(&changed, Failure::SUPERSEDED)]).await.unwrap();
    let next = super::changed::successor(
        &served,
        &changed,
        Request { tool: Some("github:issues.delete".to_owned()), ..approval() },
    )
    .await;

    let mut pairs: Vec<(&str, &str)> = picks.iter().map(|pick| ("pick", pick.as_str())).collect();
    pairs.push(("decision", "approve"));
    let reply = decide(&served, &pairs).await;
    let html = reply.page(409);
    for part in [
        "1 of 4 approved",
        "Approved.",
        "Answered already, by <strong>grace</strong>",
        "meanwhile",
        "The question changed.",
        &format!("/rounds/{}", next.round_id),
        "github:issues.delete",
    ] {
        assert!(html.contains(part), "{part} in {html}");
    }
    assert_eq!(status(&served, &good).await, Status::ResponseValidated);
    assert_eq!(status(&served, &next).await, Status::Pending);
    // The same form once more is the same answer.
    assert!(decide(&served, &pairs).await.page(409).contains("1 of 4 approved"));
    let answered = served.sayso.round(&admin(), good.round_id).await.unwrap().answered.unwrap();
    assert_eq!((answered.principal, answered.channel), (admin(), sayso::Channel::Inbox));
}

#[tokio::test]
async fn a_batch_is_denied_with_a_reason_and_a_stale_digest_decides_nothing() {
    let served = Served::new().await;
    let (first, second) = (call(&served).await, call(&served).await);
    let picks = [pick(&served, &first).await, pick(&served, &second).await];
    let stale = picks[1].replace(&second.digest.to_string(), &format!("sha256:{}", "0".repeat(64)));
    let pairs =
        [("pick", picks[0].as_str()), ("pick", stale.as_str()), ("reason", " not <now> "), ("decision", "deny")];
    let reply = decide(&served, &pairs).await;
    assert!(reply.page(409).contains("1 of 2 denied") && reply.text.contains("not what the list showed any more"));
    let record = served.sayso.people().responses(first.round_id).await.unwrap().unwrap();
    assert_eq!(record.submitted.get("call").unwrap().reason.as_deref(), Some("not <now>"));
    assert_eq!(status(&served, &second).await, Status::Pending);
}

#[tokio::test]
async fn a_batch_that_cannot_be_meant_decides_nothing() {
    let served = Served::new().await;
    let round = call(&served).await;
    let pick = pick(&served, &round).await;
    decide(&served, &[("decision", "approve")]).await.page(422);
    decide(&served, &[("pick", &pick)]).await.page(422);
    decide(&served, &[("pick", &pick), ("decision", "run")]).await.page(422);
    decide(&served, &[("pick", "nonsense"), ("pick", &pick), ("decision", "approve")]).await.page(422);
    let many: Vec<(&str, &str)> = std::iter::repeat_n(("pick", pick.as_str()), limits::BATCH_MAX + 1).collect();
    decide(&served, &[&many[..], &[("decision", "approve")]].concat()).await.page(413);
    let anonymous = post("/batch").form(&[("pick", &pick), ("decision", "approve")]).send(&served).await;
    anonymous.page(401);
    let foreign = post("/batch").session(&served.session).header("origin", "https://evil.example");
    foreign.form(&[("pick", &pick), ("decision", "approve")]).send(&served).await.page(403);
    // Asked by hand for what needs more than a yes.
    let form = served.ask_address().await;
    let by_hand = format!("{} {} k", form.round_id, form.digest);
    let reply = decide(&served, &[("pick", &by_hand), ("decision", "approve")]).await;
    assert!(reply.page(409).contains("Needs more than a yes"));
    assert_eq!((status(&served, &round).await, status(&served, &form).await), (Status::Pending, Status::Pending));
}

//! Answers that come too late, or that nobody can take, and questions that go on late.

use sayso::{Answer, Ask, Desk, Json, LATE_PREFIX, People, Principal, Response, Step};
use sayso_core::round::{Delivery, Failure};

use super::{path, tag};
use crate::served::{Served, form, post};

#[tokio::test]
async fn what_came_too_late_is_told_why_and_kept_for_copying() {
    let served = Served::new().await;
    let late = [("r0-f0", "12 <Late> Street"), ("r0-f1", "x"), ("r0-action", "accept")];

    let round = served.ask_address().await;
    let answer = crate::served::street(&round, "x");
    post(&format!("/v1/rounds/{}/responses", round.round_id))
        .bearer(&served.person)
        .key("k")
        .json(answer)
        .send(&served)
        .await
        .ok();
    let page = served.submit(&round, &late).await;
    let html = page.page(409);
    for part in [
        "Answered by <strong>grace</strong> via http",
        "<time datetime=",
        "What you typed was not used",
        "12 &lt;Late&gt; Street",
        "role=\"alert\"",
    ] {
        assert!(html.contains(part), "{part} in {html}");
    }

    let round = served.ask_address().await;
    let failure = Failure::new(Failure::WITHDRAWN, "the client gave up");
    served
        .sayso
        .desk(Principal::agent("claude"))
        .settle(vec![Step::Failed(round.round_id, None, failure)])
        .await
        .unwrap();
    for pairs in [&late[..], &[("r0-f0", "12 <Late> Street"), ("r0-action", "accept")]] {
        let page = served.submit(&round, pairs).await;
        assert!(page.page(409).contains("This question was withdrawn by whoever asked it."));
        assert!(page.text.contains("the client gave up") && page.text.contains("12 &lt;Late&gt; Street"));
    }
    let history = served.page("/history").await;
    for part in ["Withdrawn", "Answered by <strong>grace</strong> via http"] {
        assert!(history.page(200).contains(part), "{part}");
    }
    // The next question says how long the server waited this time.
    let next = served.ask_address().await;
    assert!(served.page(&path(next.round_id)).await.page(200).contains("took its question back after"));
}

#[tokio::test]
async fn a_round_whose_agent_is_gone_says_so_and_keeps_what_was_typed() {
    let served = Served::new().await;
    let desk = served.sayso.desk(Principal::agent("claude"));
    let ask = Ask { delivery: Some(Delivery::Live), ..Ask::one("address", form("Where to?", crate::served::ADDRESS)) };
    let round = desk.open(ask, None).await.unwrap().round;
    desk.leave().await.unwrap();
    let page = served.submit(&round, &[("r0-f0", "1 Main Street"), ("r0-action", "accept")]).await;
    let html = page.page(409);
    assert!(html.contains("The agent is not connected") && html.contains("role=\"alert\""), "{html}");
    assert!(tag(html, "r0-f0").contains("1 Main Street"));
}

#[tokio::test]
async fn an_answer_that_could_not_be_stored_says_so_and_keeps_what_was_typed() {
    let served = Served::new().await;
    let round = served.ask_address().await;
    // What a newer process leaves behind: this one must not write any more.
    let newer = rusqlite::Connection::open(served.folder.path().join("sayso.sqlite")).unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    let page = served.submit(&round, &[("r0-f0", "1 Main Street"), ("r0-action", "accept")]).await;
    assert!(page.page(503).contains("1 Main Street") && page.text.contains("was not"), "{}", page.text);
    let answer = crate::served::street(&round, "x");
    let api = post(&format!("/v1/rounds/{}/responses", round.round_id)).bearer(&served.person).key("k").json(answer);
    api.send(&served).await.problem(503, "unavailable");
}

#[tokio::test]
async fn a_question_that_goes_on_late_says_so_and_suggests_the_answer_that_came_before() {
    let served = Served::new().await;
    let desk = served.sayso.desk(Principal::agent("claude"));
    let first = served.ask_address().await;
    let content = Json::parse(r#"{"street":"1 <Main> Street"}"#).unwrap();
    let people = served.sayso.people();
    people.answer(first.round_id, Answer::one("address", Response::accept(content)), "k").await.unwrap();
    let ask = Ask {
        logical_operation_id: Some(format!("{LATE_PREFIX}call:question")),
        suggestion_of: Some(first.round_id),
        ..Ask::one("address", form("Where to, exactly?", crate::served::ADDRESS))
    };
    let round = desk.ask(ask, None).await.unwrap();
    let page = served.page(&path(round.round_id)).await;
    let html = page.page(200);
    assert!(html.contains("used when the call is made again"), "{html}");
    assert!(html.contains("answer that an earlier question got"), "{html}");
    assert!(tag(html, "r0-f0").contains("1 &lt;Main&gt; Street"), "{html}");
    let other = served.sayso.desk(Principal::agent("somebody else"));
    let theirs = Ask { suggestion_of: Some(first.round_id), ..Ask::one("x", form("?", crate::served::ADDRESS)) };
    assert!(other.ask(theirs, None).await.is_err(), "another agent's answer is never suggested");
}

//! Declining, dismissing, several requests at once, and a form that is sent twice.

use super::{path, tag};
use crate::served::{Served, approval, choice, get, post, text, url};
use sayso::People;

#[tokio::test]
async fn declining_and_dismissing_need_no_complete_form() {
    let served = Served::new().await;
    for (action, said) in [("decline", "Declined by"), ("cancel", "Dismissed by")] {
        let round = served.ask_address().await;
        let reply = served
            .submit(&round, &[("r0-f0", ""), ("r0-f1", "x"), ("r0-reason", " not <now> "), ("r0-action", action)])
            .await;
        assert_eq!(reply.status, 303, "{}", reply.text);
        let shown = served.page(&path(round.round_id)).await;
        assert!(shown.page(200).contains(said));
        assert_eq!(shown.text.contains("not &lt;now&gt;"), action == "decline");
    }
    let round = served.ask_address().await;
    assert!(served.submit(&round, &[("r0-f0", "x")]).await.page(422).contains("This needs your decision"));
    assert!(served.submit(&round, &[("r0-action", "agree")]).await.page(422).contains("This needs your decision"));
}

#[tokio::test]
async fn several_requests_are_answered_together_each_with_its_own_decision() {
    let served = Served::new().await;
    let requests = || {
        vec![
            ("call", approval()),
            ("where", choice(false, &["staging", "production"])),
            ("note", text()),
            ("go", url("https://example.com/x")),
        ]
    };
    let round = served.ask(requests()).await;
    let page = served.page(&path(round.round_id)).await;
    let html = page.page(200);
    assert!(html.contains("shipping asks for 4 things") && html.contains("1 of 4: call"));
    assert!(!tag(html, "r0-action-0").contains("checked"), "nothing is approved by default");
    assert!(!tag(html, "r3-action-0").contains("checked"), "nothing is consented to by default");
    assert!(tag(html, "r1-action-0").contains("checked"));

    let wrong =
        served.submit(&round, &[("r1-action", "accept"), ("r2-action", "accept"), ("r3-action", "cancel")]).await;
    for sentence in
        ["call: This needs your decision", "where: Your answer is missing", "note: Your answer must not be empty"]
    {
        assert!(wrong.page(422).contains(sentence), "{sentence}");
    }
    let reply = served
        .submit(
            &round,
            &[
                ("r0-action", "decline"),
                ("r0-reason", "too early"),
                ("r1-action", "accept"),
                ("r1-answer", "other"),
                ("r1-other", "the moon"),
                ("r2-action", "accept"),
                ("r2-answer", "two\r\nlines"),
                ("r3-action", "accept"),
            ],
        )
        .await;
    assert_eq!(reply.status, 303, "{}", reply.text);
    let stored = served.sayso.people().responses(round.round_id).await.unwrap().unwrap();
    let stored = serde_json::to_value(&stored.submitted).unwrap();
    let expected = serde_json::json!({
        "call": {"action": "decline", "reason": "too early"}, "where": {"action": "accept", "content": {"answer": ["the moon"]}},
        "note": {"action": "accept", "content": {"answer": ["two\nlines"]}}, "go": {"action": "accept"}});
    assert_eq!(stored, expected);

    let many = served.ask(vec![("checks", choice(true, &["unit", "lint"]))]).await;
    let both = [("r0-answer", "1"), ("r0-answer", "0"), ("r0-other", "e2e"), ("r0-action", "accept")];
    assert_eq!(served.submit(&many, &both).await.status, 303);
    let one = served.ask(vec![("where", choice(false, &["a", "b"]))]).await;
    let torn = [("r0-answer", "1"), ("r0-other", "c"), ("r0-action", "accept")];
    assert!(served.submit(&one, &torn).await.page(422).contains("takes one answer"));
}

#[tokio::test]
async fn a_form_sent_twice_is_one_answer_and_one_without_a_session_keeps_its_text() {
    let served = Served::new().await;
    let round = served.ask_address().await;
    let typed = [("r0-f0", "1 Main Street"), ("r0-action", "accept")];
    for _ in 0..2 {
        assert_eq!(served.submit(&round, &typed).await.status, 303);
    }
    let round = served.ask_address().await;
    let page = post(&path(round.round_id)).form(&typed).send(&served).await;
    assert!(page.page(401).contains("1 Main Street") && page.text.contains("sayso login"));
    get(&path(round.round_id)).session(&served.session).send(&served).await.page(200);
    served.page("/rounds/nonsense").await.page(404);
    served.page("/executions/nonsense").await.page(404);
}

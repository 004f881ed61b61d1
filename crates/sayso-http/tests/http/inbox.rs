//! The pages: what they show, how an answer takes from them, and what is kept when it does not.

use sayso::wire::{Call, Keyed};
use sayso::{Answer, Ask, Desk, Json, LATE_PREFIX, People, Principal, Response, RoundId, Step};
use sayso_core::round::{Delivery, Failure};

use crate::served::{Served, approval, choice, form, get, post, text, url};

/// One field of every kind, in one of every enum spelling.
const EVERYTHING: &str = r#"{"type":"object","properties":{
 "name":{"type":"string","title":"Full name","description":"As on the parcel","minLength":2,"maxLength":40},
 "email":{"type":"string","format":"email"},"site":{"type":"string","format":"uri"},
 "day":{"type":"string","format":"date"},"at":{"type":"string","format":"date-time"},
 "code":{"type":"string","pattern":"^[0-9]{3}$"},"secret":{"type":"string","format":"password"},
 "count":{"type":"integer","minimum":1,"maximum":10,"default":1},"weight":{"type":"number","exclusiveMinimum":0},
 "fragile":{"type":"boolean"},"insured":{"type":"boolean","default":true},
 "size":{"type":"string","enum":["s","m"],"enumNames":["Small","Medium"],"default":"m"},
 "speed":{"type":"string","oneOf":[{"const":"std","title":"Standard"},{"const":"exp","title":"Express"}]},
 "land":{"type":"string","enum":["DE","FR","IT","ES","PT","NL"]},
 "extras":{"type":"array","items":{"type":"string","enum":["wrap","track"]},"maxItems":2},
 "tags":{"type":"array","items":{"anyOf":[{"const":"a","title":"Tag A"},{"const":"b","title":"Tag B"}]}},
 "customs":{"type":"object","properties":{"code":{"type":"string"}},"required":["code"]}},
 "required":["name","fragile","speed"]}"#;

fn path(id: RoundId) -> String {
    format!("/rounds/{id}")
}

/// What stands between `start` and the next `end`.
fn between<'t>(text: &'t str, start: &str, end: &str) -> &'t str {
    let from = text.find(start).unwrap_or_else(|| panic!("no {start:?} in {text}")) + start.len();
    &text[from..from + text[from..].find(end).unwrap()]
}

/// The tag of the control with this id.
fn tag<'t>(page: &'t str, id: &str) -> &'t str {
    let at = page.find(&format!(" id=\"{id}\"")).unwrap_or_else(|| panic!("no {id} in {page}"));
    let start = page[..at].rfind('<').unwrap();
    &page[start..=start + page[start..].find('>').unwrap()]
}

#[tokio::test]
async fn the_list_shows_who_asks_what_and_since_when_the_longest_waiting_first() {
    let served = Served::new().await;
    let empty = served.page("/").await;
    assert!(empty.page(200).contains("Nothing is waiting.") && empty.text.contains("sayso gateway"));
    let (first, second) = (served.ask_address().await, served.ask(vec![("call", approval())]).await);
    let page = served.page("/").await;
    let html = page.page(200);
    assert!(html.find(&path(first.round_id)).unwrap() < html.find(&path(second.round_id)).unwrap());
    for part in [
        "shipping asks for information",
        "shipping asks to run a tool",
        "Where to?",
        "book_shipment",
        "asked by agent claude",
        "<time datetime=",
        "Form",
        "Approval",
        "(2) Waiting",
        "data-live=\"list\"",
    ] {
        assert!(html.contains(part), "{part}");
    }
}

#[tokio::test]
async fn every_kind_of_field_has_its_control_its_label_and_its_words() {
    let served = Served::new().await;
    let round = served.ask(vec![("parcel", form("Where to?", EVERYTHING))]).await;
    let page = served.page(&path(round.round_id)).await;
    let html = page.page(200);
    for (id, parts) in [
        ("r0-f0", vec!["<input", "type=\"text\"", "aria-required=\"true\"", "aria-describedby=\"r0-f0-hint\""]),
        ("r0-f1", vec!["type=\"email\"", "autocomplete=\"email\""]),
        ("r0-f2", vec!["type=\"url\""]),
        ("r0-f3", vec!["type=\"date\""]),
        ("r0-f4", vec!["type=\"datetime-local\""]),
        ("r0-f6", vec!["type=\"password\""]),
        ("r0-f7", vec!["inputmode=\"numeric\"", "value=\"1\""]),
        ("r0-f8", vec!["inputmode=\"decimal\""]),
        ("r0-f9", vec!["<fieldset", "role=\"radiogroup\"", "aria-required=\"true\""]),
        ("r0-f10-0", vec!["type=\"radio\"", "value=\"true\"", "checked"]),
        ("r0-f11-1", vec!["type=\"radio\"", "value=\"1\"", "checked"]),
        ("r0-f13", vec!["<select"]),
        ("r0-f14-0", vec!["type=\"checkbox\""]),
        ("r0-f16", vec!["<textarea"]),
    ] {
        for part in parts {
            assert!(tag(html, id).contains(part), "{id}: {} lacks {part}", tag(html, id));
        }
    }
    for part in [
        "<label for=\"r0-f0\">Full name <span class=\"need\">(required)",
        "As on the parcel",
        "2 to 40 characters.",
        "Must match the pattern ^[0-9]{3}$",
        "A whole number, at least 1, at most 10.",
        "A number, more than 0.",
        "If you leave this empty, the default applies: <code>1",
        "The default is: <code>Medium",
        "Express",
        "Tag B",
        "Choose: at most 2 options.",
        "What is allowed",
        "shipping says",
        "novalidate",
        "formnovalidate",
        "name=\"r0-action\" value=\"accept\"",
        "name=\"r0-action\" value=\"decline\"",
        "name=\"r0-action\" value=\"cancel\"",
    ] {
        assert!(html.contains(part), "{part} in {html}");
    }
    assert!(!html.contains("maxlength"), "a browser's maxlength cuts what is pasted");
    assert!(!tag(html, "r0-f9-0").contains("checked") && !tag(html, "r0-f9-1").contains("checked"));
    // Every label and every description leads somewhere, and nothing is numbered twice.
    let ids: Vec<&str> = html.split(" id=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    let unique: std::collections::HashSet<_> = ids.iter().collect();
    assert_eq!(ids.len(), unique.len());
    for start in [" for=\"", " aria-describedby=\"", " aria-labelledby=\"", " href=\"#"] {
        for target in html.split(start).skip(1).flat_map(|rest| rest.split('"').next().unwrap().split(' ')) {
            assert!(unique.contains(&target), "{start}{target}");
        }
    }
}

#[tokio::test]
async fn a_nested_fault_is_told_at_its_field_and_the_rest_is_kept() {
    let served = Served::new().await;
    let round = served.ask(vec![("parcel", form("Where to?", EVERYTHING))]).await;
    let reply = served
        .submit(
            &round,
            &[
                ("r0-f0", "Ada"),
                ("r0-f1", "ada@example.com"),
                ("r0-f2", "https://example.com/"),
                ("r0-f3", "2026-01-31"),
                ("r0-f4", "2026-01-31T09:30"),
                ("r0-f4-offset", "+02:00"),
                ("r0-f5", "123"),
                ("r0-f6", "hunter2"),
                ("r0-f7", ""),
                ("r0-f8", "0.10"),
                ("r0-f9", "false"),
                ("r0-f10", "true"),
                ("r0-f11", "0"),
                ("r0-f12", "1"),
                ("r0-f13", ""),
                ("r0-f14", "0"),
                ("r0-f14", "1"),
                ("r0-f15", "1"),
                ("r0-f16", "{\"code\": 1.0e1}"),
                ("r0-reason", "unused"),
                ("r0-action", "accept"),
            ],
        )
        .await;
    // `code` must be a text: everything else fits, and is kept.
    assert!(reply.page(422).contains("Error: customs (at /code) must be text"));
    assert!(tag(&reply.text, "r0-f8").contains("value=\"0.10\"") && tag(&reply.text, "r0-f14-1").contains("checked"));
}

#[tokio::test]
async fn an_answer_of_every_kind_is_stored_as_json_of_its_kind() {
    let served = Served::new().await;
    let round = served.ask(vec![("parcel", form("Where to?", EVERYTHING))]).await;
    let reply = served
        .submit(
            &round,
            &[
                ("r0-f0", "Ada"),
                ("r0-f4", "2026-01-31T09:30"),
                ("r0-f4-offset", "+02:00"),
                ("r0-f6", "hunter2"),
                ("r0-f7", ""),
                ("r0-f8", "0.10"),
                ("r0-f9", "false"),
                ("r0-f10", "true"),
                ("r0-f11", "0"),
                ("r0-f12", "1"),
                ("r0-f13", ""),
                ("r0-f14", "1"),
                ("r0-f15", "1"),
                ("r0-f16", "{\"code\": \"X\", \"n\": 1.0e1}"),
                ("r0-action", "accept"),
            ],
        )
        .await;
    assert_eq!(
        (reply.status.as_u16(), reply.header("location")),
        (303, path(round.round_id).as_str()),
        "{}",
        reply.text
    );
    let stored = served.sayso.people().responses(round.round_id).await.unwrap().unwrap();
    let content =
        |record: &Keyed<sayso::Response>| record.get("parcel").unwrap().content.clone().unwrap().as_str().to_owned();
    assert_eq!(
        content(&stored.submitted),
        r#"{"name":"Ada","at":"2026-01-31T09:30:00+02:00","secret":"hunter2","weight":0.10,"fragile":false,"insured":true,"size":"s","speed":"exp","extras":["track"],"tags":["b"],"customs":{"code": "X", "n": 1.0e1}}"#
    );
    assert!(content(&stored.effective).contains(r#""count":1"#));
    let shown = served.page(&path(round.round_id)).await;
    let html = shown.page(200);
    for part in [
        "Answered by <strong>local:ada</strong> via inbox",
        "Nothing else is waiting.",
        "Small",
        "Tag B",
        "(the default)",
        "0.10",
        "(not shown)",
    ] {
        assert!(html.contains(part), "{part} in {html}");
    }
    assert!(!html.contains("hunter2"));
}

#[tokio::test]
async fn what_is_wrong_is_summed_up_tied_to_its_fields_and_everything_typed_is_kept() {
    let served = Served::new().await;
    let round = served.ask(vec![("parcel", form("Where to?", EVERYTHING))]).await;
    let typed = [
        ("r0-f0", "A"),
        ("r0-f1", "nobody"),
        ("r0-f7", "12x"),
        ("r0-f13", "2"),
        ("r0-f9", "maybe"),
        ("r0-reason", "keep\r\nme"),
        ("r0-action", "accept"),
    ];
    let reply = served.submit(&round, &typed).await;
    let html = reply.page(422);
    assert!(html.contains("<title>Error: shipping asks for information"));
    let summary = tag(html, "problems");
    for part in ["role=\"alert\"", "tabindex=\"-1\"", "autofocus"] {
        assert!(summary.contains(part), "{summary}");
    }
    let list = between(html, "id=\"problems\"", "</div>");
    for (focus, control, sentence) in [
        ("r0-f0", "r0-f0", "Full name must be at least 2 characters"),
        ("r0-f1", "r0-f1", "email must be an e-mail address"),
        ("r0-f7", "r0-f7", "count must be a whole number"),
        ("r0-f9-0", "r0-f9", "fragile must be yes or no"),
        ("r0-f12-0", "r0-f12", "speed is required"),
    ] {
        assert!(list.contains(&format!("<a href=\"#{focus}\">{sentence}")), "{sentence} in {list}");
        let wrong = tag(html, control);
        assert!(wrong.contains("aria-invalid=\"true\"") && wrong.contains(&format!("{control}-error")), "{wrong}");
        assert!(between(html, &format!("id=\"{control}-error\""), "</p>").contains(sentence));
    }
    assert_eq!(list.matches("<li>").count(), 5);
    assert!(tag(html, "r0-f7").contains("value=\"12x\"") && tag(html, "r0-f0").contains("value=\"A\""));
    assert!(html.contains("value=\"2\" selected") && html.contains("\nkeep\nme</textarea>"));
    assert!(html.contains("name=\"key\" value=\"inbox-1\""), "nothing was accepted under the key");
    assert_eq!(served.sayso.round(&crate::served::admin(), round.round_id).await.unwrap().rev, round.rev);
}

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
async fn an_approval_shows_the_call_and_binds_to_what_was_shown() {
    let served = Served::new().await;
    let round = served.ask(vec![("call", approval())]).await;
    let page = served.page(&path(round.round_id)).await;
    for part in [
        "github:issues.create",
        "&quot;repo&quot;: &quot;acme/api&quot;",
        ">Approve<",
        ">Deny<",
        "Dismiss without deciding",
    ] {
        assert!(page.page(200).contains(part), "{part}");
    }
    let stale = format!("sha256:{}", "0".repeat(64));
    let pairs = [("digest", stale.as_str()), ("key", "k"), ("r0-reason", "kept"), ("r0-action", "accept")];
    let reply = post(&path(round.round_id)).session(&served.session).form(&pairs).send(&served).await;
    assert!(reply.page(409).contains("Look again before you answer") && reply.text.contains("kept"));
    assert!(reply.text.contains(&round.digest.to_string()));
    let approved = served.submit(&round, &[("r0-action", "accept")]).await;
    assert_eq!(approved.status, 303);
    assert!(served.page(&path(round.round_id)).await.page(200).contains("Approved by"));
}

#[tokio::test]
async fn an_address_is_shown_whole_its_host_apart_and_linked_only_where_it_is_one_of_the_web() {
    let served = Served::new().await;
    let round = served.ask(vec![("go", url("http://bank.example@xn--80ak6aa92e.com/a?b=1"))]).await;
    let page = served.page(&path(round.round_id)).await;
    let html = page.page(200);
    for part in [
        "Host: <strong>xn--80ak6aa92e.com</strong>",
        "http://bank.example@<b>xn--80ak6aa92e.com</b>/a?b=1",
        "does not use https",
        "punycode",
        "user name before the host",
        "rel=\"noreferrer noopener\" target=\"_blank\"",
        "I consent to open it",
    ] {
        assert!(html.contains(part), "{part} in {html}");
    }
    assert_eq!(html.matches("target=\"_blank\"").count(), 1);
    for odd in ["javascript:alert(1)", "file:///etc/passwd", "data:text/html,hi"] {
        let round = served.ask(vec![("go", url(odd))]).await;
        let page = served.page(&path(round.round_id)).await;
        assert!(
            page.page(200).contains("not a web address")
                && !page.text.contains("_blank")
                && !page.text.contains(&format!("href=\"{odd}"))
        );
    }
    assert_eq!(served.submit(&round, &[("r0-action", "accept")]).await.status, 303);
    assert!(served.page(&path(round.round_id)).await.page(200).contains("Consented to by"));
}

#[tokio::test]
async fn foreign_text_is_shown_and_never_run_or_hidden() {
    let served = Served::new().await;
    let evil = "<script>alert(1)</script>\u{202e}\u{200b}\"'>";
    let schema = serde_json::json!({"type": "object", "properties": {evil: {"type": "string", "title": evil, "description": evil, "default": evil},
        "pick": {"type": "string", "oneOf": [{"const": "x", "title": evil}]}}}).to_string();
    let ask = Ask {
        server: Some(evil.to_owned()),
        operation_name: Some(evil.to_owned()),
        calls: vec![Call {
            name: evil.to_owned(),
            arguments: Json::parse(&serde_json::json!({evil: evil}).to_string()).ok(),
        }],
        requests: Keyed(vec![(evil.to_owned(), form(evil, &schema)), ("b".to_owned(), choice(false, &[evil]))]),
        ..Ask::default()
    };
    let round = served.sayso.desk(Principal::agent(evil)).ask(ask, None).await.unwrap();
    let typed = [("r0-f0", evil), ("r0-action", "accept"), ("r1-action", "accept"), ("r1-other", evil)];
    let mut pages = vec![served.page("/").await, served.page(&path(round.round_id)).await];
    pages.push(
        served
            .submit(
                &round,
                &[
                    ("r0-f0", evil),
                    ("r0-f1", "9"),
                    ("r0-action", "accept"),
                    ("r1-action", "accept"),
                    ("r1-other", evil),
                ],
            )
            .await,
    );
    assert_eq!(served.submit(&round, &typed).await.status, 303);
    pages.push(served.page(&path(round.round_id)).await);
    pages.push(served.page("/history").await);
    pages.push(served.page(&format!("/executions/{}", round.execution_id)).await);
    pages.push(served.submit(&round, &[("key", "late"), ("r0-f0", evil), ("r0-action", "accept")]).await);
    for page in pages {
        assert!(page.text.contains("&lt;script&gt;alert(1)"), "{}", page.text);
        assert!(page.text.contains("⟦U+202E⟧⟦U+200B⟧"));
        assert_eq!(page.text.matches("<script").count(), 1, "only our own file");
        assert!(!page.text.contains(" style=") && !page.text.contains(" onclick"));
        // What a person typed is given back to them in the control as they typed it; nowhere else is it hidden.
        let outside_controls: String = page
            .text
            .split("value=\"")
            .enumerate()
            .map(|(at, part)| if at == 0 { part } else { part.split_once('"').unwrap().1 })
            .collect();
        assert!(!outside_controls.contains('\u{202e}') && !outside_controls.contains('\u{200b}'), "{outside_controls}");
    }
}

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
async fn the_history_turns_its_pages() {
    let served = Served::new().await;
    for _ in 0..52 {
        let round = served.ask_address().await;
        served.sayso.people().cancel(round.execution_id).await.unwrap();
    }
    let first = served.page("/history").await;
    assert_eq!(first.page(200).matches("<li class=\"card\">").count(), 50);
    let older = between(&first.text, "href=\"/history?cursor=", "\"");
    let second = served.page(&format!("/history?cursor={older}")).await;
    assert_eq!(second.page(200).matches("<li class=\"card\">").count(), 2);
    served.page("/history?cursor=nonsense").await.page(404);
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

//! What the pages show: the list, the history, addresses, and foreign text that is never run.

use sayso::wire::{Call, Keyed};
use sayso::{Ask, Json, People, Principal};

use super::{between, path};
use crate::served::{Served, approval, choice, form, url};

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

//! A form's fields: their controls, what is wrong with them, and the JSON that they make.

use sayso::People;
use sayso::wire::Keyed;

use super::{EVERYTHING, between, path, tag};
use crate::served::{Served, form};

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

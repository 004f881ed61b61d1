//! Calls that wait for approval: what the card shows, edited arguments, and input on the same card.

use sayso::wire::{Request, RequestKind, Round};
use sayso::{Json, People, RoundId};
use sayso_core::policy::Effect;

use super::{path, tag};
use crate::served::{Reply, Served, approval, post};

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

/// A transfer that asks with everything that is known of it; its arguments may be edited.
fn transfer(edits: Option<&str>, input: Option<&str>) -> Request {
    let json = |text: &str| Json::parse(text).unwrap();
    Request {
        tool: Some("bank:transfer".to_owned()),
        arguments: Some(json(r#"{"to":"acme","amount":12345678901234567890.10,"note":"a\u202eb"}"#)),
        message: Some("Moves money.\u{200b}".to_owned()),
        preview: Some(vec!["12 to acme".to_owned()]),
        effects: Some(vec![Effect::Write, Effect::Network]),
        rule: Some("operator/money".to_owned()),
        session: Some("ses-1".to_owned()),
        require_second_person: Some(true),
        arguments_schema: edits.map(json),
        schema: input.map(json),
        ..Request::empty(RequestKind::Approval)
    }
}

const ANY_TRANSFER: &str = r#"{"type":"object","properties":{"to":{"type":"string"},"amount":{"type":"number","minimum":1},"note":{"type":"string"}},"required":["to","amount"]}"#;
const PIN: &str = r#"{"type":"object","properties":{"pin":{"type":"integer","title":"Pin"}},"required":["pin"]}"#;
const CALL: &str = r#"{"city":"Pune","days":3,"parcels":[{"kg":1.50}]}"#;
const CALL_SCHEMA: &str = r#"{"type":"object","properties":{"city":{"type":"string","title":"City"},"days":{"type":"integer","maximum":9},
    "parcels":{"type":"array","items":{"type":"object","properties":{"kg":{"type":"number","title":"Weight"}},"required":["kg"]}}},"required":["city"]}"#;

fn simple() -> Request {
    let json = |text: &str| Json::parse(text).ok();
    let (arguments, arguments_schema) = (json(CALL), json(CALL_SCHEMA));
    Request { tool: Some("x:ship".to_owned()), arguments, arguments_schema, ..Request::empty(RequestKind::Approval) }
}

async fn content(served: &Served, id: RoundId) -> Option<String> {
    let record = served.sayso.people().responses(id).await.unwrap()?;
    Some(record.submitted.get("call")?.content.as_ref()?.as_str().to_owned())
}

fn reviewed(reply: &Reply) -> String {
    super::between(&reply.text, "name=\"r0-reviewed\" value=\"", "\"").to_owned()
}

#[tokio::test]
async fn a_card_says_everything_that_is_known_of_the_call() {
    let served = Served::new().await;
    let round = served.ask(vec![("call", transfer(None, None))]).await;
    let page = served.page(&path(round.round_id)).await;
    for part in [
        "bank:transfer",
        "What shipping says of this tool",
        "Moves money.⟦U+200B⟧",
        "&quot;amount&quot;: 12345678901234567890.10",
        "&quot;note&quot;: &quot;a\\u202eb&quot;",
        "It changes or deletes data.",
        "It reaches the network",
        "12 to acme",
        "operator/money",
        "ses-1",
        "somebody else must approve it",
        "asked by",
        "Reason, if you deny",
    ] {
        assert!(page.page(200).to_lowercase().contains(&part.to_lowercase()), "{part} in {}", page.text);
    }
    assert!(!page.text.contains("Edit the arguments"), "no schema, no edits");
    let unknown = served.ask(vec![("call", approval())]).await;
    assert!(served.page(&path(unknown.round_id)).await.page(200).contains("Nothing is known of what it may do"));
    let edited = [("r0-arguments", "{}"), ("r0-action", "accept")];
    assert_eq!(served.submit(&round, &edited).await.status, 303, "what cannot be edited is not read");
    assert_eq!(content(&served, round.round_id).await, None);
}

#[tokio::test]
async fn arguments_with_hidden_characters_are_edited_as_json_and_run_only_after_the_changes_were_shown() {
    let served = Served::new().await;
    let round = served.ask(vec![("call", transfer(Some(ANY_TRANSFER), None))]).await;
    let page = served.page(&path(round.round_id)).await;
    assert!(tag(page.page(200), "r0-arguments").starts_with("<textarea"));
    let text = super::between(&page.text, "autocomplete=\"off\">", "</textarea>").trim_start().replace("&quot;", "\"");

    // Untouched, it is no edit, whatever line breaks a browser sends.
    let untouched = served.ask(vec![("call", transfer(Some(ANY_TRANSFER), None))]).await;
    let as_shown = text.replace('\n', "\r\n");
    let pairs = [("r0-arguments", as_shown.as_str()), ("r0-action", "accept")];
    assert_eq!(served.submit(&untouched, &pairs).await.status, 303);
    assert_eq!(content(&served, untouched.round_id).await, None);

    for (wrong, sentence) in [
        ("{", "The arguments must be JSON"),
        ("[]", "The arguments must be an object"),
        (r#"{"to":"acme","amount":0.5}"#, "The arguments (at /amount) must be at least 1"),
    ] {
        for action in [("r0-action", "accept"), ("check", "1")] {
            let reply = served.submit(&round, &[("r0-arguments", wrong), action]).await;
            assert!(reply.page(422).contains(sentence), "{sentence} in {}", reply.text);
            assert!(tag(&reply.text, "r0-arguments").contains("aria-invalid=\"true\""));
        }
    }

    let changed = r#"{"to":"acme","amount":7.00}"#;
    let first = served.submit(&round, &[("r0-arguments", changed), ("r0-action", "accept")]).await;
    for part in [
        "Not approved yet",
        "What you changed",
        "− ",
        "&quot;amount&quot;: 12345678901234567890.10",
        "&quot;amount&quot;: 7.00",
    ] {
        assert!(first.page(200).contains(part), "{part} in {}", first.text);
    }
    assert_eq!(content(&served, round.round_id).await, None);
    // Another change than the one that was shown is shown as well.
    let mark = reviewed(&first);
    let other =
        [("r0-arguments", r#"{"to":"acme","amount":8}"#), ("r0-reviewed", mark.as_str()), ("r0-action", "accept")];
    assert!(served.submit(&round, &other).await.page(200).contains("Not approved yet"));
    let same = [("r0-arguments", changed), ("r0-reviewed", mark.as_str()), ("r0-action", "accept")];
    assert_eq!(served.submit(&round, &same).await.status, 303);
    assert_eq!(content(&served, round.round_id).await.unwrap(), format!(r#"{{"arguments":{changed}}}"#));
    let shown = served.page(&path(round.round_id)).await;
    for part in ["Approved, with changed arguments", "Added: ", "&quot;amount&quot;: 7.00"] {
        assert!(shown.page(200).contains(part), "{part} in {}", shown.text);
    }
}

#[tokio::test]
async fn simple_arguments_are_edited_in_fields_with_errors_at_their_places() {
    let served = Served::new().await;
    let round = served.ask(vec![("call", simple())]).await;
    let page = served.page(&path(round.round_id)).await;
    assert!(tag(page.page(200), "r0-a0").contains("value=\"Pune\""));
    assert!(tag(&page.text, "r0-a2_0_0").contains("value=\"1.50\""));
    let fields = |city: &'static str, days: &'static str, kg: &'static str| {
        [("r0-edits", "1"), ("r0-a0", city), ("r0-a1", days), ("r0-a2-rows", "1"), ("r0-a2_0_0", kg)]
    };
    let send = async |round: &Round, pairs: &[(&str, &str)], more: &[(&str, &str)]| {
        served.submit(round, &[pairs, more].concat()).await
    };
    let wrong = send(&round, &fields("", "12", "heavy"), &[("check", "1")]).await;
    for sentence in ["City is required", "days must be at most 9", "parcels 1: Weight must be a number"] {
        assert!(wrong.page(422).contains(sentence), "{sentence} in {}", wrong.text);
    }
    assert!(wrong.text.contains("<a href=\"#r0-a2_0_0\">") && tag(&wrong.text, "r0-a2_0_0").contains("aria-invalid"));
    assert!(wrong.text.contains("<details class=\"edit\" open>"));

    let untouched = send(&round, &fields("Pune", "3", "1.50"), &[("check", "1")]).await;
    assert!(untouched.page(200).contains("as they were proposed"));
    let changed = send(&round, &fields("Goa", "3", "2.0"), &[("r0-action", "accept")]).await;
    assert!(changed.page(200).contains("Not approved yet"));
    let mark = reviewed(&changed);
    let done =
        send(&round, &fields("Goa", "3", "2.0"), &[("r0-reviewed", mark.as_str()), ("r0-action", "accept")]).await;
    assert_eq!(done.status, 303, "{}", done.text);
    let expected = r#"{"arguments":{"city":"Goa","days":3,"parcels":[{"kg":2.0}]}}"#;
    assert_eq!(content(&served, round.round_id).await.as_deref(), Some(expected));

    let plain = served.ask(vec![("call", simple())]).await;
    assert_eq!(send(&plain, &fields("Pune", "3", "1.50"), &[("r0-action", "accept")]).await.status, 303);
    assert_eq!(content(&served, plain.round_id).await, None, "fields that nobody touched are no edit");
}

#[tokio::test]
async fn what_a_call_needs_of_a_person_is_on_its_card_and_it_is_not_approved_without() {
    let served = Served::new().await;
    let round = served.ask(vec![("call", transfer(None, Some(PIN)))]).await;
    let page = served.page(&path(round.round_id)).await;
    assert!(page.page(200).contains("What you add to the call") && tag(&page.text, "r0-i0").contains("aria-required"));
    let bare = served.submit(&round, &[("r0-action", "accept")]).await;
    assert!(bare.page(422).contains("<a href=\"#r0-i0\">Pin is required"));
    let wrong = served.submit(&round, &[("r0-i0", "x"), ("r0-action", "accept")]).await;
    assert!(
        wrong.page(422).contains("Pin must be a whole number") && tag(&wrong.text, "r0-i0").contains("value=\"x\"")
    );
    assert_eq!(served.submit(&round, &[("r0-i0", "7"), ("r0-action", "accept")]).await.status, 303);
    assert_eq!(content(&served, round.round_id).await.as_deref(), Some(r#"{"input":{"pin":7}}"#));
    assert!(served.page(&path(round.round_id)).await.page(200).contains("What was added"));

    let denied = served.ask(vec![("call", transfer(None, Some(PIN)))]).await;
    let pairs = [("r0-i0", ""), ("r0-reason", "no"), ("r0-action", "decline")];
    assert_eq!(served.submit(&denied, &pairs).await.status, 303, "a denial needs no input");
}

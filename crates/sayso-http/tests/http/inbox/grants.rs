//! What is allowed beforehand: given from a card after it was shown, listed, used, and taken back.

use sayso::gate::{By, Call, Gates, Ruling};
use sayso::policy::{Grant, GrantScope, Pins, PolicyFiles, ToolName};
use sayso::wire::Round;
use sayso::{GrantFilter, Json, NewGrant, Principal, Status};

use super::{between, path, tag};
use crate::served::{Reply, Served, admin, approval, get, post};

const PAYMENT: &str = r#"{"to":"acme","amount":12.50}"#;

fn payment(arguments: &str) -> Call {
    Call::new("order-17", ToolName::parse("bank:transfer").unwrap(), Json::parse(arguments).unwrap())
}

/// What becomes of a call of the agent `claude`.
async fn ruled(served: &Served, call: &Call) -> Ruling {
    let gate = Gates::new(&served.sayso, PolicyFiles::none()).of(Principal::agent("claude"));
    gate.judge(call).await.unwrap()
}

async fn asked(served: &Served, arguments: &str) -> Round {
    match ruled(served, &payment(arguments)).await {
        Ruling::Ask(round) => *round,
        other => panic!("{other:?}"),
    }
}

async fn grants(served: &Served) -> Vec<Grant> {
    served.sayso.people().grants(GrantFilter::default()).await.unwrap().0
}

/// The hidden controls of the page that shows what would be allowed.
fn hidden(page: &Reply) -> Vec<(String, String)> {
    ["digest", "key", "allow", "allow-grant", "allow-scope"]
        .map(|name| {
            let value = between(&page.text, &format!("name=\"{name}\" value=\""), "\"");
            (name.to_owned(), value.to_owned())
        })
        .to_vec()
}

async fn send(served: &Served, round: &Round, hidden: &[(String, String)], more: &[(&str, &str)]) -> Reply {
    let pairs: Vec<_> =
        hidden.iter().map(|(name, value)| (name.as_str(), value.as_str())).chain(more.iter().copied()).collect();
    post(&path(round.round_id)).session(&served.session).form(&pairs).send(served).await
}

/// A rule that stands for itself, for lists.
async fn granted(served: &Served, tools: &str, uses_max: Option<u32>) -> Grant {
    let scope = GrantScope::Rule { tools: tools.to_owned(), effects: None, pins: Pins::Any };
    served.sayso.people().grant(NewGrant { uses_max, ..NewGrant::of(scope) }).await.unwrap()
}

#[tokio::test]
async fn a_session_is_allowed_only_after_it_was_shown_and_together_with_the_approval() {
    let served = Served::new().await;
    let round = asked(&served, PAYMENT).await;
    let page = served.page(&path(round.round_id)).await;
    for part in ["Approve for this session", "Approve with these arguments for this session", "by a rule drafted from"]
    {
        assert!(page.page(200).contains(part), "{part}");
    }
    let shown = served.submit(&round, &[("allow", "session")]).await;
    for part in ["bank:transfer", "order-17", "agent claude", "Any", "This call is approved now", "12.50"] {
        assert!(shown.page(200).contains(part), "{part} in {}", shown.text);
    }
    assert!(grants(&served).await.is_empty(), "showing it allows nothing");
    assert_eq!(served.sayso.round(&admin(), round.round_id).await.unwrap().status, Status::Pending);
    assert!(tag(&shown.text, "allow-length").contains("value=\"8\""));

    let hidden = hidden(&shown);
    let limits = [("allow-length", "2"), ("allow-unit", "hours"), ("allow-uses", "1"), ("allow-confirmed", "1")];
    let done = send(&served, &round, &hidden, &limits).await;
    assert_eq!(done.status, 303, "{}", done.text);
    let known = grants(&served).await;
    let [grant] = known.as_slice() else { panic!("{known:?}") };
    assert_eq!((grant.uses_max, grant.round), (Some(1), Some(round.round_id)));
    assert_eq!(grant.expires_at.unwrap().since_ms(grant.granted_at), 7_200_000);
    let after = served.page(done.header("location")).await;
    assert!(after.page(200).contains(&format!("/grants/{}", grant.id)) && after.text.contains("Approved by"));

    // The same form once more is the same answer and no second grant.
    assert_eq!(send(&served, &round, &hidden, &limits).await.status, 303);
    assert_eq!(grants(&served).await.len(), 1);

    assert!(
        matches!(ruled(&served, &payment(PAYMENT)).await, Ruling::Allow(allowed) if matches!(allowed.by, By::Person(_)))
    );
    let other = payment(r#"{"to":"zulu","amount":1}"#);
    assert!(matches!(ruled(&served, &other).await, Ruling::Allow(allowed) if allowed.by == By::Grant(grant.id)));
    assert!(matches!(ruled(&served, &other).await, Ruling::Ask(_)), "one use");
    let uses = served.page(&format!("/grants/{}", grant.id)).await;
    assert!(uses.page(200).contains("Used up") && uses.text.contains("by <strong>agent claude</strong>"));
    assert!(uses.text.contains("used once") && uses.text.contains(&path(round.round_id)));
}

#[tokio::test]
async fn pinned_arguments_are_those_that_were_shown() {
    let served = Served::new().await;
    let round = asked(&served, PAYMENT).await;
    let shown = served.submit(&round, &[("allow", "pinned")]).await;
    assert!(shown.page(200).contains("Exactly these"));
    let limits = [("allow-length", ""), ("allow-unit", "days"), ("allow-uses", ""), ("allow-confirmed", "1")];
    assert_eq!(send(&served, &round, &hidden(&shown), &limits).await.status, 303);
    let known = grants(&served).await;
    assert!(known[0].expires_at.is_none() && known[0].uses_max.is_none());
    drop(ruled(&served, &payment(PAYMENT)).await);
    assert!(
        matches!(ruled(&served, &payment(PAYMENT)).await, Ruling::Allow(allowed) if allowed.by == By::Grant(known[0].id))
    );
    let other = payment(r#"{"to":"acme","amount":12.51}"#);
    assert!(matches!(ruled(&served, &other).await, Ruling::Ask(_)));
}

#[tokio::test]
async fn a_rule_is_widened_only_as_far_as_was_shown() {
    let served = Served::new().await;
    let round = asked(&served, PAYMENT).await;
    let shown = served.submit(&round, &[("allow", "rule")]).await;
    for part in [
        "Every session",
        "have no members but",
        "<code>/amount</code> is <code>12.50</code>",
        "read, write, exec, network",
    ] {
        assert!(shown.page(200).contains(part), "{part} in {}", shown.text);
    }
    let fields = [("allow-length", "8"), ("allow-unit", "hours"), ("allow-uses", ""), ("allow-free", "1")];
    let unseen = send(&served, &round, &hidden(&shown), &[&fields[..], &[("allow-confirmed", "1")]].concat()).await;
    assert!(unseen.page(200).contains("Look again before you allow it"));
    assert!(grants(&served).await.is_empty());
    let seen = send(&served, &round, &hidden(&shown), &fields).await;
    assert!(!seen.page(200).contains("/amount</code> is") && seen.text.contains("/to</code> is"));
    assert!(tag(&seen.text, "allow-free-1").contains("checked"));
    let done = send(&served, &round, &hidden(&seen), &[&fields[..], &[("allow-confirmed", "1")]].concat()).await;
    assert_eq!(done.status, 303, "{}", done.text);
    let id = grants(&served).await[0].id;
    let elsewhere = Call { session: "order-18".to_owned(), ..payment(r#"{"to":"acme","amount":99}"#) };
    assert!(matches!(ruled(&served, &elsewhere).await, Ruling::Allow(allowed) if allowed.by == By::Grant(id)));
    assert!(matches!(ruled(&served, &payment(r#"{"to":"zulu","amount":99}"#)).await, Ruling::Ask(_)));
    let list = served.page("/grants").await;
    for part in ["bank:transfer in every session", "The conditions", "In force", "Take back"] {
        assert!(list.page(200).contains(part), "{part} in {}", list.text);
    }
}

#[tokio::test]
async fn limits_that_cannot_be_read_are_said_at_their_fields_and_nothing_is_allowed() {
    let served = Served::new().await;
    let round = asked(&served, PAYMENT).await;
    let shown = served.submit(&round, &[("allow", "session")]).await;
    for (length, uses) in [("soon", "0"), ("-1", "-1"), ("9999999999999999999", "1.5"), ("366", "many")] {
        let fields = [("allow-length", length), ("allow-unit", "days"), ("allow-uses", uses), ("allow-confirmed", "1")];
        let again = send(&served, &round, &hidden(&shown), &fields).await;
        assert!(again.page(422).contains("<a href=\"#allow-length\">The time must be"), "{length}: {}", again.text);
        assert!(again.text.contains("<a href=\"#allow-uses\">The number of calls must be"));
        let control = tag(&again.text, "allow-length");
        assert!(control.contains("aria-invalid=\"true\"") && control.contains("allow-length-error"), "{control}");
        assert!(control.contains(&format!("value=\"{length}\"")));
    }
    assert!(grants(&served).await.is_empty());
    assert_eq!(served.sayso.round(&admin(), round.round_id).await.unwrap().status, Status::Pending);
}

#[tokio::test]
async fn nothing_is_allowed_with_an_answer_that_is_not_accepted() {
    let served = Served::new().await;
    let round = asked(&served, PAYMENT).await;
    let shown = served.submit(&round, &[("allow", "session")]).await;
    let limits = [("allow-length", "1"), ("allow-unit", "days"), ("allow-uses", ""), ("allow-confirmed", "1")];
    let mut stale = hidden(&shown);
    stale[0].1 = format!("sha256:{}", "0".repeat(64));
    assert!(send(&served, &round, &stale, &limits).await.page(409).contains("Look again before you answer"));
    assert!(grants(&served).await.is_empty());
    assert_eq!(served.submit(&round, &[("r0-reason", "no"), ("r0-action", "decline")]).await.status, 303);
    assert!(send(&served, &round, &hidden(&shown), &limits).await.page(409).contains("Denied by"));
    assert!(grants(&served).await.is_empty());
}

#[tokio::test]
async fn more_calls_are_not_offered_where_a_person_adds_to_each_or_nothing_names_the_session() {
    let served = Served::new().await;
    let pin = Json::parse(r#"{"type":"object","properties":{"pin":{"type":"integer"}}}"#).ok();
    let round = match ruled(&served, &Call { input: pin, ..payment(PAYMENT) }).await {
        Ruling::Ask(round) => *round,
        other => panic!("{other:?}"),
    };
    assert!(!served.page(&path(round.round_id)).await.page(200).contains("allow more calls"));
    assert_eq!(served.submit(&round, &[("allow", "rule")]).await.status, 422);
    let bare = served.ask(vec![("call", approval())]).await;
    let page = served.page(&path(bare.round_id)).await;
    assert!(!page.page(200).contains("for this session") && page.text.contains("by a rule drafted from"));
    let several = served.ask(vec![("a", approval()), ("b", approval())]).await;
    assert!(!served.page(&path(several.round_id)).await.page(200).contains("allow more calls"));
    assert_eq!(served.submit(&several, &[("allow", "rule")]).await.status, 422);
    assert_eq!(served.submit(&bare, &[("allow", "everything")]).await.status, 422);
}

#[tokio::test]
async fn edited_arguments_are_approved_by_themselves() {
    let served = Served::new().await;
    let schema =
        Json::parse(r#"{"type":"object","properties":{"to":{"type":"string"},"amount":{"type":"number"}}}"#).ok();
    let round = match ruled(&served, &Call { arguments_schema: schema, ..payment(PAYMENT) }).await {
        Ruling::Ask(round) => *round,
        other => panic!("{other:?}"),
    };
    let edited = [("r0-edits", "1"), ("r0-a0", "zulu"), ("r0-a1", "1"), ("allow", "session")];
    let reply = served.submit(&round, &edited).await;
    assert!(reply.page(200).contains("allowed only as they were shown") && reply.text.contains("value=\"zulu\""));
    assert!(grants(&served).await.is_empty());
}

#[tokio::test]
async fn the_list_is_newest_first_in_pages_and_tells_ended_from_standing() {
    let served = Served::new().await;
    assert!(served.page("/grants").await.page(200).contains("Nothing is allowed beforehand."));
    for number in 0..53 {
        granted(&served, &format!("x:tool{number:02}"), None).await;
    }
    // Those of one millisecond are in the order of their ids.
    let titles: Vec<_> = grants(&served).await.iter().map(|grant| format!("href=\"/grants/{}\"", grant.id)).collect();
    let page = served.page("/grants").await;
    let at = |text: &str, newest: usize| text.find(&titles[newest]);
    assert!(at(page.page(200), 0) < at(&page.text, 1) && at(&page.text, 49).is_some() && at(&page.text, 50).is_none());
    assert!(page.text.contains("aria-current=\"page\">Grants") && page.text.contains("aria-current=\"page\">In force"));
    let older = between(&page.text, "href=\"/grants?cursor=", "\"").to_owned();
    let older = served.page(&format!("/grants?cursor={older}")).await;
    assert!(at(older.page(200), 50).is_some() && at(&older.text, 49).is_none() && older.text.contains(">Newest<"));
    assert_eq!(served.page("/grants?cursor=nonsense").await.status, 404);

    let gone = granted(&served, "y:*", None).await;
    served.sayso.people().revoke_grant(gone.id).await.unwrap();
    assert!(!served.page("/grants").await.page(200).contains("y:*"));
    let all = served.page("/grants?show=all").await;
    assert!(all.page(200).contains("y:*") && all.text.contains("Taken back"));
    assert!(all.text.contains("/grants?show=all&amp;cursor="));
}

#[tokio::test]
async fn a_grant_is_taken_back_after_it_was_shown_and_only_by_a_form() {
    let served = Served::new().await;
    let grant = granted(&served, "x:*", Some(3)).await;
    let address = format!("/grants/{}/revoke", grant.id);
    let confirm = served.page(&address).await;
    assert!(confirm.page(200).contains("Take this back?") && confirm.text.contains("3 of 3 uses left"));
    assert!(grants(&served).await[0].revoked_at.is_none(), "looking takes nothing back");
    let foreign = post(&address).session(&served.session).form(&[]).header("origin", "https://evil.example");
    let foreign = foreign.header("sec-fetch-site", "cross-site").send(&served).await;
    assert_eq!(foreign.status, 403);
    assert_eq!(post(&address).form(&[]).send(&served).await.header("location"), "/login");
    assert!(grants(&served).await[0].revoked_at.is_none());
    let done = post(&address).session(&served.session).form(&[]).send(&served).await;
    assert_eq!((done.status.as_u16(), done.header("location")), (303, format!("/grants/{}", grant.id).as_str()));
    let page = served.page(&format!("/grants/{}", grant.id)).await;
    assert!(page.page(200).contains("Taken back") && !page.text.contains("href=\"/grants/grt"));
    assert_eq!(served.page(&address).await.status, 303, "there is nothing to take back twice");
    assert_eq!(post(&address).session(&served.session).form(&[]).send(&served).await.status, 303);
    for unknown in ["/grants/nonsense", "/grants/grt_00000000000000000000000000", "/grants/nonsense/revoke"] {
        assert_eq!(served.page(unknown).await.status, 404, "{unknown}");
    }
    assert_eq!(get("/grants").send(&served).await.header("location"), "/login");
}

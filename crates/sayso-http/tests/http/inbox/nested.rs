//! Objects as groups of fields, and lists of objects as rows that are added and removed without a script.

use sayso::wire::Round;
use sayso::{People, RoundId};

use super::{path, tag};
use crate::served::{Served, form};

const SHIPMENT: &str = r#"{"type":"object","required":["to","parcels"],"properties":{
 "to":{"type":"object","title":"Address","required":["street"],"properties":{
   "street":{"type":"string","title":"Street","minLength":3},
   "geo":{"type":"object","title":"Position","required":["lat"],"properties":{"lat":{"type":"number"},"lon":{"type":"number"}}}}},
 "back":{"type":"object","title":"Return address","required":["street"],"properties":{
   "street":{"type":"string","title":"Street"},"land":{"type":"string","default":"DE"}}},
 "parcels":{"type":"array","title":"Parcels","minItems":1,"maxItems":3,"items":{"type":"object","required":["kg"],"properties":{
   "kg":{"type":"number","title":"Weight","exclusiveMinimum":0},"kind":{"type":"string","title":"Kind","enum":["box","bag"]}}}}}}"#;

async fn ask(served: &Served) -> Round {
    served.ask(vec![("shipment", form("Where to?", SHIPMENT))]).await
}

async fn stored(served: &Served, id: RoundId) -> String {
    let record = served.sayso.people().responses(id).await.unwrap().unwrap();
    record.submitted.get("shipment").unwrap().content.as_ref().unwrap().as_str().to_owned()
}

#[tokio::test]
async fn nested_objects_are_groups_and_lists_of_objects_are_rows() {
    let served = Served::new().await;
    let round = ask(&served).await;
    let page = served.page(&path(round.round_id)).await;
    let html = page.page(200);
    for (id, start) in [
        ("r0-f0", "<fieldset"),
        ("r0-f0_0", "<input"),
        ("r0-f0_1", "<fieldset"),
        ("r0-f0_1_0", "<input"),
        ("r0-f1_1", "<input"),
        ("r0-f2", "<fieldset"),
        ("r0-f2_0", "<fieldset"),
        ("r0-f2_0_0", "<input"),
        ("r0-f2_0_1", "<fieldset"),
    ] {
        assert!(tag(html, id).starts_with(start), "{id}: {}", tag(html, id));
    }
    for part in [
        "<legend>Address <span",
        "<legend>Parcels 1</legend>",
        "Add another to Parcels",
        "1 to 3 rows.",
        "Remove Parcels 1",
    ] {
        assert!(html.contains(part), "{part} in {html}");
    }
    // Enter sends the form: the first button is neither one that adds nor one that removes.
    assert!(html.find("class=\"visually-hidden\" type=\"submit\"").unwrap() < html.find("name=\"less\"").unwrap());
}

#[tokio::test]
async fn a_row_is_added_and_removed_and_nothing_that_was_typed_is_lost_or_sent() {
    let served = Served::new().await;
    let round = ask(&served).await;
    let typed = [("r0-f0_0", "Elm"), ("r0-f2-rows", "1"), ("r0-f2_0_0", "1.50"), ("r0-f2_0_1", "1")];
    let more = served.submit(&round, &[&typed[..], &[("more", "r0-f2")]].concat()).await;
    let html = more.page(200);
    assert!(tag(html, "r0-f2_1").contains("autofocus") && tag(html, "r0-f2_0_0").contains("1.50"));
    assert!(html.contains("name=\"r0-f2-rows\" value=\"2\"") && !html.contains("id=\"problems\""));
    let two =
        [("r0-f0_0", "Elm"), ("r0-f2-rows", "2"), ("r0-f2_0_0", "1.50"), ("r0-f2_1_0", "2.0"), ("r0-f2_1_1", "0")];
    let less = served.submit(&round, &[&two[..], &[("less", "r0-f2_0")]].concat()).await;
    assert!(
        tag(less.page(200), "r0-f2_0_0").contains("value=\"2.0\"")
            && tag(&less.text, "r0-f2_0_1-0").contains("checked")
    );
    assert!(!less.text.contains("r0-f2_1_0"));
    let full = served.submit(&round, &[("r0-f2-rows", "2"), ("more", "r0-f2")]).await;
    assert!(
        full.page(200).contains("Remove Parcels 3") && !full.text.contains("name=\"more\""),
        "no row beyond maxItems"
    );
    for odd in [("more", "nonsense"), ("less", "r0-f2_77"), ("less", "x"), ("r0-f2-rows", "99999999999")] {
        served.submit(&round, &[odd, ("more", "r0-f9")]).await.page(200);
    }
    assert_eq!(served.sayso.round(&crate::served::admin(), round.round_id).await.unwrap().rev, round.rev);
}

#[tokio::test]
async fn errors_stand_at_the_nested_field_and_the_summary_leads_there() {
    let served = Served::new().await;
    let round = ask(&served).await;
    let typed = [
        ("r0-f0_0", "ab"),
        ("r0-f0_1_1", "7"),
        ("r0-f1_1", "DE"),
        ("r0-f2-rows", "2"),
        ("r0-f2_0_0", "1"),
        ("r0-f2_1_0", "0"),
        ("r0-f2_1_1", "9"),
        ("r0-action", "accept"),
    ];
    let reply = served.submit(&round, &typed).await;
    let html = reply.page(422);
    for (id, sentence) in [
        ("r0-f0_0", "Address: Street must be at least 3 characters"),
        ("r0-f0_1_0", "Address: Position: lat is required"),
        ("r0-f2_1_0", "Parcels 2: Weight must be greater than 0"),
        ("r0-f2_1_1-0", "Parcels 2: Kind must be one of the listed options"),
    ] {
        assert!(html.contains(&format!("<a href=\"#{id}\">{sentence}")), "{sentence} in {html}");
    }
    assert!(
        tag(html, "r0-f2_1_0").contains("aria-invalid=\"true\"") && tag(html, "r0-f2_1_0").contains("r0-f2_1_0-error")
    );
    assert!(!html.contains("Return address: Street"), "an optional group that nobody touched is left out");
}

#[tokio::test]
async fn groups_and_rows_are_stored_as_they_were_filled_in() {
    let served = Served::new().await;
    let round = ask(&served).await;
    let typed = [
        ("r0-f0_0", "Elm Street"),
        ("r0-f0_1_0", ""),
        ("r0-f1_0", ""),
        ("r0-f1_1", "DE"),
        ("r0-f2-rows", "2"),
        ("r0-f2_0_0", "1.50"),
        ("r0-f2_0_1", ""),
        ("r0-f2_1_0", "2.0"),
        ("r0-f2_1_1", "1"),
        ("r0-action", "accept"),
    ];
    let reply = served.submit(&round, &typed).await;
    assert_eq!(reply.status, 303, "{}", reply.text);
    let expected = r#"{"to":{"street":"Elm Street"},"parcels":[{"kg":1.50},{"kg":2.0,"kind":"bag"}]}"#;
    assert_eq!(stored(&served, round.round_id).await, expected);
    let shown = served.page(&path(round.round_id)).await;
    for part in ["Address", "Elm Street", "2.0", "bag"] {
        assert!(shown.page(200).contains(part), "{part}");
    }

    let round = ask(&served).await;
    let mut full = typed.to_vec();
    full.extend([("r0-f1_0", "Oak"), ("r0-f0_1_0", "1"), ("r0-f0_1_1", "-2.5")]);
    full.retain(|pair| *pair != ("r0-f1_0", "") && *pair != ("r0-f0_1_0", ""));
    assert_eq!(served.submit(&round, &full).await.status, 303);
    let content = stored(&served, round.round_id).await;
    assert!(
        content.contains(r#""geo":{"lat":1,"lon":-2.5}"#) && content.contains(r#""back":{"street":"Oak","land":"DE"}"#),
        "{content}"
    );
}

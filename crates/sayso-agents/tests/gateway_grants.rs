//! Grants at the gateway: what people have allowed beforehand runs without a question, and its use is stored first.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod rig;

use rig::{Gated, Setup, Trouble, text_of};
use sayso::policy::{GrantScope, Pins, ToolName};
use sayso::{GrantFilter, NewGrant, Response, Status, wire};
use serde_json::{Value, json};

const ASKING: &str =
    "[[rule]]\nid = \"all\"\nask = [\"shipping:*\"]\n[[rule]]\nid = \"greet\"\nask = [\"*:prompt:*\"]\n";

async fn gated(policy: &str) -> Gated {
    Gated::start(policy, Setup::default()).await
}

fn rule(tools: &str) -> NewGrant {
    NewGrant::of(GrantScope::Rule { tools: tools.to_owned(), effects: None, pins: Pins::Any })
}

impl Gated {
    /// The call that reaches the upstream now.
    async fn runs(&mut self) -> Value {
        let heard = self.upstream.hear().await;
        let number = heard["id"].clone();
        self.result(&number, "done").await;
        assert_eq!(text_of(&self.client.hear().await), "done");
        heard
    }

    async fn grant(&self, grant: NewGrant) -> sayso::GrantId {
        self.sayso.people().grant(grant).await.unwrap().id
    }

    async fn uses(&self) -> u32 {
        self.sayso.people().grants(GrantFilter::default()).await.unwrap().0.iter().map(|grant| grant.uses).sum()
    }

    /// The round that a call is asked in, approved for its session too.
    async fn approved_for_session(&mut self, id: u64, arguments: Value, pinned: bool) -> wire::Round {
        self.call_tool(id, "book", arguments).await;
        let known = self.rounds().await.len();
        let round = self.new_round(known.saturating_sub(1)).await;
        let drafted = self.sayso.people().session_grant_of(round.round_id, pinned).await.unwrap();
        self.grant(drafted).await;
        self.approve(&round, None).await;
        self.runs().await;
        round
    }
}

#[tokio::test]
async fn what_was_approved_for_the_session_passes_there_and_its_use_is_stored_before_it_runs() {
    let mut rig = gated(ASKING).await;
    rig.call_tool(1, "book", json!({"n": 1})).await;
    let round = rig.new_round(0).await;
    let drafted = rig.sayso.people().session_grant_of(round.round_id, false).await.unwrap();
    rig.grant(drafted).await;
    rig.approve(&round, None).await;
    rig.runs().await;
    assert_eq!(rig.uses().await, 0, "a person approved that one");
    rig.call_tool(2, "book", json!({"n": 2})).await;
    let heard = rig.upstream.hear().await;
    assert_eq!((heard["params"]["arguments"].clone(), rig.uses().await), (json!({"n": 2}), 1));
    let number = heard["id"].clone();
    rig.result(&number, "done").await;
    rig.client.hear().await;
    assert_eq!(rig.rounds().await.len(), 1, "nobody was asked again");
    let events = rig.sayso.events_after(rig.sayso.person(), 0).await.unwrap();
    let used = events.iter().find(|event| event.event.body.name() == "grant_used").unwrap();
    assert_eq!(used.event.principal, Some(sayso::Principal::agent("gateway:shipping")));
}

#[tokio::test]
async fn a_grant_of_another_session_or_for_other_arguments_asks_as_before() {
    let mut rig = gated(ASKING).await;
    let tool = ToolName::parse("shipping:book").unwrap();
    let definition = sayso::gate::definition_of(&tool, sayso::policy::Annotations::default());
    let scope = GrantScope::Session { session: "other".to_owned(), tool, definition, pins: Pins::Any };
    rig.grant(NewGrant::of(scope)).await;
    let first = rig.approved_for_session(1, json!({"n": 1}), true).await;
    assert_eq!(first.status, Status::Pending);
    rig.call_tool(2, "book", json!({"n": 2})).await;
    let second = rig.new_round(1).await;
    rig.decide(&second, Response::decline(None)).await.unwrap();
    assert!(text_of(&rig.client.hear().await).contains("refused"));
    assert_eq!(rig.uses().await, 0);
}

#[tokio::test]
async fn a_rule_drafted_from_a_call_lets_calls_like_it_run_as_often_as_it_says() {
    let mut rig = gated(ASKING).await;
    rig.call_tool(1, "book", json!({"to": "a", "n": 1})).await;
    let round = rig.new_round(0).await;
    let drafted = rig.sayso.people().rule_grant_of(round.round_id, &["n".to_owned()]).await.unwrap();
    rig.grant(NewGrant { uses_max: Some(1), ..drafted }).await;
    rig.approve(&round, None).await;
    rig.runs().await;
    rig.call_tool(2, "book", json!({"to": "b", "n": 1})).await;
    let other = rig.new_round(1).await;
    rig.decide(&other, Response::decline(None)).await.unwrap();
    rig.client.hear().await;
    rig.call_tool(3, "book", json!({"to": "a", "n": 7})).await;
    rig.runs().await;
    rig.call_tool(4, "book", json!({"to": "a", "n": 8})).await;
    rig.new_round(2).await;
    assert_eq!(rig.uses().await, 1);
}

#[tokio::test]
async fn no_grant_runs_what_is_denied() {
    let mut rig = gated("[[rule]]\nid = \"never\"\ndeny = [\"shipping:book\"]\n").await;
    rig.grant(rule("*:*")).await;
    rig.call_tool(1, "book", json!({})).await;
    assert!(text_of(&rig.client.hear().await).contains("operator never"));
    assert_eq!(rig.uses().await, 0);
}

#[tokio::test]
async fn a_tool_that_has_changed_needs_a_grant_that_knows_it() {
    let mut rig = gated(ASKING).await;
    rig.approved_for_session(1, json!({"n": 1}), false).await;
    rig.grant(rule("shipping:book")).await;
    rig.upstream.say(json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})).await;
    rig.client.hear().await;
    let list = rig.upstream.hear().await;
    let tools = json!([{"name": "book", "description": "Books and pays.", "inputSchema": {"type": "object"}}]);
    rig.upstream.say(json!({"jsonrpc": "2.0", "id": list["id"], "result": {"tools": tools}})).await;
    rig.call_tool(2, "book", json!({"n": 2})).await;
    let round = rig.new_round(1).await;
    assert!(round.requests.get("call").unwrap().rule.as_deref().unwrap().contains("definition"));
    let drafted = rig.sayso.people().session_grant_of(round.round_id, false).await.unwrap();
    rig.grant(drafted).await;
    rig.approve(&round, None).await;
    rig.runs().await;
    rig.call_tool(3, "book", json!({"n": 3})).await;
    rig.runs().await;
    assert_eq!(rig.uses().await, 1);
}

#[tokio::test]
async fn a_call_that_waits_runs_once_it_was_granted_and_somebody_waits_for_it_again() {
    let setup = Setup { hold: std::time::Duration::from_millis(1), ..Setup::default() };
    let mut rig = Gated::start(ASKING, setup).await;
    rig.call_tool(1, "book", json!({"n": 1})).await;
    let round = rig.new_round(0).await;
    let pending = rig.client.hear().await;
    let execution = pending["result"]["structuredContent"]["paused"]["execution_id"].clone();
    let drafted = rig.sayso.people().session_grant_of(round.round_id, false).await.unwrap();
    rig.grant(drafted).await;
    rig.call_tool(2, "sayso_wait", json!({"execution_id": execution})).await;
    let heard = rig.upstream.hear().await;
    assert_eq!(heard["params"]["arguments"], json!({"n": 1}));
    assert_eq!(rig.round(&round).await.failure.unwrap().code, "withdrawn", "nobody has to answer it now");
    assert_eq!(rig.uses().await, 1);
}

#[tokio::test]
async fn a_grant_whose_use_cannot_be_stored_lets_nothing_run() {
    let setup = Setup { trouble: Some(Trouble::StoreIsAway), ..Setup::default() };
    let mut rig = Gated::start(ASKING, setup).await;
    rig.grant(rule("shipping:*")).await;
    rig.call_tool(1, "book", json!({})).await;
    assert!(text_of(&rig.client.hear().await).contains("Approval unavailable"));
    assert_eq!(rig.uses().await, 0);
}

#[tokio::test]
async fn a_grant_is_not_used_up_by_a_call_whose_definition_cannot_be_stored() {
    for lost in [1, 2] {
        let setup = Setup { trouble: Some(Trouble::LosesReviews(lost)), ..Setup::default() };
        let mut rig = Gated::start(ASKING, setup).await;
        rig.grant(NewGrant { uses_max: Some(1), ..rule("shipping:*") }).await;
        rig.call_tool(1, "book", json!({})).await;
        if lost == 1 {
            rig.new_round(0).await;
        } else {
            assert!(text_of(&rig.client.hear().await).contains("Approval unavailable"));
        }
        assert_eq!(rig.uses().await, 0);
        rig.call_tool(2, "book", json!({"n": 2})).await;
        rig.runs().await;
        assert_eq!(rig.uses().await, 1, "the store is back, and so is the grant");
    }
}

#[tokio::test]
async fn whoever_refuses_a_call_before_a_grant_is_used_for_it_has_refused_it_and_uses_nothing() {
    let hold = std::time::Duration::from_millis(1);
    let setup = Setup { hold, trouble: Some(Trouble::RefusedBeforeUse), ..Setup::default() };
    let mut rig = Gated::start(ASKING, setup).await;
    rig.call_tool(1, "book", json!({"n": 1})).await;
    let round = rig.new_round(0).await;
    let pending = rig.client.hear().await;
    let execution = pending["result"]["structuredContent"]["paused"]["execution_id"].clone();
    rig.grant(rule("shipping:*")).await;
    let mut id = 1;
    let heard = loop {
        id += 1;
        rig.call_tool(id, "sayso_wait", json!({"execution_id": execution})).await;
        let heard = rig.client.hear().await;
        if !text_of(&heard).contains("still waiting") {
            break heard;
        }
    };
    assert!(text_of(&heard).contains("refused"), "{heard}");
    assert_eq!((rig.round(&round).await.failure, rig.uses().await), (None, 0));
}

#[tokio::test]
async fn a_prompt_is_granted_by_the_name_that_rules_know_it_by() {
    let mut rig = gated(ASKING).await;
    let get = |id: u64, who: &str| {
        let params = json!({"name": "greet", "arguments": {"who": who}});
        json!({"jsonrpc": "2.0", "id": id, "method": "prompts/get", "params": params})
    };
    rig.client.say(get(1, "Ada")).await;
    let round = rig.new_round(0).await;
    let people = rig.sayso.people();
    let by_rule = people.rule_grant_of(round.round_id, &["who".to_owned()]).await.unwrap();
    rig.grant(NewGrant { uses_max: Some(1), ..by_rule }).await;
    let for_session = people.session_grant_of(round.round_id, false).await.unwrap();
    rig.grant(NewGrant { uses_max: Some(1), ..for_session }).await;
    rig.approve(&round, None).await;
    for (id, who) in [(1, "Ada"), (2, "Grace"), (3, "Edsger")] {
        let heard = rig.upstream.hear().await;
        assert_eq!(heard["params"]["arguments"]["who"], who);
        rig.upstream.say(json!({"jsonrpc": "2.0", "id": heard["id"], "result": {"messages": []}})).await;
        rig.client.hear().await;
        match id {
            1 => rig.client.say(get(2, "Grace")).await,
            2 => rig.client.say(get(3, "Edsger")).await,
            _ => {}
        }
    }
    assert_eq!(rig.uses().await, 2);
}

//! What a grant covers, and what it never does.

use sayso_core::id::GrantId;
use sayso_core::json::Json;
use sayso_core::policy::{
    Annotations, Basis, Context, Decision, Grant, GrantScope, GrantedCall, Layer, NotCovered, Opaque, Outcome, Pins,
    Policy, Recheck, RuleText, ToolFacts, ToolName,
};
use sayso_core::principal::Principal;
use sayso_core::round::Digest;
use sayso_core::time::UnixMs;

use crate::{json, judge, policy, rule, tool, when};

use Decision::{Allow, Ask, Deny};

pub const NOW: UnixMs = UnixMs(1_796_000_000_000);

pub fn grant(scope: GrantScope) -> Grant {
    Grant {
        id: GrantId::from_parts(NOW.0, 1),
        scope,
        granted_by: Principal::person("local:ada"),
        granted_at: NOW,
        expires_at: None,
        uses_max: None,
        uses: 0,
        revoked_at: None,
        agent: None,
        round: None,
    }
}

/// A call in session `s`, and what it borrows.
pub struct Called {
    pub tool: ToolName,
    pub arguments: Json,
    pub facts: ToolFacts,
    pub starter: Principal,
}

impl Called {
    pub fn new(name: &str, arguments: &str) -> Self {
        let (tool, arguments) = (tool(name), json(arguments));
        let facts = Policy::default().facts(&tool, Annotations::default());
        Self { tool, arguments, facts, starter: Principal::person("local:ada") }
    }

    pub fn call(&self) -> GrantedCall<'_> {
        GrantedCall {
            tool: &self.tool,
            arguments: &self.arguments,
            definition: Digest::of_text("definition"),
            round: Some(Digest::of_text("round")),
            session: "s",
            started_by: Some(&self.starter),
            facts: &self.facts,
            command_at: Some("/command"),
            work_folder: None,
        }
    }
}

pub fn session(name: &str, pins: Pins) -> GrantScope {
    GrantScope::Session { session: "s".to_owned(), tool: tool(name), definition: Digest::of_text("definition"), pins }
}

#[test]
fn a_grant_for_once_covers_the_call_that_was_shown_and_no_other() {
    let called = Called::new("a:b", r#"{"command":"x > y"}"#);
    let once = grant(GrantScope::Once { digest: Digest::of_text("round") });
    assert_eq!(once.covers(&called.call(), NOW), Ok(()));
    let other = GrantedCall { round: Some(Digest::of_text("other")), ..called.call() };
    assert_eq!(once.covers(&other, NOW), Err(NotCovered::OtherCall));
    assert_eq!(once.covers(&GrantedCall { round: None, ..called.call() }, NOW), Err(NotCovered::OtherCall));
    assert_eq!(Grant { uses: 1, ..once }.covers(&called.call(), NOW), Err(NotCovered::UsedUp));
}

#[test]
fn a_grant_for_a_session_ends_with_it_and_with_the_tools_definition() {
    let called = Called::new("a:b", r#"{"n":1}"#);
    let any = grant(session("a:b", Pins::Any));
    assert_eq!(any.covers(&called.call(), NOW), Ok(()));
    assert_eq!(any.covers(&GrantedCall { session: "t", ..called.call() }, NOW), Err(NotCovered::OtherSession));
    let changed = GrantedCall { definition: Digest::of_text("changed"), ..called.call() };
    assert_eq!(any.covers(&changed, NOW), Err(NotCovered::OtherDefinition));
    let other = Called::new("c:b", r#"{"n":1}"#);
    assert_eq!(any.covers(&other.call(), NOW), Err(NotCovered::OtherTool), "a tool of the same name is another");

    let exactly = grant(session("a:b", Pins::Exactly(json(r#"{ "n": 1 }"#))));
    assert_eq!(exactly.covers(&called.call(), NOW), Ok(()));
    for arguments in [r#"{"n":1.0}"#, r#"{"n":true}"#, r#"{"n":1,"force":true}"#, "{}"] {
        let other = Called::new("a:b", arguments);
        let refused = exactly.covers(&other.call(), NOW);
        assert_eq!(refused, Err(NotCovered::OtherArguments { at: String::new() }), "{arguments}");
    }
    let some = grant(session("a:b", Pins::When(when(r#"[{"at":"/n","in":[1,2]},{"at":"","only":["n"]}]"#))));
    assert_eq!(some.covers(&Called::new("a:b", r#"{"n":2}"#).call(), NOW), Ok(()));
    let refused = some.covers(&Called::new("a:b", r#"{"n":3}"#).call(), NOW);
    assert_eq!(refused, Err(NotCovered::OtherArguments { at: "/n".to_owned() }));
}

#[test]
fn a_grant_expires_runs_out_and_can_be_revoked() {
    let called = Called::new("a:b", "{}");
    let any = grant(session("a:b", Pins::Any));
    let expiring = Grant { expires_at: Some(NOW), ..any.clone() };
    assert_eq!(expiring.covers(&called.call(), NOW.plus_ms(-1)), Ok(()));
    assert_eq!(expiring.covers(&called.call(), NOW), Err(NotCovered::Expired));
    let counted = Grant { uses_max: Some(2), uses: 1, ..any.clone() };
    assert_eq!(counted.covers(&called.call(), NOW), Ok(()));
    assert_eq!(Grant { uses: 2, ..counted }.covers(&called.call(), NOW), Err(NotCovered::UsedUp));
    assert_eq!(Grant { revoked_at: Some(NOW), ..any }.covers(&called.call(), NOW), Err(NotCovered::Revoked));
}

#[test]
fn no_lasting_grant_covers_a_command_that_cannot_be_split() {
    for (command, why) in
        [("ls > x", Opaque::Redirection), ("ls $(x)", Opaque::Substitution), ("ls 'x", Opaque::Quotes)]
    {
        let called = Called::new("a:b", &format!(r#"{{"command":"{command}"}}"#));
        for pins in [
            Pins::Any,
            Pins::Exactly(called.arguments.clone()),
            Pins::When(when(r#"[{"at":"/command","exists":true}]"#)),
        ] {
            let refused = grant(session("a:b", pins)).covers(&called.call(), NOW);
            assert_eq!(refused, Err(NotCovered::OpaqueCommand(why)), "{command}");
        }
    }
}

#[test]
fn a_rule_is_opened_member_by_member_and_takes_no_member_that_was_not_shown() {
    let called = Called::new("a:b", r#"{"path":"/w/a","mode":"append","n":1}"#);
    let drafted = || GrantScope::drafted(&called.call());
    let opened = grant(drafted().with_free(&["path".to_owned()]).unwrap());
    let covers = |arguments: &str| opened.covers(&Called::new("a:b", arguments).call(), NOW).is_ok();
    assert!(covers(r#"{"path":"/elsewhere","mode":"append","n":1}"#));
    assert!(!covers(r#"{"path":"/w/a","mode":"truncate","n":1}"#));
    assert!(!covers(r#"{"path":"/w/a","mode":"append","n":1,"force":true}"#));
    assert!(drafted().with_free(&["force".to_owned()]).is_err());
    let whole = GrantScope::drafted(&Called::new("a:b", "{}").call());
    assert!(whole.clone().with_free(&[]).is_ok() && whole.with_free(&["x".to_owned()]).is_err());
}

#[test]
fn a_drafted_rule_covers_this_call_and_nothing_wider() {
    let called = Called::new("sh*ell:run", r#"{"command":"npm run 'a*'","cwd":"/w","n":1}"#);
    let scope = GrantScope::drafted(&called.call());
    scope.check().unwrap();
    let drafted = grant(scope.clone());
    assert_eq!(drafted.covers(&called.call(), NOW), Ok(()));
    let elsewhere = GrantedCall { session: "t", definition: Digest::of_text("changed"), ..called.call() };
    assert_eq!(drafted.covers(&elsewhere, NOW), Ok(()), "a rule outlives sessions");
    for arguments in [
        r#"{"command":"npm run 'ab'","cwd":"/w","n":1}"#,
        r#"{"command":"npm run 'a*' && x","cwd":"/w","n":1}"#,
        r#"{"command":"npm run 'a*'","cwd":"/","n":1}"#,
        r#"{"command":"npm run 'a*'","n":1}"#,
        r#"{"command":"npm run 'a*'","cwd":"/w","n":1,"sudo":true}"#,
    ] {
        assert!(drafted.covers(&Called::new("sh*ell:run", arguments).call(), NOW).is_err(), "{arguments}");
    }
    assert!(drafted.covers(&Called::new("shXell:run", called.arguments.as_str()).call(), NOW).is_err());
    for arguments in ["{}", r#"{"x":null}"#, r#"{"command":"a && b"}"#] {
        let called = Called::new("a:b", arguments);
        let GrantScope::Rule { pins, .. } = GrantScope::drafted(&called.call()) else { panic!("a rule") };
        assert_eq!(pins, Pins::Exactly(called.arguments.clone()), "{arguments}");
    }
    let text = serde_json::to_string(&scope).unwrap();
    assert_eq!(serde_json::from_str::<GrantScope>(&text).unwrap(), scope);
}

#[test]
fn a_grant_stands_in_for_a_person_only_where_the_rules_ask() {
    let called = Called::new("a:b", "{}");
    let grants = [grant(session("a:b", Pins::Any))];
    for (decision, expected) in [(Allow, Allow), (Ask, Allow), (Deny, Deny)] {
        let policy = policy(vec![(Layer::Operator, vec![rule("r", decision, "*:*")])]);
        let verdict = judge(&policy, "a:b", "{}").with_grants(&called.call(), &grants, NOW);
        assert_eq!(verdict.decision, expected);
        assert_eq!(verdict.basis == Basis::Grant(grants[0].id), decision == Ask);
    }
    let error = judge(&Policy::default().with_fault("broken"), "a:b", "{}");
    assert_eq!(error.with_grants(&called.call(), &grants, NOW).decision, Deny);
}

#[test]
fn a_tool_that_changed_since_it_was_reviewed_asks_again() {
    let policy = policy(vec![(Layer::Operator, vec![rule("yes", Allow, "a:*"), rule("no", Deny, "*:*")])]);
    let called = Called::new("a:b", "{}");
    let judge = |name: &str, definition: &str| {
        let context = Context { changed_definition: Some(Digest::of_text(definition)), ..Context::default() };
        policy.evaluate(&tool(name), &called.arguments, &context)
    };
    let verdict = judge("a:b", "definition");
    assert_eq!((verdict.decision, verdict.rules[0].id.as_str()), (Ask, "definition"));
    assert_eq!(judge("c:b", "definition").decision, Deny);
    assert_eq!(judge("a:b", "definition").recheck(&verdict.rules), Recheck::Go);
    assert_eq!(judge("a:b", "changed once more").recheck(&verdict.rules), Recheck::AskAgain);

    let knows_it = [grant(session("a:b", Pins::Any))];
    let rules = [grant(GrantScope::drafted(&called.call()))];
    assert_eq!(rules[0].covers(&called.call(), NOW), Ok(()));
    assert_eq!(verdict.clone().with_grants(&called.call(), &rules, NOW).decision, Ask);
    assert_eq!(verdict.with_grants(&called.call(), &knows_it, NOW).decision, Allow);
    let context = Context { changed_definition: Some(Digest::of_text("x")), ..Context::default() };
    let told = policy.explain(&called.tool, &called.arguments, &context).considered;
    assert_eq!((told[0].rule.as_str(), &told[0].outcome), ("definition", &Outcome::Matched));
}

#[test]
fn a_second_person_cannot_be_replaced_by_ones_own_grant() {
    let strict = RuleText { require_second_person: true, ..rule("r", Ask, "*:*") };
    let verdict = judge(&policy(vec![(Layer::Operator, vec![strict])]), "a:b", "{}");
    let called = Called::new("a:b", "{}");
    let own = [grant(session("a:b", Pins::Any))];
    assert_eq!(verdict.clone().with_grants(&called.call(), &own, NOW).decision, Ask);
    let unknown = GrantedCall { started_by: None, ..called.call() };
    assert_eq!(verdict.clone().with_grants(&unknown, &own, NOW).decision, Ask, "whoever started it is not known");
    let others = [Grant { granted_by: Principal::person("local:grace"), ..own[0].clone() }];
    assert_eq!(verdict.with_grants(&called.call(), &others, NOW).decision, Allow);
}

#[test]
fn a_call_that_may_be_denied_is_asked_whatever_was_granted() {
    let limit = RuleText { when: when(r#"[{"at":"/n","min":9}]"#), ..rule("r", Deny, "*:*") };
    let verdict = judge(&policy(vec![(Layer::Operator, vec![limit])]), "a:b", r#"{"n":"10"}"#);
    let called = Called::new("a:b", r#"{"n":"10"}"#);
    let verdict = verdict.with_grants(&called.call(), &[grant(session("a:b", Pins::Any))], NOW);
    assert_eq!((verdict.decision, verdict.is_unsure), (Ask, true));
}

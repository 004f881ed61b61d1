//! Which rule decides.

use sayso_core::policy::{
    Basis, Context, Decision, Effect, Layer, LayerText, Mode, Outcome, Policy, Recheck, RuleText, ToolText,
};

use crate::{hints, json, judge, policy, rule, tool, when};

use Decision::{Allow, Ask, Deny};
use Layer::{Operator, Project, Session};

const READS: &str = r#"{"readOnlyHint":true}"#;

#[test]
fn without_a_rule_only_reading_tools_of_a_trusted_server_are_allowed() {
    let trusting =
        Policy::new(vec![LayerText { trusted: vec!["files".to_owned()], ..LayerText::new(Operator, vec![]) }]);
    let trusting = trusting.unwrap();
    for (policy, name, annotations, expected) in [
        (&trusting, "files:read", READS, Allow),
        (&trusting, "files:write", "{}", Ask),
        (&trusting, "files:odd", r#"{"readOnlyHint":true,"destructiveHint":true}"#, Ask),
        (&trusting, "other:read", READS, Ask),
        (&Policy::default(), "files:read", READS, Ask),
    ] {
        let context = Context { annotations: hints(annotations), ..Context::default() };
        let verdict = policy.evaluate(&tool(name), &json("{}"), &context);
        assert_eq!((verdict.decision, verdict.rules[0].id.as_str()), (expected, "default"), "{name} {annotations}");
    }
}

#[test]
fn the_first_rule_of_a_layer_decides_and_of_the_layers_the_most_restrictive() {
    let policy = policy(vec![
        (Session, vec![rule("s", Allow, "*:*")]),
        (Project, vec![rule("p1", Ask, "git:push"), rule("p2", Deny, "git:push"), rule("p3", Deny, "git:force*")]),
        (Operator, vec![rule("o1", Allow, "git:*"), rule("o2", Deny, "git:*")]),
    ]);
    for (name, expected, rules) in [
        ("git:log", Allow, "operator o1,session s"),
        ("git:push", Ask, "project p1"),
        ("git:force-push", Deny, "project p3"),
        ("web:get", Ask, "operator default"),
    ] {
        let verdict = judge(&policy, name, "{}");
        let named = verdict.rules.iter().map(|rule| format!("{} {}", rule.layer.as_str(), rule.id));
        assert_eq!((verdict.decision, named.collect::<Vec<_>>().join(",")), (expected, rules.to_owned()), "{name}");
    }
}

#[test]
fn effects_permit_as_a_whole_and_restrict_in_part() {
    let effects =
        |rule: RuleText, effects: &[Effect]| RuleText { effects: Some(effects.iter().copied().collect()), ..rule };
    let mut layer = LayerText::new(
        Operator,
        vec![
            effects(rule("no-exec", Deny, "*:*"), &[Effect::Exec]),
            effects(rule("reads", Allow, "*:*"), &[Effect::Read, Effect::Network]),
        ],
    );
    let described = |name: &str, effects: &[Effect]| ToolText {
        tools: vec![name.to_owned()],
        effects: Some(effects.iter().copied().collect()),
        command: None,
    };
    layer.tools = vec![described("a:fetch", &[Effect::Read, Effect::Network]), described("a:save", &[Effect::Write])];
    let policy = Policy::new(vec![layer]).unwrap();
    assert_eq!(judge(&policy, "a:fetch", "{}").decision, Allow);
    assert_eq!(judge(&policy, "a:save", "{}").decision, Ask);
    assert_eq!(judge(&policy, "a:unknown", "{}").decision, Deny, "of an unknown tool everything is possible");
    let context = Context { annotations: hints(r#"{"destructiveHint":true}"#), ..Context::default() };
    let verdict = policy.evaluate(&tool("a:fetch"), &json("{}"), &context);
    assert_eq!(verdict.decision, Ask, "the server's own word can only make it worse");
}

#[test]
fn an_argument_that_cannot_be_judged_permits_nothing_and_is_asked_where_it_could_be_denied() {
    let limit = RuleText { when: when(r#"[{"at":"/amount","min":1000}]"#), ..rule("large", Deny, "bank:pay") };
    let small = RuleText { when: when(r#"[{"at":"/amount","max":10}]"#), ..rule("small", Allow, "bank:pay") };
    let policy = policy(vec![(Operator, vec![limit, small, rule("rest", Allow, "bank:*")])]);
    for (arguments, expected, unsure) in [
        (r#"{"amount":5}"#, Allow, false),
        (r#"{"amount":1000.00}"#, Deny, false),
        (r#"{"amount":50}"#, Allow, false),
        (r#"{"amount":"5000"}"#, Ask, true),
    ] {
        let verdict = judge(&policy, "bank:pay", arguments);
        assert_eq!((verdict.decision, verdict.is_unsure), (expected, unsure), "{arguments}");
    }
    let autonomous = Context { mode: Some(Mode::Autonomous), ..Context::default() };
    let verdict = policy.evaluate(&tool("bank:pay"), &json(r#"{"amount":"5000"}"#), &autonomous);
    assert_eq!(verdict.decision, Ask, "what may be denied is not allowed by the mode");
}

#[test]
fn modes_decide_what_no_rule_does() {
    let rules = vec![rule("no", Deny, "a:no"), rule("ask", Ask, "a:ask"), rule("yes", Allow, "a:yes")];
    let policy = policy(vec![(Operator, rules)]);
    for (mode, expected) in [
        (Mode::Approval, [Deny, Ask, Allow, Ask]),
        (Mode::Autonomous, [Deny, Allow, Allow, Allow]),
        (Mode::Guarded, [Deny, Ask, Allow, Deny]),
    ] {
        let context = Context { mode: Some(mode), ..Context::default() };
        let found =
            ["a:no", "a:ask", "a:yes", "a:other"].map(|name| policy.evaluate(&tool(name), &json("{}"), &context));
        assert_eq!(found.each_ref().map(|verdict| verdict.decision), expected, "{mode:?}");
        let basis = if mode == Mode::Autonomous { Basis::Mode } else { Basis::Rules };
        assert_eq!((&found[1].basis, found[1].rules[0].id.as_str()), (&basis, "ask"));
    }
    let guarded = Context { mode: Some(Mode::Guarded), ..Context::default() };
    let verdict = Policy::default().evaluate(&tool("a:b"), &json("{}"), &guarded);
    assert!(matches!(verdict.basis, Basis::Error(_)) && verdict.decision == Deny);

    let unsure = crate::policy(vec![(
        Operator,
        vec![RuleText { when: when(r#"[{"at":"/c","command":["rm *"]}]"#), ..rule("rm", Deny, "*:*") }],
    )]);
    let verdict = unsure.evaluate(&tool("a:b"), &json(r#"{"c":"a > b"}"#), &guarded);
    assert_eq!(verdict.decision, Deny, "what no rule allows stays denied");
}

#[test]
fn where_a_second_person_is_required_no_mode_stands_in_for_them() {
    let pay = RuleText { require_second_person: true, ..rule("pay", Ask, "bank:*") };
    let any = rule("any", Ask, "*:*");
    let both = policy(vec![(Operator, vec![any]), (Project, vec![pay.clone()])]);
    for policy in [policy(vec![(Operator, vec![pay])]), both] {
        let autonomous = Context { mode: Some(Mode::Autonomous), ..Context::default() };
        let verdict = policy.evaluate(&tool("bank:pay"), &json("{}"), &autonomous);
        assert_eq!((verdict.decision, &verdict.basis), (Ask, &Basis::Rules));
        assert!(verdict.require_second_person);
        assert_eq!(policy.evaluate(&tool("shop:buy"), &json("{}"), &autonomous).decision, Allow);
    }
}

#[test]
fn an_error_denies_and_says_so() {
    let policy = policy(vec![(Operator, vec![rule("no", Deny, "a:no"), rule("yes", Allow, "*:*")])]);
    for arguments in ["[]", "null", "5"] {
        let verdict = judge(&policy, "a:b", arguments);
        assert!(matches!(verdict.basis, Basis::Error(_)) && verdict.decision == Deny, "{arguments}");
    }
    let broken = policy.clone().with_fault("project.toml: line 3: unknown key `tol`");
    let verdict = judge(&broken, "a:b", "{}");
    assert_eq!(verdict.basis, Basis::Error("project.toml: line 3: unknown key `tol`".to_owned()));
    assert_eq!((judge(&broken, "a:no", "{}").basis, broken.version() != policy.version()), (Basis::Rules, true));
    let autonomous = Context { mode: Some(Mode::Autonomous), ..Context::default() };
    assert_eq!(broken.evaluate(&tool("a:b"), &json("{}"), &autonomous).decision, Deny);
}

#[test]
fn an_unrelated_edit_of_the_policy_spends_no_approval() {
    let ask = || rule("deploy", Ask, "ops:deploy");
    let asked_by = judge(&policy(vec![(Operator, vec![ask()])]), "ops:deploy", "{}").rules;
    let now = |rules: Vec<RuleText>| judge(&policy(vec![(Operator, rules)]), "ops:deploy", "{}").recheck(&asked_by);
    assert_eq!(now(vec![rule("more", Deny, "ops:delete"), ask()]), Recheck::Go);
    assert_eq!(now(vec![RuleText { reason: Some("Production.".to_owned()), ..ask() }]), Recheck::Go);
    assert_eq!(now(vec![rule("fine", Allow, "ops:*")]), Recheck::Go);
    assert_eq!(now(vec![rule("other", Ask, "ops:*")]), Recheck::AskAgain);
    assert_eq!(now(vec![RuleText { require_second_person: true, ..ask() }]), Recheck::AskAgain);
    assert_eq!(now(vec![]), Recheck::AskAgain, "what holds without a rule is another reason to ask");
    assert_eq!(now(vec![rule("no", Deny, "ops:*"), ask()]), Recheck::Refuse);
    let both = policy(vec![(Operator, vec![ask()]), (Project, vec![rule("p", Ask, "*:*")])]);
    let verdict = judge(&both, "ops:deploy", "{}");
    assert_eq!(verdict.recheck(&asked_by), Recheck::AskAgain, "a second rule asks too");
    assert_eq!(judge(&policy(vec![(Operator, vec![ask()])]), "ops:deploy", "{}").recheck(&verdict.rules), Recheck::Go);
}

#[test]
fn what_asks_may_demand_a_second_person_and_an_end() {
    let strict = RuleText { require_second_person: true, deadline_ms: Some(60_000), ..rule("o", Ask, "*:*") };
    let quick = RuleText { deadline_ms: Some(5_000), reason: Some("Quickly.".to_owned()), ..rule("p", Ask, "*:*") };
    let verdict = judge(&policy(vec![(Operator, vec![strict]), (Project, vec![quick])]), "a:b", "{}");
    assert!(verdict.require_second_person);
    assert_eq!((verdict.deadline_ms, verdict.reason.as_deref()), (Some(5_000), Some("Quickly.")));
}

#[test]
fn an_explanation_says_of_every_rule_why_it_did_or_did_not_decide() {
    let conditional =
        RuleText { when: when(r#"[{"at":"/path","within":"/work"}]"#), ..rule("inside", Allow, "files:*") };
    let narrow = RuleText { effects: Some([Effect::Read].into_iter().collect()), ..rule("reads", Allow, "files:*") };
    let command = RuleText {
        when: when(r#"[{"at":"/path","glob":"*"},{"at":"/c","command":["x"]}]"#),
        ..rule("c", Deny, "files:*")
    };
    let policy = policy(vec![
        (
            Operator,
            vec![
                rule("web", Ask, "web:*"),
                narrow,
                conditional,
                command,
                rule("rest", Ask, "*:*"),
                rule("last", Deny, "*:*"),
            ],
        ),
        (Project, vec![rule("p", Allow, "files:*")]),
    ]);
    let explanation =
        policy.explain(&tool("files:save"), &json(r#"{"path":"/etc/x","c":"a > b"}"#), &Context::default());
    let told: Vec<_> = explanation.considered.iter().map(|rule| (rule.rule.as_str(), &rule.outcome)).collect();
    let at = |at: &str| at.to_owned();
    assert_eq!(told[0], ("web", &Outcome::OtherTool));
    assert_eq!(told[1], ("reads", &Outcome::OtherEffects));
    assert_eq!(
        told[2],
        ("inside", &Outcome::OtherArguments { at: at("/path"), why: "is not as the condition says".to_owned() })
    );
    assert!(
        matches!(told[3], ("c", Outcome::CannotBeRuledOut { at: place, why }) if place == "/c" && why.contains("redirection"))
    );
    assert_eq!(told[4], ("rest", &Outcome::Matched));
    assert_eq!(told[5], ("last", &Outcome::NotReached));
    assert_eq!(told[6], ("default", &Outcome::NotReached));
    assert_eq!(told[7], ("p", &Outcome::Matched));
    assert_eq!(explanation.verdict.rules.iter().map(|rule| rule.id.as_str()).collect::<Vec<_>>(), ["c", "rest"]);
    let written = serde_json::to_string(&explanation).unwrap();
    assert!(!written.contains("/etc/x"), "values are not repeated: {written}");
}

#[test]
fn a_policy_that_cannot_be_meant_is_refused_where_it_is_wrong() {
    let project = |text: LayerText| LayerText { layer: Project, ..text };
    let empty = || LayerText::new(Operator, vec![]);
    for (layers, key) in [
        (vec![empty(), empty()], "layer"),
        (vec![project(LayerText { mode: Some(Mode::Autonomous), ..empty() })], "mode"),
        (vec![project(LayerText { trusted: vec!["a".to_owned()], ..empty() })], "server"),
        (
            vec![project(LayerText {
                tools: vec![ToolText { tools: vec!["a:b".to_owned()], effects: None, command: None }],
                ..empty()
            })],
            "tool",
        ),
        (
            vec![LayerText {
                tools: vec![ToolText { tools: vec!["a:b".to_owned()], effects: None, command: Some("c".to_owned()) }],
                ..empty()
            }],
            "tool.0.command",
        ),
        (vec![LayerText::new(Operator, vec![rule("a", Ask, "a:b"), rule("a", Deny, "a:b")])], "rule.1.id"),
        (vec![LayerText::new(Operator, vec![rule("a", Ask, "ab")])], "rule.0.ask"),
    ] {
        assert_eq!(Policy::new(layers).unwrap_err().key, key);
    }
}

#[test]
fn a_version_changes_with_the_meaning() {
    let of = |rules| policy(vec![(Operator, rules)]).version();
    let two = || vec![rule("a", Ask, "a:b"), rule("b", Deny, "a:b")];
    let swapped = two().into_iter().rev().collect();
    assert_eq!(of(two()), of(two()));
    assert_ne!(of(two()), of(swapped));
    let (project, session) = ((Project, two()), (Session, vec![rule("s", Deny, "x:y")]));
    let (one, other) = (policy(vec![project.clone(), session.clone()]), policy(vec![session, project]));
    assert_eq!(one.version(), other.version(), "layers have their place, whatever came first");
}

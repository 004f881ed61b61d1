//! Whatever the rules, the call and the grants: adding something never permits more than it shows.

use proptest::prelude::*;
use sayso_core::json::Json;
use sayso_core::policy::{
    Annotations, Basis, Condition, Context, Decision, Effect, Effects, Layer, LayerText, Mode, Policy, RuleText,
    ToolText, split,
};
use sayso_core::round::Digest;

use crate::granting::{Called, NOW};
use crate::shown::{Given, given};
use crate::when;

fn decisions() -> impl Strategy<Value = Decision> {
    prop_oneof![Just(Decision::Allow), Just(Decision::Ask), Just(Decision::Deny)]
}

fn effects() -> impl Strategy<Value = Effects> {
    (1u8..16).prop_map(|bits| Effect::ALL.into_iter().filter(|effect| bits & 1 << *effect as u8 != 0).collect())
}

fn conditions() -> impl Strategy<Value = Vec<Condition>> {
    let one = prop_oneof![
        Just(r#"{"at":"/command","command":["ls *","rm x"]}"#),
        Just(r#"{"at":"/command","command":["*"]}"#),
        Just(r#"{"at":"/n","min":2}"#),
        Just(r#"{"at":"/n","max":2}"#),
        Just(r#"{"at":"/n","equals":1}"#),
        Just(r#"{"at":"/path","within":"/w"}"#),
        Just(r#"{"at":"/path","glob":"/w/*"}"#),
        Just(r#"{"at":"/path","exists":true}"#),
        Just(r#"{"at":"","only":["n","path"]}"#),
    ];
    prop::collection::vec(one, 0..3).prop_map(|texts| when(&format!("[{}]", texts.join(","))))
}

fn tools() -> impl Strategy<Value = String> {
    prop_oneof![Just("*:*"), Just("a:*"), Just("a:x"), Just("b:*"), Just("?:y")].prop_map(str::to_owned)
}

fn rules() -> impl Strategy<Value = Vec<RuleText>> {
    let rule = (decisions(), tools(), prop::option::of(effects()), conditions(), any::<bool>());
    prop::collection::vec(rule, 0..5).prop_map(|rules| {
        let numbered = rules.into_iter().enumerate();
        let rule = |(at, (decision, tools, effects, when, second)): (usize, (Decision, String, _, _, bool))| RuleText {
            effects,
            when,
            require_second_person: second && decision == Decision::Ask,
            ..RuleText::new(format!("r{at}"), decision, &[&tools])
        };
        numbered.map(rule).collect()
    })
}

fn operators() -> impl Strategy<Value = LayerText> {
    (rules(), any::<bool>(), prop::option::of((tools(), effects()))).prop_map(|(rules, trusts, described)| LayerText {
        trusted: if trusts { vec!["a".to_owned()] } else { Vec::new() },
        tools: described
            .map(|(tools, effects)| ToolText { tools: vec![tools], effects: Some(effects), command: None })
            .into_iter()
            .collect(),
        ..LayerText::new(Layer::Operator, rules)
    })
}

fn commands() -> impl Strategy<Value = String> {
    r"(ls|rm x|ls -l|cd s|bash -c x| && |;|\||\$\(x\)| > f|'|[a-c ])( && |;|\n|)(ls|rm x|b|)"
}

fn calls() -> impl Strategy<Value = (String, String)> {
    let name = prop_oneof![Just("a:x"), Just("a:y"), Just("b:y")].prop_map(str::to_owned);
    let number = prop::option::of(prop_oneof![Just("1"), Just("1.0"), Just("3"), Just("\"3\""), Just("[]")]);
    let path = prop::option::of(prop_oneof![Just("/w/a"), Just("/w/../b"), Just("c"), Just("/b")]);
    (name, number, path, prop::option::of(commands())).prop_map(|(name, number, path, command)| {
        let quoted = |text: &str| Json::from_text(text).as_str().to_owned();
        let members = [
            number.map(|number| format!("\"n\":{number}")),
            path.map(|path| format!("\"path\":{}", quoted(path))),
            command.map(|command| format!("\"command\":{}", quoted(&command))),
        ];
        let members: Vec<_> = members.into_iter().flatten().collect();
        (name, format!("{{{}}}", members.join(",")))
    })
}

fn hint() -> impl Strategy<Value = Option<bool>> {
    prop::option::of(any::<bool>())
}

fn contexts() -> impl Strategy<Value = Context<'static>> {
    let mode = prop_oneof![Just(Mode::Approval), Just(Mode::Autonomous), Just(Mode::Guarded)];
    let hints = (hint(), hint(), hint(), hint());
    (hints, prop::option::of(mode), prop::option::weighted(0.2, Just(Digest::of_text("definition")))).prop_map(
        |((read_only, destructive, idempotent, open_world), mode, changed_definition)| Context {
            annotations: Annotations { read_only, destructive, idempotent, open_world },
            mode,
            changed_definition,
            ..Context::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn adding_a_layer_never_permits_more(
        operator in operators(), project in rules(), session in rules(), (name, arguments) in calls(), context in contexts(),
    ) {
        let called = Called::new(&name, &arguments);
        let judge = |policy: &Policy| policy.evaluate(&called.tool, &called.arguments, &context);
        let one = Policy::new(vec![operator]).unwrap();
        let two = one.clone().with_layer(LayerText::new(Layer::Project, project)).unwrap();
        let three = two.clone().with_layer(LayerText::new(Layer::Session, session)).unwrap();
        prop_assert!(judge(&one).decision <= judge(&two).decision);
        prop_assert!(judge(&two).decision <= judge(&three).decision);
        prop_assert!(judge(&two).decision <= judge(&two.clone().with_fault("x")).decision);
        let explained = three.explain(&called.tool, &called.arguments, &context);
        prop_assert_eq!(explained.verdict, judge(&three));
    }

    /// What a grant shows is read from its parts by the test itself (`shown.rs`).
    #[test]
    fn a_grant_permits_only_what_is_asked_and_only_what_it_shows(
        operator in operators(), project in rules(), session in rules(), (name, arguments) in calls(), context in contexts(),
        given in prop::collection::vec(given(), 1..4),
    ) {
        let called = Called::new(&name, &arguments);
        let layers = vec![operator, LayerText::new(Layer::Project, project), LayerText::new(Layer::Session, session)];
        let before = Policy::new(layers).unwrap().evaluate(&called.tool, &called.arguments, &context);
        let grants: Vec<_> = given.iter().zip(1..).map(|(given, number)| given.grant(number)).collect();
        let after = before.clone().with_grants(&called.call(), &grants, NOW);
        let is_open = before.decision == Decision::Ask && !before.is_unsure;
        // Then that asks too, and a rule knows no definition.
        let is_changed = context.changed_definition.is_some();
        let shows = |given: &Given| given.shows(&name, &arguments, before.require_second_person, is_changed);
        match after.basis {
            Basis::Grant(used) => {
                prop_assert!(is_open && after.decision == Decision::Allow);
                let used = grants.iter().position(|grant| grant.id == used).unwrap();
                prop_assert!(shows(&given[used]), "{:?}", given[used]);
                prop_assert_eq!(&after.rules, &before.rules);
            }
            _ => {
                prop_assert_eq!(&after, &before);
                // And it permits all that it shows, of which a command's text alone says too little.
                let has_command = called.arguments.value().get("command").is_some();
                prop_assert!(!is_open || has_command || !given.iter().any(shows));
            }
        }
    }

    #[test]
    fn a_command_that_a_rule_allows_is_allowed_in_each_of_its_parts(command in commands()) {
        let when = when(r#"[{"at":"/command","command":["ls *","rm x","b"]}]"#);
        let allow = RuleText { when, ..RuleText::new("r", Decision::Allow, &["*:*"]) };
        let policy = Policy::new(vec![LayerText::new(Layer::Operator, vec![allow])]).unwrap();
        let decides = |command: &str| {
            let arguments = format!("{{\"command\":{}}}", Json::from_text(command).as_str());
            crate::judge(&policy, "a:x", &arguments).decision
        };
        if decides(&command) == Decision::Allow {
            for part in split(&command).unwrap() {
                let quoted: Vec<_> = part.words.iter().map(|word| format!("'{word}'")).collect();
                prop_assert_eq!(decides(&quoted.join(" ")), Decision::Allow);
            }
        }
    }

    #[test]
    fn evaluating_is_total(operator in operators(), name in ".{1,5}", arguments in r#"[{}\[\]",:a0-9]{0,12}"#, context in contexts()) {
        let policy = Policy::new(vec![operator]).unwrap();
        if let (Ok(tool), Ok(arguments)) = (sayso_core::policy::ToolName::new("a", name.replace(':', "")), Json::parse(&arguments)) {
            let verdict = policy.evaluate(&tool, &arguments, &context);
            prop_assert!(arguments.is_object() || verdict.decision == Decision::Deny);
        }
    }
}

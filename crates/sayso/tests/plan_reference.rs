//! Plans against a naive matcher: for any plan and any questions, what is answered and how it ends are the same.
//!
//! The reference works on the tree itself and knows no positions: it takes a question away from a plan and keeps every
//! plan that may be left (Antimirov's partial derivatives).
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at what it did not expect"
)]

use proptest::prelude::*;
use sayso::plan::{self, Elicitation, PlanError, Run, expect_form, expect_url, maybe_form, maybe_url};
use sayso::wire::{Request, RequestKind};
use sayso::{Json, Response};

const KEYS: [&str; 2] = ["a", "b"];
const ANSWERS: [&str; 3] = ["accept", "decline", "cancel"];

#[derive(Debug, Clone, PartialEq)]
struct Leaf {
    is_form: bool,
    key: usize,
    answer: usize,
    is_required: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum Tree {
    Nothing,
    Leaf(Leaf),
    Sequence(Vec<Tree>),
    Optional(Box<Tree>),
    OneOf(Vec<Tree>),
    RoundOf(Vec<Leaf>),
}

/// A question: whether it is a form, and its key. A round is one of them or several.
type Question = (bool, usize);
type Round = Vec<Question>;
/// Key, action; in the order of the keys.
type Answers = Vec<(usize, usize)>;

#[derive(Debug, PartialEq)]
enum Ended {
    Malformed,
    Unexpected,
    Ambiguous,
    Unfinished,
    Done,
}

impl Leaf {
    fn plan(&self) -> plan::Plan {
        let key = KEYS[self.key];
        if self.is_form {
            let expectation = if self.is_required { expect_form(key) } else { maybe_form(key) };
            match self.answer {
                0 => expectation.accept(Json::parse("{}").unwrap()),
                1 => expectation.decline(None),
                _ => expectation.cancel(),
            }
        } else {
            let expectation = if self.is_required { expect_url(key) } else { maybe_url(key) };
            match self.answer {
                0 => expectation.accept(),
                1 => expectation.decline(None),
                _ => expectation.cancel(),
            }
        }
    }
}

impl Tree {
    fn plan(&self) -> plan::Plan {
        let all = |parts: &[Self]| parts.iter().map(Self::plan).collect::<Vec<_>>();
        match self {
            Self::Nothing => plan::Plan::nothing(),
            Self::Leaf(leaf) => leaf.plan(),
            Self::Sequence(parts) => plan::sequence(all(parts)),
            Self::Optional(part) => plan::optional(part.plan()),
            Self::OneOf(parts) => plan::one_of(all(parts)),
            Self::RoundOf(leaves) => plan::round_of(leaves.iter().map(Leaf::plan)),
        }
    }

    fn is_valid(&self) -> bool {
        match self {
            Self::Nothing | Self::Leaf(_) => true,
            Self::Sequence(parts) => parts.len() > 1 && parts.iter().all(Self::is_valid),
            Self::Optional(part) => part.is_valid(),
            Self::OneOf(parts) => {
                let is_distinct = (0..parts.len()).all(|at| !parts[..at].contains(&parts[at]));
                parts.len() > 1 && is_distinct && parts.iter().all(|part| part.is_valid() && !part.may_end())
            }
            Self::RoundOf(leaves) => match leaves.as_slice() {
                [one, two] => one.key != two.key && one.is_required && two.is_required,
                _ => false,
            },
        }
    }

    fn may_end(&self) -> bool {
        match self {
            Self::Nothing | Self::Optional(_) => true,
            Self::Leaf(leaf) => !leaf.is_required,
            Self::Sequence(parts) => parts.iter().all(Self::may_end),
            Self::OneOf(parts) => parts.iter().any(Self::may_end),
            Self::RoundOf(_) => false,
        }
    }

    /// Every way to take `round` away from the beginning: what it is answered, and what is left.
    fn without(&self, round: &Round) -> Vec<(Answers, Self)> {
        match self {
            Self::Nothing => Vec::new(),
            Self::Leaf(leaf) if round.as_slice() == [(leaf.is_form, leaf.key)] => {
                vec![(vec![(leaf.key, leaf.answer)], Self::Nothing)]
            }
            Self::Leaf(_) => Vec::new(),
            Self::Optional(part) => part.without(round),
            Self::OneOf(parts) => parts.iter().flat_map(|part| part.without(round)).collect(),
            Self::RoundOf(leaves) => {
                let mut expected: Round = leaves.iter().map(|leaf| (leaf.is_form, leaf.key)).collect();
                let mut came = round.clone();
                expected.sort_unstable();
                came.sort_unstable();
                let mut answers: Answers = leaves.iter().map(|leaf| (leaf.key, leaf.answer)).collect();
                answers.sort_unstable();
                if expected == came { vec![(answers, Self::Nothing)] } else { Vec::new() }
            }
            Self::Sequence(parts) => {
                let Some((first, rest)) = parts.split_first() else { return Vec::new() };
                let rest = Self::Sequence(rest.to_vec());
                let left = |(answers, left): (Answers, Self)| (answers, Self::Sequence(vec![left, rest.clone()]));
                let mut ways: Vec<_> = first.without(round).into_iter().map(left).collect();
                if first.may_end() {
                    ways.extend(rest.without(round));
                }
                ways
            }
        }
    }

    fn follow(&self, rounds: &[Round]) -> (Vec<Answers>, Ended) {
        if !self.is_valid() {
            return (Vec::new(), Ended::Malformed);
        }
        let (mut left, mut told) = (vec![self.clone()], Vec::new());
        for round in rounds {
            let ways: Vec<_> = left.iter().flat_map(|tree| tree.without(round)).collect();
            let Some((answers, _)) = ways.first().cloned() else { return (told, Ended::Unexpected) };
            if ways.iter().any(|(other, _)| *other != answers) {
                return (told, Ended::Ambiguous);
            }
            told.push(answers);
            left = ways.into_iter().map(|(_, tree)| tree).collect();
        }
        let ended = if left.iter().any(Self::may_end) { Ended::Done } else { Ended::Unfinished };
        (told, ended)
    }
}

fn asked((is_form, key): Question) -> Elicitation {
    let request = if is_form {
        Request::form("?", Json::parse(r#"{"type":"object","properties":{}}"#).unwrap())
    } else {
        let (message, url) = (Some("?".to_owned()), Some("https://example.com/".to_owned()));
        Request { message, url, ..Request::empty(RequestKind::Url) }
    };
    Elicitation::new(KEYS[key], request)
}

fn told(responses: Vec<(String, Response)>) -> Answers {
    let position = |words: &[&str], word: &str| words.iter().position(|known| *known == word).unwrap();
    let mut told: Answers = responses
        .iter()
        .map(|(key, response)| (position(&KEYS, key), position(&ANSWERS, response.action.as_str())))
        .collect();
    told.sort_unstable();
    told
}

fn follow(run: Result<Run, PlanError>, rounds: &[Round]) -> (Vec<Answers>, Ended) {
    let mut answers = Vec::new();
    let Ok(run) = run else { return (answers, Ended::Malformed) };
    let mut run = run.with_round_limit(100);
    for round in rounds {
        let round: Vec<_> = round.iter().copied().map(asked).collect();
        match run.answer(&round) {
            Ok(responses) => answers.push(told(responses.0)),
            Err(PlanError::Unexpected { .. }) => return (answers, Ended::Unexpected),
            Err(PlanError::Ambiguous { .. }) => return (answers, Ended::Ambiguous),
            Err(other) => panic!("{other}"),
        }
    }
    match run.finish() {
        Ok(()) => (answers, Ended::Done),
        Err(PlanError::Unfinished { expected }) => {
            assert!(!expected.is_empty(), "something was still expected");
            (answers, Ended::Unfinished)
        }
        Err(other) => panic!("{other}"),
    }
}

fn leaf() -> impl Strategy<Value = Leaf> {
    (any::<bool>(), 0..2_usize, 0..3_usize, prop::bool::weighted(0.7))
        .prop_map(|(is_form, key, answer, is_required)| Leaf { is_form, key, answer, is_required })
}

fn tree() -> impl Strategy<Value = Tree> {
    let round = prop::collection::vec(leaf(), 2..3).prop_map(|mut leaves| {
        // Most rounds are to be valid ones.
        for (at, leaf) in leaves.iter_mut().enumerate() {
            leaf.key = (leaf.key * leaf.answer + at) % 2;
            leaf.is_required |= leaf.is_form;
        }
        Tree::RoundOf(leaves)
    });
    let small = prop_oneof![8 => leaf().prop_map(Tree::Leaf), 2 => round, 1 => Just(Tree::Nothing)];
    small.prop_recursive(4, 24, 4, |part| {
        prop_oneof![
            3 => prop::collection::vec(part.clone(), 2..5).prop_map(Tree::Sequence),
            2 => prop::collection::vec(part.clone(), 2..4).prop_map(Tree::OneOf),
            1 => part.prop_map(|part| Tree::Optional(Box::new(part))),
        ]
    })
}

/// Rounds at random, and rounds that lead through the plan for as long as `steps` says which way.
fn rounds(tree: &Tree, steps: &[(usize, Round)]) -> Vec<Round> {
    let single: Vec<Round> = [(true, 0), (true, 1), (false, 0), (false, 1)].map(|question| vec![question]).into();
    let double = [(true, true), (true, false), (false, true), (false, false)].map(|(a, b)| vec![(b, 1), (a, 0)]);
    let all: Vec<Round> = single.into_iter().chain(double).collect();
    let (mut left, mut rounds) = (vec![tree.clone()], Vec::new());
    for (way, random) in steps {
        let fitting: Vec<_> =
            all.iter().filter(|round| left.iter().any(|tree| !tree.without(round).is_empty())).collect();
        let round = if *way == 0 || fitting.is_empty() { random.clone() } else { fitting[way % fitting.len()].clone() };
        left = left.iter().flat_map(|tree| tree.without(&round)).map(|(_, tree)| tree).collect();
        rounds.push(round);
    }
    rounds
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, ..ProptestConfig::default() })]

    #[test]
    fn a_plan_answers_and_ends_as_the_naive_matcher_says(
        tree in tree(),
        steps in prop::collection::vec((0..24_usize, prop::collection::vec((any::<bool>(), 0..2_usize), 0..3)), 0..9),
    ) {
        let rounds = rounds(&tree, &steps);
        prop_assert_eq!(follow(tree.plan().begin(), &rounds), tree.follow(&rounds));
    }
}

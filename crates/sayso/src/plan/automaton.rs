//! A plan as positions that can follow each other (Glushkov's construction): one a question or round, none passed twice.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use sayso_core::limits::{PLAN_DEPTH_MAX, PLAN_EXPECTATIONS_MAX};

use super::elicitation::Elicitation;
use super::error::Malformed;
use super::expect::Leaf;
use super::tree::{Node, Plan, answer_fingerprint};

/// One expectation, or those of one round.
#[derive(Debug, Clone)]
pub(super) struct Position {
    pub leaves: Vec<Leaf>,
}

impl Position {
    /// Whether this round, all of it, is what is expected here.
    pub fn takes(&self, round: &[Elicitation]) -> bool {
        round.len() == self.leaves.len() && self.leaves.iter().all(|leaf| round.iter().any(|came| leaf.takes(came)))
    }

    /// The same text for the same answers, in whatever order a round lists its keys.
    pub fn answers(&self) -> BTreeSet<(&str, String)> {
        self.leaves.iter().map(|leaf| (leaf.key(), answer_fingerprint(&leaf.answer))).collect()
    }

    pub fn described(&self) -> String {
        self.joined(Leaf::described)
    }

    pub fn described_with_answer(&self) -> String {
        self.joined(|leaf| format!("{} ({})", leaf.described(), leaf.answer_words()))
    }

    fn joined(&self, words: impl Fn(&Leaf) -> String) -> String {
        let names: Vec<_> = self.leaves.iter().map(words).collect();
        if names.len() > 1 { format!("a round of {}", names.join(" and ")) } else { names.concat() }
    }
}

/// Where one can go next, and whether the plan also goes on without it: it may come, or an optional part begins with it.
type Next = BTreeMap<usize, bool>;

/// The positions, and where one may begin, go on and end.
#[derive(Debug, Clone, Default)]
pub(super) struct Automaton {
    positions: Vec<Position>,
    follow: Vec<Next>,
    first: Next,
    last: BTreeSet<usize>,
    is_nullable: bool,
}

/// A position that may come next.
#[derive(Clone, Copy)]
pub(super) struct Candidate<'a> {
    pub at: usize,
    pub position: &'a Position,
    pub is_skippable: bool,
}

/// A part of a plan: where it can begin, where it can end, and whether it can be passed over.
#[derive(Default)]
struct Fragment {
    first: Next,
    last: BTreeSet<usize>,
    is_nullable: bool,
}

impl Automaton {
    pub fn of(plan: &Plan) -> Result<Self, Malformed> {
        let mut automaton = Self::default();
        let whole = automaton.part(plan, 0)?;
        (automaton.first, automaton.last, automaton.is_nullable) = (whole.first, whole.last, whole.is_nullable);
        Ok(automaton)
    }

    /// What may come after what has come: the positions of the last round, none at the beginning.
    pub fn next(&self, reached: Option<&BTreeSet<usize>>) -> Vec<Candidate<'_>> {
        let from: Vec<&Next> = match reached {
            None => vec![&self.first],
            Some(reached) => reached.iter().filter_map(|at| self.follow.get(*at)).collect(),
        };
        let mut merged = Next::new();
        for (at, is_skippable) in from.into_iter().flatten() {
            *merged.entry(*at).or_insert(true) &= is_skippable;
        }
        let candidate = |(at, is_skippable)| Some(Candidate { at, position: self.positions.get(at)?, is_skippable });
        merged.into_iter().filter_map(candidate).collect()
    }

    /// Whether the plan may end here.
    pub fn is_end(&self, reached: Option<&BTreeSet<usize>>) -> bool {
        reached.map_or(self.is_nullable, |reached| !reached.is_disjoint(&self.last))
    }

    fn part(&mut self, plan: &Plan, depth: usize) -> Result<Fragment, Malformed> {
        if depth > PLAN_DEPTH_MAX {
            return Err(Malformed::TooLarge(format!("{PLAN_DEPTH_MAX} levels")));
        }
        match &plan.0 {
            Node::Nothing => Ok(Fragment { is_nullable: true, ..Fragment::default() }),
            Node::Leaf(leaf) => self.position(vec![leaf.clone()]),
            Node::Optional(part) => {
                let part = self.part(part, depth + 1)?;
                let first = part.first.into_keys().map(|at| (at, true)).collect();
                Ok(Fragment { first, last: part.last, is_nullable: true })
            }
            Node::Sequence(parts) => {
                at_least_two("sequence", parts)?;
                let mut whole = Fragment { is_nullable: true, ..Fragment::default() };
                for part in parts {
                    let part = self.part(part, depth + 1)?;
                    whole = self.then(whole, part);
                }
                Ok(whole)
            }
            Node::OneOf(parts) => {
                check_alternatives(parts)?;
                let mut whole = Fragment::default();
                for part in parts {
                    let part = self.part(part, depth + 1)?;
                    whole.first.extend(part.first);
                    whole.last.extend(part.last);
                }
                Ok(whole)
            }
            Node::RoundOf(parts) => self.position(round_leaves(parts)?),
        }
    }

    fn position(&mut self, leaves: Vec<Leaf>) -> Result<Fragment, Malformed> {
        if self.positions.len() >= PLAN_EXPECTATIONS_MAX {
            return Err(Malformed::TooLarge(format!("{PLAN_EXPECTATIONS_MAX} expectations")));
        }
        let at = self.positions.len();
        let is_nullable = leaves.iter().any(|leaf| !leaf.is_required);
        self.positions.push(Position { leaves });
        self.follow.push(Next::new());
        Ok(Fragment { first: [(at, is_nullable)].into(), last: [at].into(), is_nullable })
    }

    /// One part after the other: wherever the first can end, the second can begin.
    fn then(&mut self, mut before: Fragment, after: Fragment) -> Fragment {
        for at in &before.last {
            if let Some(follow) = self.follow.get_mut(*at) {
                follow.extend(&after.first);
            }
        }
        if before.is_nullable {
            before.first.extend(&after.first);
        }
        let mut last = after.last;
        if after.is_nullable {
            last.extend(before.last);
        }
        Fragment { first: before.first, last, is_nullable: before.is_nullable && after.is_nullable }
    }
}

fn at_least_two(combinator: &'static str, parts: &[Plan]) -> Result<(), Malformed> {
    if parts.len() < 2 { Err(Malformed::TooFew { combinator, least: 2 }) } else { Ok(()) }
}

fn check_alternatives(parts: &[Plan]) -> Result<(), Malformed> {
    at_least_two("one_of", parts)?;
    if parts.iter().any(Plan::is_nullable) {
        return Err(Malformed::EmptyAlternative);
    }
    let mut seen = HashSet::new();
    match parts.iter().find(|part| !seen.insert(part.fingerprint())) {
        Some(again) => Err(Malformed::SameAlternatives(again.described())),
        None => Ok(()),
    }
}

fn round_leaves(parts: &[Plan]) -> Result<Vec<Leaf>, Malformed> {
    at_least_two("round_of", parts)?;
    let mut leaves: Vec<Leaf> = Vec::new();
    for part in parts {
        let Node::Leaf(leaf) = &part.0 else { return Err(Malformed::NotSingle) };
        if !leaf.is_required {
            return Err(Malformed::MaybeInRound);
        }
        if leaves.iter().any(|known| known.key() == leaf.key()) {
            return Err(Malformed::SameKeys(leaf.key().to_owned()));
        }
        leaves.push(leaf.clone());
    }
    Ok(leaves)
}

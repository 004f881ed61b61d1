//! Following a plan, a round at a time.

use std::collections::BTreeSet;

use sayso_core::error::{Error, FieldError};
use sayso_core::json::pointer_to;
use sayso_core::limits::ROUND_LIMIT_DEFAULT;
use sayso_core::response;
use sayso_core::wire::{Keyed, Response, responses_from_wire, responses_to_wire};

use super::automaton::{Automaton, Candidate, Position};
use super::elicitation::{Elicitation, named};
use super::error::PlanError;
use super::tree::Plan;

/// A plan that is being followed. The first thing that goes wrong is what the run ends with: nothing is answered after it.
#[derive(Debug, Clone)]
pub struct Run {
    automaton: Automaton,
    /// Where the last round may have been in the plan; none before the first.
    reached: Option<BTreeSet<usize>>,
    rounds: u32,
    round_limit: u32,
    failed: Option<PlanError>,
}

impl Run {
    pub(super) fn begin(plan: &Plan) -> Result<Self, PlanError> {
        let automaton = Automaton::of(plan)?;
        Ok(Self { automaton, reached: None, rounds: 0, round_limit: ROUND_LIMIT_DEFAULT, failed: None })
    }

    /// The same run with another limit of rounds.
    #[must_use]
    pub fn with_round_limit(self, round_limit: u32) -> Self {
        Self { round_limit, ..self }
    }

    /// What the plan answers to a round: every key's response, defaults filled in.
    pub fn answer(&mut self, round: &[Elicitation]) -> Result<Keyed<Response>, PlanError> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        let answered = self.next(round);
        match answered {
            Ok((reached, answers)) => {
                self.reached = Some(reached);
                self.rounds += 1;
                Ok(answers)
            }
            Err(error) => {
                self.failed = Some(error.clone());
                Err(error)
            }
        }
    }

    /// The operation has ended: says what was still expected, or what went wrong before.
    pub fn finish(&self) -> Result<(), PlanError> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        if self.automaton.is_end(self.reached.as_ref()) {
            return Ok(());
        }
        let next = self.automaton.next(self.reached.as_ref());
        let expected = described(next.into_iter().filter(|candidate| !candidate.is_skippable));
        Err(PlanError::Unfinished { expected })
    }

    fn next(&self, round: &[Elicitation]) -> Result<(BTreeSet<usize>, Keyed<Response>), PlanError> {
        if self.rounds >= self.round_limit {
            return Err(PlanError::RoundLimit(self.round_limit));
        }
        let next = self.automaton.next(self.reached.as_ref());
        let fitting: Vec<_> = next.iter().filter(|candidate| candidate.position.takes(round)).collect();
        let Some(first) = fitting.first().map(|candidate| candidate.position) else {
            return Err(PlanError::Unexpected { came: named(round), expected: described(next) });
        };
        if let Some(other) = fitting.iter().find(|other| other.position.answers() != first.answers()) {
            let (first, second) = (first.described_with_answer(), other.position.described_with_answer());
            return Err(PlanError::Ambiguous { came: named(round), first, second });
        }
        let answers = checked(round, first)?;
        Ok((fitting.iter().map(|candidate| candidate.at).collect(), answers))
    }
}

fn described<'a>(candidates: impl IntoIterator<Item = Candidate<'a>>) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for Candidate { position, is_skippable, .. } in candidates {
        let described = format!("{}{}", if is_skippable { "perhaps " } else { "" }, position.described());
        if !words.contains(&described) {
            words.push(described);
        }
    }
    words
}

/// The answers of a position, checked as those of a person are.
fn checked(round: &[Elicitation], position: &Position) -> Result<Keyed<Response>, PlanError> {
    let requests = Keyed(round.iter().map(|came| (came.key.clone(), came.request.clone())).collect());
    let requests =
        requests.check().map_err(|error| PlanError::Unaskable { came: named(round), detail: error.to_string() })?;
    let submitted = position.leaves.iter().map(|leaf| (leaf.key().to_owned(), leaf.answer.clone())).collect();
    match response::check(&requests, &responses_from_wire(&Keyed(submitted))) {
        Ok(checked) => Ok(responses_to_wire(&checked.effective)),
        Err(error) => Err(PlanError::Unfit { came: named(round), fields: fields(round, error) }),
    }
}

/// The faults, by pointer into the one answer there is; into the map of them where there are several.
fn fields(round: &[Elicitation], error: Error) -> Vec<FieldError> {
    let Error::Validation { fields, .. } = error else {
        return vec![FieldError { pointer: "the answer".to_owned(), message: error.to_string() }];
    };
    let [only] = round else { return fields };
    let prefix = pointer_to("/responses", &only.key);
    let inside = |field: FieldError| FieldError {
        pointer: field.pointer.strip_prefix(&prefix).map(str::to_owned).unwrap_or(field.pointer),
        message: field.message,
    };
    fields.into_iter().map(inside).collect()
}

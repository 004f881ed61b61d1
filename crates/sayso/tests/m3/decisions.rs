//! What is done where the recorded reference is not followed, by rule. A step that is in no row is followed to the letter.

use sayso::ErrorCode::{
    self, ManagedInputConflict as Conflict, ManagedInputInvalid as Invalid, ManagedInputState as State,
};

use super::vectors::{Sequence, Step};
use super::world::Mode;

/// What is expected of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Does {
    /// What was recorded, in outcome, state and result.
    AsRecorded,
    /// What was recorded, but for these members of the state.
    But(&'static str, &'static [&'static str]),
    /// Something else: this refusal or none. Unless it ends the sequence the state is as recorded.
    Otherwise { rule: &'static str, code: Option<ErrorCode>, ends: bool },
    /// It cannot be said here, so it is not carried out.
    Unsayable(&'static str),
}

/// Answers carry no token: whoever holds the round has no say in them (`docs/rounds.md`).
pub const ANSWERS_CARRY_NO_TOKEN: &str = "answers carry no token";
/// `fail_recovery` has its own words.
pub const RECOVERY_HAS_ITS_WORDS: &str = "recovery has its own words";
/// A lease is 30 s, and ends with its owner; its length is not a caller's.
pub const LEASES_HAVE_ONE_LENGTH: &str = "leases have one length";
/// One row for each owner: with a new round, and with a renewal, all its leases run on.
pub const LEASES_ARE_THEIR_OWNERS: &str = "leases are their owners'";
/// Nobody holds a resumable round before it is answered.
pub const NOBODY_HOLDS_A_QUESTION: &str = "nobody holds a resumable question";
/// A round that has ended says so to whoever asks, holder or not.
pub const AN_END_COMES_FIRST: &str = "an end comes before the holder";
/// Only an answer can be delivered, so only what was answered is claimed.
pub const QUESTIONS_ARE_NOT_CLAIMED: &str = "questions are not claimed";
/// Rounds of an operation are numbered in the order in which they are asked.
pub const ROUNDS_ARE_NUMBERED_IN_ORDER: &str = "rounds are numbered in order";
/// What became of a delivery is asked where one was started, and not elsewhere.
pub const EVIDENCE_IS_FOR_DELIVERIES: &str = "evidence is for deliveries";
/// A claimer may say which token it believes is current. Saying none is no belief, so it cannot be a wrong one.
pub const NO_BELIEF_IS_NOT_WRONG: &str = "no belief is not a wrong one";
/// The clock is UTC by type, a timeout is not negative by type.
pub const BY_TYPE: &str = "impossible by type";

/// How the rounds of a sequence are delivered: live, unless it hands an answer to another worker.
pub fn mode(sequence: &Sequence) -> Mode {
    let hands_over = sequence.steps.iter().any(|step| {
        let status = step.state_after.as_ref().and_then(|state| state["status"].as_str());
        let is_answered = matches!(status, Some("response_validated" | "delivery_started" | "delivered"));
        step.op == "claim_round" && is_answered
    });
    if hands_over { Mode::Resumable } else { Mode::Live }
}

fn status(step: &Step) -> &str {
    step.state_after.as_ref().and_then(|state| state["status"].as_str()).unwrap_or_default()
}

fn failure_code(step: &Step) -> Option<String> {
    step.state_after.as_ref()?["failure_code"].as_str().map(str::to_owned)
}

pub fn decide(sequence: &Sequence, step: &Step, mode: Mode) -> Does {
    match step.rule.as_deref() {
        Some(rule) if step.follow != "yes" => by_rule(rule, step),
        _ => by_design(sequence, step, mode),
    }
}

/// The steps that the recording itself marks as weaker, or as one of two good ways.
fn by_rule(rule: &str, step: &Step) -> Does {
    let otherwise = |rule, code, ends| Does::Otherwise { rule, code, ends };
    match (rule, step.op.as_str()) {
        // A live round is answered only while its holder lives: the agent is not connected. A renewal may be late.
        ("M3-01", _) => Does::AsRecorded,
        // The clock gates, the token fences: a late holder renews first, and may.
        ("M3-02", "renew") => otherwise("M3-02", None, true),
        ("M3-02", _) => Does::AsRecorded,
        // A repeat finds what it did; a round that has ended says so.
        // Another reason than the one it failed with is no repeat.
        ("M3-03", "fail") if failure_code(step) != step.text("code") => Does::AsRecorded,
        ("M3-03", "fail") => otherwise("M3-03", None, false),
        ("M3-03", _) => otherwise("M3-03", Some(State), false),
        ("M3-04", "submit_responses") => otherwise("M3-04", Some(State), true),
        // It is pending until somebody answers or sweeps.
        ("M3-04", _) => Does::AsRecorded,
        ("M3-06", _) => otherwise("M3-06", Some(Conflict), false),
        ("M3-08", _) => otherwise("M3-08", None, true),
        ("M3-09", _) => Does::Unsayable(LEASES_HAVE_ONE_LENGTH),
        ("M3-10", "create_round") => otherwise("M3-10", Some(Invalid), true),
        ("M3-12" | "M3-13", _) => otherwise("M3-12 and 13", Some(Invalid), true),
        // What cannot be redacted is redacted whole; what is no text is refused.
        ("M3-14", _) if step.should.as_ref().is_some_and(|should| should["outcome"] == "ok") => {
            otherwise("M3-14", None, true)
        }
        ("M3-14" | "M3-15", _) => otherwise("M3-14 and 15", Some(Invalid), false),
        ("M3-17", _) => otherwise("M3-17", None, false),
        ("M3-18", _) => otherwise("M3-18", Some(Invalid), false),
        ("M3-21", _) => Does::AsRecorded,
        // Its moments are the clock's; that it changed is never taken back.
        ("M3-22", _) => Does::But("M3-22", &["updated_ms"]),
        ("M3-24", _) => otherwise("M3-24", Some(Conflict), false),
        // An answer that was accepted and is lost with its worker is told as lost.
        ("M3-25", _) => Does::AsRecorded,
        ("M3-29", _) if step.should.is_some() && step.follow == "no" => otherwise("M3-29", Some(Invalid), false),
        ("M3-29", _) => Does::AsRecorded,
        ("M3-30", _) => Does::Unsayable(BY_TYPE),
        _ => panic!("{rule} has no row"),
    }
}

/// The steps that this store's own design decides otherwise.
fn by_design(sequence: &Sequence, step: &Step, mode: Mode) -> Does {
    let kind = step.error_kind.as_deref().unwrap_or_default();
    let otherwise = |rule, code, ends| Does::Otherwise { rule, code, ends };
    let is_finished = matches!(status(step), "resolved" | "failed");
    let is_foreign = matches!(kind, "not_owner_or_token" | "token_mismatch");
    match step.op.as_str() {
        "submit_responses" if kind == "not_owner_or_token" => Does::Unsayable(ANSWERS_CARRY_NO_TOKEN),
        "submit_responses" if kind == "empty_text" && step.text("key").as_deref() != Some("") => {
            Does::Unsayable(ANSWERS_CARRY_NO_TOKEN)
        }
        "fail_recovery" if step.text("message").as_deref() == Some("") => Does::Unsayable(RECOVERY_HAS_ITS_WORDS),
        "clock_turns_naive" => Does::Unsayable(BY_TYPE),
        "claim_round" | "renew" if kind == "bad_lease_seconds" => Does::Unsayable(LEASES_HAVE_ONE_LENGTH),
        "create_round" if step.raw("lease_s").as_deref() == Some("600") => {
            Does::But(LEASES_HAVE_ONE_LENGTH, &["lease_expires_ms"])
        }
        "fail" if is_finished && is_foreign => match status(step) {
            "resolved" => otherwise(AN_END_COMES_FIRST, Some(State), false),
            _ if failure_code(step) == step.text("code") => otherwise(AN_END_COMES_FIRST, None, false),
            _ => Does::AsRecorded,
        },
        "fail_recovery" if is_finished && is_foreign => {
            let is_same = failure_code(step).as_deref() == Some("recovery_unavailable");
            let code = if is_same { None } else { Some(State) };
            otherwise(AN_END_COMES_FIRST, code, false)
        }
        "renew" | "start_delivery" | "mark_delivered" | "resolve" if is_finished && is_foreign => {
            otherwise(AN_END_COMES_FIRST, Some(State), false)
        }
        "claim_round" if status(step) == "pending" && kind != "empty_text" => {
            otherwise(QUESTIONS_ARE_NOT_CLAIMED, Some(State), step.outcome == "ok")
        }
        "claim_round" if kind == "token_mismatch" && step.raw("expected").is_none() => {
            Does::Unsayable(NO_BELIEF_IS_NOT_WRONG)
        }
        "claim_round" if status(step) == "delivered" && matches!(kind, "evidence_missing" | "evidence_mismatch") => {
            otherwise(EVIDENCE_IS_FOR_DELIVERIES, None, true)
        }
        "create_round" if mode == Mode::Resumable && kind == "exists_with_other_data" => {
            otherwise(NOBODY_HOLDS_A_QUESTION, None, false)
        }
        "claim_round" if step.text("evidence").as_deref() == Some("maybe") => otherwise("M3-18", Some(Invalid), false),
        "create_round"
            if sequence.name == "rounds/gap_and_order" && step.raw("round_index").as_deref() != Some("2") =>
        {
            otherwise(ROUNDS_ARE_NUMBERED_IN_ORDER, Some(Conflict), true)
        }
        _ if sequence.name == "renew/moves_only_expiry" => Does::But(LEASES_HAVE_ONE_LENGTH, &["lease_expires_ms"]),
        _ if ["rounds/second_while_first_pending", "rounds/next_after_failed", "life/three_rounds"]
            .contains(&sequence.name.as_str()) =>
        {
            Does::But(LEASES_ARE_THEIR_OWNERS, &["lease_expires_ms", "updated_ms"])
        }
        _ if mode == Mode::Resumable && status(step) == "pending" => {
            Does::But(NOBODY_HOLDS_A_QUESTION, &["owner", "token", "lease_expires_ms"])
        }
        _ => Does::AsRecorded,
    }
}

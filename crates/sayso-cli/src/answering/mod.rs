//! From what was typed on the command line to a response map. Nothing is judged here: what does not fit is sent as it
//! was typed, and the one check that every surface uses says what is wrong and where.

mod flags;
mod nested;
mod source;

pub use flags::{Given, responses_of_flags};
pub use source::{read_json, read_object};

use sayso::{Answer, Digest, Principal, RoundId};
use sayso_core::request::Requests;
use sayso_core::response::check;
use sayso_core::wire::responses_from_wire;

/// The key that one answer of one person to one round always has, so that repeating a command repeats nothing.
pub fn idempotency_key(round: RoundId, caller: &Principal, requests: &Requests, answer: &Answer) -> String {
    let canonical = match check(requests, &responses_from_wire(&answer.responses)) {
        Ok(checked) => checked.canonical(),
        // It will be refused; any key does.
        Err(_) => String::new(),
    };
    format!("cli:{}", Digest::of_text(&format!("{round}\n{caller}\n{canonical}")))
}

//! What core costs, for counting instructions: `open` makes a round's stored requests ready for checking, `validate`
//! checks an answer against them, `cycle` decides the five commands of a round from its creation to its end. Without
//! valgrind each says how long it took. docs/performance.md has the command that counts.
#![allow(missing_docs, clippy::print_stdout, clippy::expect_used, reason = "a bench prints its results")]

#[path = "../tests/memory/mod.rs"]
mod memory;

use std::hint::black_box;
use std::time::Instant;

use memory::{Memory, START, fence, json, new_round, round_id, submission, submit};
use sayso_core::command::{Applied, Command, apply};
use sayso_core::principal::Principal;
use sayso_core::request::Requests;
use sayso_core::response::{CheckedResponses, Responses, check};
use sayso_core::wire::{Keyed, Request, Response, responses_from_wire};

const TIMES: u32 = 1_000;
const REQUESTS: &str = r#"{"address":{"kind":"form","message":"Where to?","schema":
    {"type":"object","properties":{"street":{"type":"string"}},"required":["street"]}}}"#;
const RESPONSES: &str = r#"{"address":{"action":"accept","content":{"street":"1 Main Street"}}}"#;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let parts: [(&str, fn()); 3] = [("open", open_all), ("validate", validate_all), ("cycle", cycle_all)];
    for (name, run) in parts {
        if wanted.is_empty() || wanted.iter().any(|word| word == name) {
            let start = Instant::now();
            run();
            println!("{name:10} {TIMES} times, {:.2} µs each", start.elapsed().as_secs_f64() * 1e6 / f64::from(TIMES));
        }
    }
}

// The counted functions are never inlined, so that their names are there to be found.

#[inline(never)]
fn counted_open(text: &str) -> Requests {
    let wire: Keyed<Request> = serde_json::from_str(text).expect("requests");
    wire.check().expect("askable")
}

#[inline(never)]
fn counted_validate(requests: &Requests, responses: &Responses) -> CheckedResponses {
    check(requests, responses).expect("fits")
}

#[inline(never)]
fn counted_apply(memory: &Memory, command: &Command) -> Applied {
    let Ok(applied) = apply(memory, command, START);
    applied
}

fn open_all() {
    for _ in 0..TIMES {
        black_box(counted_open(black_box(REQUESTS)));
    }
}

fn validate_all() {
    let requests = ready(REQUESTS);
    let wire: Keyed<Response> = serde_json::from_str(RESPONSES).expect("responses");
    let responses = responses_from_wire(&wire);
    for _ in 0..TIMES {
        black_box(counted_validate(black_box(&requests), black_box(&responses)));
    }
}

fn ready(text: &str) -> Requests {
    let wire: Keyed<Request> = serde_json::from_str(text).expect("requests");
    wire.check().expect("askable")
}

fn cycle_all() {
    let person = Principal::person("local:ada");
    for number in 0..u128::from(TIMES) {
        // A store of its own for each: a larger map would take longer to search, and is not what is counted.
        let mut memory = Memory::default();
        let (round, fence) = (round_id(number), fence("worker", number));
        let mut asked = new_round(number, Some(fence.clone()));
        asked.requests = json(REQUESTS);
        let commands = [
            Command::CreateRound(Box::new(asked)),
            submit(round, submission("answer-1", 1, &person)),
            Command::StartDelivery { round, fence: fence.clone() },
            Command::MarkDelivered { round, fence: fence.clone() },
            Command::Resolve { round, fence },
        ];
        for command in &commands {
            let applied = counted_apply(&memory, command);
            applied.reply.expect("allowed");
            for write in applied.writes {
                memory.write(write);
            }
        }
    }
}

//! The gate: what binds an approval, who gives one, what a grant does and never does, and how silence ends.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may panic"
)]

#[path = "../../../sayso-core/tests/schemas/mod.rs"]
mod schemas;
#[path = "../support/mod.rs"]
mod support;

mod allowing;
mod audit;
mod binding;
mod engine;
mod granting;
mod identity;
mod reviewing;
mod time;
mod turns;
mod typed_input;

use std::path::PathBuf;

use sayso::gate::{Allowed, CALL_KEY, Call, Denied, Gate, Gates, Ruling};
use sayso::policy::{PolicyFiles, ToolName};
use sayso::{Answer, Desk, Json, People, Principal, Response, Sayso, wire};
use support::{Place, agent, json};

/// Asks about everything of the bank's, denies one thing.
const POLICY: &str = r#"
[[rule]]
id = "never"
deny = ["bank:close"]
reason = "Accounts stay open."
[[rule]]
id = "pay"
ask = ["bank:*", "shell:*"]
"#;

/// A gate, its rounds and its policy's file.
struct Scene {
    place: Place,
    sayso: Sayso,
    file: PathBuf,
    gates: Gates,
}

impl Scene {
    async fn new() -> Self {
        Self::with(POLICY).await
    }

    async fn with(policy: &str) -> Self {
        let place = Place::new();
        let file = place.file().with_file_name("policy.toml");
        std::fs::write(&file, policy).unwrap();
        let sayso = place.open().await;
        let gates = Gates::new(&sayso, PolicyFiles::open([&file]));
        Self { place, sayso, file, gates }
    }

    fn gate(&self) -> Gate {
        self.gates.of(agent())
    }

    fn write_policy(&self, policy: &str) {
        std::fs::write(&self.file, policy).unwrap();
    }

    /// The round that a call is asked in.
    async fn asked(&self, call: &Call) -> wire::Round {
        asked(self.gate().judge(call).await.expect("is judged"))
    }

    async fn answer(&self, round: &wire::Round, response: Response) {
        let answer = Answer { digest: Some(round.digest), ..Answer::one(CALL_KEY, response) };
        self.sayso.people().answer(round.round_id, answer, "key").await.expect("accepted");
    }

    async fn approve(&self, round: &wire::Round) {
        self.answer(round, Response::consent()).await;
    }

    async fn judge(&self, call: &Call) -> Ruling {
        self.gate().judge(call).await.expect("is judged")
    }

    async fn row(&self, round: &wire::Round) -> wire::Round {
        self.sayso.desk(agent()).wait(round.round_id, 0, std::time::Duration::ZERO).await.expect("is read")
    }

    async fn events(&self) -> Vec<&'static str> {
        let events = self.sayso.events_after(self.sayso.person(), 0).await.expect("events");
        events.iter().map(|event| event.event.body.name()).collect()
    }

    async fn uses(&self) -> usize {
        self.events().await.iter().filter(|name| **name == "grant_used").count()
    }
}

fn tool(name: &str) -> ToolName {
    ToolName::parse(name).unwrap()
}

fn transfer(amount: &str) -> Call {
    Call::new("s", tool("bank:transfer"), json(&format!(r#"{{"to":"grace","amount":{amount}}}"#)))
}

fn asked(ruling: Ruling) -> wire::Round {
    match ruling {
        Ruling::Ask(round) => *round,
        other => panic!("not asked: {other:?}"),
    }
}

fn allowed(ruling: Ruling) -> Allowed {
    match ruling {
        Ruling::Allow(allowed) => allowed,
        other => panic!("not allowed: {other:?}"),
    }
}

fn denied(ruling: Ruling) -> Denied {
    match ruling {
        Ruling::Deny(denied) => denied,
        other => panic!("not denied: {other:?}"),
    }
}

fn edited(arguments: &str) -> Response {
    Response::accept(json(&format!(r#"{{"arguments":{arguments}}}"#)))
}

fn shown(round: &wire::Round) -> &Json {
    round.requests.get(CALL_KEY).unwrap().arguments.as_ref().unwrap()
}

fn grace() -> Principal {
    Principal::person("grace")
}

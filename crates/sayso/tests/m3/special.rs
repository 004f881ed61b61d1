//! The recorded steps that are no operation of a store: several threads at once, opening, the file itself.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::sync::Arc;

use sayso::storage::{
    ElicitationRequest, ElicitationResponse, ManagedInputRecord, ManagedInputStore, NewLease, NewManagedInput, Options,
    PendingElicitationRound, SqliteManagedInputStore,
};
use sayso::wire::{Keyed, LeaseToken};
use sayso::{ClaimOf, Error, ErrorCode, Fence, FenceToken, Json, OperationKind};
use tokio::task::JoinSet;

use super::decisions::Does;
use super::vectors::Step;
use super::world::{START, World, execution_id, round_id};

pub fn is_special(step: &Step) -> bool {
    ["race", "open_store", "file_mode"].contains(&step.op.as_str())
}

/// What is wrong with such a step.
pub async fn wrong(world: &mut World, step: &Step, does: Does) -> Vec<String> {
    if matches!(does, Does::Unsayable(_)) {
        return Vec::new();
    }
    match step.op.as_str() {
        "race" => race(world, step).await,
        "open_store" => open_store(world, step, does).await,
        _ => file_mode(world, step),
    }
}

fn file_mode(world: &World, step: &Step) -> Vec<String> {
    // A database keeps its files itself.
    let Some(folder) = world.folder() else { return Vec::new() };
    let mode = folder.join("executions.sqlite").metadata().expect("a file").permissions().mode() & 0o777;
    let recorded = step.result.as_ref().and_then(|result| result.as_str()).unwrap_or_default();
    if format!("0o{mode:o}") == recorded { Vec::new() } else { vec![format!("the mode is {mode:o}")] }
}

async fn open_store(world: &World, step: &Step, does: Does) -> Vec<String> {
    let Some(folder) = world.folder() else { return Vec::new() };
    let path = match step.text("path").unwrap_or_default().as_str() {
        "symlink to a database" => {
            symlink(folder.join("executions.sqlite"), folder.join("link")).expect("a link");
            folder.join("link")
        }
        "symlink to nothing" => {
            symlink(folder.join("nothing"), folder.join("link")).expect("a link");
            folder.join("link")
        }
        "inside a symlinked folder" => {
            std::fs::create_dir(folder.join("inside")).expect("a folder");
            symlink(folder.join("inside"), folder.join("linked")).expect("a link");
            folder.join("linked/executions.sqlite")
        }
        "directory" => {
            std::fs::create_dir(folder.join("directory")).expect("a folder");
            folder.join("directory")
        }
        other => panic!("{other}"),
    };
    let code = SqliteManagedInputStore::open(path, Options::default()).await.err().map(|error| error.code());
    let expected = match does {
        Does::Otherwise { code, .. } => code,
        _ => step.recorded(),
    };
    let mut wrong = Vec::new();
    if code != expected {
        wrong.push(format!("it gave {code:?}, expected was {expected:?}"));
    }
    if folder.join("nothing").exists() {
        wrong.push("a file was created where the link points".to_owned());
    }
    wrong
}

fn answer(city: &str) -> Keyed<ElicitationResponse> {
    let content = Json::from_value(&serde_json::json!({ "city": city }));
    Keyed(vec![("city".to_owned(), ElicitationResponse::accept(content))])
}

fn new_round(n: usize) -> NewManagedInput {
    let schema = Json::parse(r#"{"type":"object","properties":{"city":{"type":"string"}}}"#).expect("JSON");
    let pending = PendingElicitationRound {
        round_id: round_id("exec-1", &format!("round-{n}")),
        execution_id: execution_id("exec-1"),
        logical_operation_id: "op-1".to_owned(),
        server: "shipping".to_owned(),
        operation_kind: OperationKind::Tool,
        operation_name: "book".to_owned(),
        requests: Keyed(vec![("city".to_owned(), ElicitationRequest::form("city", "Where to?", schema))]),
        created_at: START,
        request_state: None,
        deadline: None,
    };
    let token = Some(LeaseToken(FenceToken(n as u128)));
    let lease = Some(NewLease { owner_id: format!("owner-{n}"), lease_token: token });
    NewManagedInput { lease, ..NewManagedInput::first(pending) }
}

/// Eight at once.
async fn race(world: &World, step: &Step) -> Vec<String> {
    let what = step.text("what").expect("what");
    let round = round_id("exec-1", "round-1");
    let holder = match world.store.get_round(round).await.expect("is read").and_then(|record| record.lease) {
        Some(lease) => lease.fence(),
        None => Fence { owner: "owner-a".to_owned(), token: FenceToken(0) },
    };
    let mut racing: JoinSet<Result<ManagedInputRecord, Error>> = JoinSet::new();
    for n in 0..8_usize {
        let (store, what, holder): (Arc<dyn ManagedInputStore>, _, _) =
            (world.store.clone(), what.clone(), holder.clone());
        racing.spawn(async move {
            match what.as_str() {
                "submit_different" => {
                    store.submit_responses(round, answer(&format!("city {n}")), &format!("key-{n}"), None).await
                }
                "submit_same" => store.submit_responses(round, answer("Pune"), "key-1", None).await,
                "create_same_index" => store.create_round(new_round(n + 1)).await,
                "start" => store.start_delivery(round, holder).await,
                _ if n % 2 == 0 => store.claim_round(round, &format!("owner-{n}"), ClaimOf::default()).await,
                _ => store.fail_recovery(round, holder.token).await,
            }
        });
    }
    let outcomes: Vec<_> = racing.join_all().await;
    let won = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    let conflicts = outcomes.iter().filter(|outcome| has_code(outcome, ErrorCode::ManagedInputConflict)).count();
    let expected = match what.as_str() {
        "submit_different" | "create_same_index" => (1, 7),
        "submit_same" | "start" => (8, 0),
        // The claims come to nothing whoever is first, since nobody has answered; the recovery is repeated.
        _ => (4, 0),
    };
    if (won, conflicts) == expected { Vec::new() } else { vec![format!("{won} won and {conflicts} met a conflict")] }
}

fn has_code(outcome: &Result<ManagedInputRecord, Error>, code: ErrorCode) -> bool {
    outcome.as_ref().err().map(Error::code) == Some(code)
}

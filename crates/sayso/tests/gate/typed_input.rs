//! A person's values reach a call as its schema says, on the way that every approved call takes, and nothing else does.

use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;
use sayso::gate::Call;
use sayso::{Json, Response};
use serde_json::{Value, json};

use crate::schemas::{Case, cases, objects};
use crate::{Scene, allowed, shown, tool};

/// Each case is three transactions, with the disk.
const CASES: u32 = 64;

#[test]
fn no_call_runs_with_the_agents_value_of_a_declared_key_or_the_persons_of_another() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let scene = runtime.block_on(Scene::new());
    let sessions = AtomicU64::new(0);
    let edits = prop::option::of(objects());
    proptest!(ProptestConfig::with_cases(CASES), |(case in cases(), edit in edits)| {
        let session = sessions.fetch_add(1, Ordering::Relaxed);
        let edit = edit.map(|edit| edit.into_iter().collect());
        let ran = runtime.block_on(runs(&scene, &session.to_string(), &case, edit.as_ref().map(|edit| json!(edit))));
        let case = Case { model: edit.unwrap_or(case.model), ..case };
        prop_assert_eq!(ran, case.runs_with());
    });
}

/// What a call runs with after a person gave input, and perhaps edited its arguments.
async fn runs(scene: &Scene, session: &str, case: &Case, edit: Option<Value>) -> Value {
    let of = |members: &serde_json::Map<_, _>| Json::from_value(&Value::Object(members.clone()));
    let call = Call {
        input: Some(Json::from_value(&case.schema)),
        arguments_schema: Some(Json::from_value(&json!({"type": "object"}))),
        ..Call::new(session, tool("bank:transfer"), of(&case.model))
    };
    let round = scene.asked(&call).await;
    assert_eq!(shown(&round).canonical(), call.arguments.canonical(), "it is shown as the agent proposed it");
    let mut answer = json!({"input": case.person});
    if let Some(edit) = edit {
        answer["arguments"] = edit;
    }
    scene.answer(&round, Response::accept(Json::from_value(&answer))).await;
    let ran = allowed(scene.judge(&call).await);
    assert!(ran.is_changed);
    ran.arguments.value()
}

//! The API as an OpenAPI 3.1 document: generated from the wire's own types and one table of operations, served, and
//! checked in as `docs/openapi.json`.

mod operation;
mod operations;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use axum::http::header;
use axum::response::{IntoResponse, Response};
use sayso::wire::{Problem, StoredEvent};
use sayso_core::error::ErrorCode;
use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::routes::Routes;
use operation::{Body, Key, Operation, Who};
use operations::OPERATIONS;

static DOCUMENT: LazyLock<String> = LazyLock::new(|| format!("{:#}\n", document()));

/// The document as it is served and checked in: indented, with a line end.
pub fn openapi() -> &'static str {
    &DOCUMENT
}

pub(crate) fn routes() -> Routes {
    Routes::new().get("/openapi.json", serve)
}

async fn serve() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], openapi()).into_response()
}

/// What comes in is described as it is read, what goes out as it is written; a type that does both is the same in both.
struct Generators {
    takes: SchemaGenerator,
    gives: SchemaGenerator,
}

impl Generators {
    fn new() -> Self {
        let settings = || {
            SchemaSettings::draft2020_12().with(|settings| {
                settings.definitions_path = "/components/schemas".into();
                settings.meta_schema = None;
            })
        };
        Self {
            takes: settings().for_deserialize().into_generator(),
            gives: settings().for_serialize().into_generator(),
        }
    }

    fn definitions(mut self) -> Map<String, Value> {
        let mut all: BTreeMap<String, Value> = self.gives.take_definitions(true).into_iter().collect();
        all.extend(self.takes.take_definitions(true));
        all.into_iter().collect()
    }
}

fn document() -> Value {
    let mut generators = Generators::new();
    let mut paths: Map<String, Value> = Map::new();
    for operation in OPERATIONS {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        if let Some(methods) = path.as_object_mut() {
            methods.insert(operation.method.to_owned(), described(operation, &mut generators));
        }
    }
    // Named in words only: the frames of the event stream.
    generators.gives.subschema_for::<StoredEvent>();
    let token = json!({"type": "http", "scheme": "bearer", "description": "A token of `sayso token new`."});
    let session = json!({"type": "apiKey", "in": "cookie", "name": "sayso_session"});
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Sayso",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "Durable human input for AI agents.",
            "license": {"name": "MIT OR Apache-2.0", "identifier": env!("CARGO_PKG_LICENSE")},
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}, {"session": []}],
        "paths": paths,
        "components": {
            "schemas": generators.definitions(),
            "securitySchemes": {"token": token, "session": session},
        },
    })
}

fn described(operation: &Operation, generators: &mut Generators) -> Value {
    let mut members = Map::new();
    members.insert("operationId".to_owned(), operation.id.into());
    members.insert("description".to_owned(), format!("{} {}", operation.about, operation.who.words()).into());
    match operation.who {
        Who::Anyone => drop(members.insert("security".to_owned(), json!([]))),
        Who::Browser => drop(members.insert("security".to_owned(), json!([{"session": []}]))),
        _ => {}
    }
    let parameters = parameters(operation, &mut generators.takes);
    if !parameters.is_empty() {
        members.insert("parameters".to_owned(), parameters.into());
    }
    if let Some(takes) = operation.takes {
        let content = json!({"application/json": {"schema": takes(&mut generators.takes)}});
        members.insert("requestBody".to_owned(), json!({"required": true, "content": content}));
    }
    members.insert("responses".to_owned(), responses(operation, &mut generators.gives).into());
    members.into()
}

fn parameters(operation: &Operation, generator: &mut SchemaGenerator) -> Vec<Value> {
    let mut all = Vec::new();
    for name in operation.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')) {
        all.push(
            json!({"name": name, "in": "path", "required": true, "schema": path_schema(operation, name, generator)}),
        );
    }
    for query in operation.query {
        let schema = (query.shape)(generator);
        all.push(json!({"name": query.name, "in": "query", "description": query.about, "schema": schema}));
    }
    if operation.key != Key::No {
        let required = operation.key == Key::Required;
        let schema = json!({"type": "string", "minLength": 1, "maxLength": sayso_core::limits::NAME_BYTES_MAX});
        let about = "A repeat under the same key gives the same result and changes nothing.";
        all.push(json!({"name": "Idempotency-Key", "in": "header", "required": required, "description": about, "schema": schema}));
    }
    if operation.last_event_id {
        let about = "The number of the last event that was seen.";
        all.push(json!({"name": "Last-Event-ID", "in": "header", "description": about, "schema": {"type": "integer"}}));
    }
    all
}

fn path_schema(operation: &Operation, name: &str, generator: &mut SchemaGenerator) -> Schema {
    let is_under = |stem: &str| operation.path.contains(stem);
    match name {
        "id" if is_under("rounds/") => operation::of::<sayso::RoundId>(generator),
        "id" if is_under("executions/") => operation::of::<sayso::ExecutionId>(generator),
        "id" if is_under("grants/") => operation::of::<sayso::GrantId>(generator),
        "id" if is_under("tokens/") => operation::of::<sayso::TokenId>(generator),
        _ => operation::of::<String>(generator),
    }
}

fn responses(operation: &Operation, generator: &mut SchemaGenerator) -> Map<String, Value> {
    let mut all = Map::new();
    let content = match operation.gives {
        Body::Nothing => None,
        Body::Json(shape) => Some(json!({"application/json": {"schema": shape(generator)}})),
        Body::Either(one, other) => {
            let schema = json!({"oneOf": [one(generator), other(generator)]});
            Some(json!({"application/json": {"schema": schema}}))
        }
        Body::Text(media_type) => Some(json!({media_type: {"schema": {"type": "string"}}})),
    };
    let mut done = json!({"description": "Done."});
    if let (Some(members), Some(content)) = (done.as_object_mut(), content) {
        members.insert("content".to_owned(), content);
    }
    all.insert(operation.status.to_string(), done);
    for (status, words) in problems(operation) {
        let response = match operation.who {
            Who::Browser => json!({"description": words, "content": {"text/html": {"schema": {"type": "string"}}}}),
            _ => {
                let schema = generator.subschema_for::<Problem>();
                json!({"description": words, "content": {"application/problem+json": {"schema": schema}}})
            }
        };
        all.insert(status.to_string(), response);
    }
    all
}

/// The problems of an operation by status: its own, and those that come with its credential, its body and its ids.
fn problems(operation: &Operation) -> BTreeMap<u16, String> {
    let mut codes = operation.problems.to_vec();
    // A host name that is not served here, or another site's page.
    codes.push(ErrorCode::Forbidden);
    if operation.who != Who::Anyone {
        codes.extend([ErrorCode::Unauthenticated, ErrorCode::Unavailable, ErrorCode::CorruptSuspendedState]);
    }
    if operation.id == "readyz" {
        codes.push(ErrorCode::Unavailable);
    }
    if operation.path.contains("{id}") {
        codes.extend([ErrorCode::NotFound, ErrorCode::ManagedInputInvalid]);
    }
    if operation.path.contains("{owner}") || operation.path.contains("{session}") {
        codes.push(ErrorCode::ManagedInputInvalid);
    }
    if operation.takes.is_some() {
        codes.extend([ErrorCode::ManagedInputInvalid, ErrorCode::LimitExceeded]);
    }
    if !operation.query.is_empty() || operation.key != Key::No || operation.last_event_id {
        codes.push(ErrorCode::ManagedInputInvalid);
    }
    let mut by_status: BTreeMap<u16, String> = BTreeMap::new();
    for code in ErrorCode::ALL.iter().filter(|code| codes.contains(code)) {
        let words = by_status.entry(Problem::status_of(*code)).or_default();
        if !words.is_empty() {
            words.push_str(", ");
        }
        words.push_str(&format!("`{}`", code.as_str()));
    }
    if operation.takes.is_some() {
        by_status.insert(415, format!("`{}`: the body is not JSON", ErrorCode::ManagedInputInvalid.as_str()));
    }
    by_status
}

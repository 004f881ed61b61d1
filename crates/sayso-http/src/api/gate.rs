use std::time::Duration;

use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use sayso::gate::Call;
use sayso::policy::{Annotations, ToolName};
use sayso::wire::{Gated, NewGate};
use sayso_core::error::Error;

use super::json;
use crate::app::Shared;
use crate::auth::Caller;
use crate::body::Strict;
use crate::problem::Refusal;
use crate::query::Query;
use crate::routes::Routes;

pub(super) fn routes() -> Routes {
    Routes::new().post("/v1/gate", gate)
}

/// Judges a call. Whoever sends the same call again takes the answer that was given meanwhile.
async fn gate(
    State(app): State<Shared>,
    caller: Caller,
    uri: Uri,
    Strict(new): Strict<NewGate>,
) -> Result<Response, Refusal> {
    let wait = Query::read(&uri, &["wait"])?.wait()?;
    let wait = wait.map(|wait| wait.min(Duration::from_millis(sayso_core::limits::WAIT_MS_MAX)));
    let call = call_of(new)?;
    let gate = app.gates.of(caller.principal);
    let ruling = match wait {
        // A server that stops leaves the question as it is.
        Some(wait) => match app.stopping.or(gate.pass(&call, Some(wait), |_| ())).await {
            Some(ruling) => ruling?,
            None => return Err(Error::Timeout.into()),
        },
        None => gate.judge(&call).await?,
    };
    Ok(json(&Gated::from(ruling)))
}

fn call_of(new: NewGate) -> Result<Call, Error> {
    let tool = ToolName::parse(&new.tool).map_err(|error| Error::field("/tool", error.message))?;
    Ok(Call {
        annotations: new.annotations.as_ref().map(Annotations::read).unwrap_or_default(),
        description: new.description,
        definition: new.definition,
        arguments_schema: new.arguments_schema,
        input: new.schema,
        preview: new.preview,
        ..Call::new(new.session_id, tool, new.arguments)
    })
}

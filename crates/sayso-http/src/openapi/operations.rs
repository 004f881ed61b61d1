//! The table of operations. A test compares it with what is served, in both directions.

use sayso::wire::{
    Answer, Cleared, Collected, Execution, ExecutionPage, ExecutionResult, ExpectedToken, Gated, Grant, GrantDraft,
    GrantPage, GrantUse, GrantUsed, Holding, Leased, NewApproval, NewClaim, NewExecution, NewFailure, NewGate,
    NewRound, NewToken, Renewed, ResponseRecord, Reviewed, Round, RoundPage, Settled, Settlement, Token, TokenPage,
    Withdrawal, Worker,
};
use sayso::{ExecutionId, GrantId, RoundId, Status};
use sayso_core::error::ErrorCode::{
    ElicitationRoundLimit as RoundLimit, ManagedInputConflict as Conflict, ManagedInputRecoveryUnavailable as Recovery,
    ManagedInputStale as Stale, ManagedInputState as State, NotFound, OperationTimeout as Timeout,
};
use sayso_core::limits::PAGE_ROWS_MAX;
use schemars::{Schema, SchemaGenerator, json_schema};

use super::operation::{Body, Key, Operation, Parameter, Who, of};
use crate::api::health::Health;

const fn parameter(name: &'static str, about: &'static str, shape: super::operation::Shape) -> Parameter {
    Parameter { name, about, shape }
}

const WAIT: Parameter = parameter("wait", "How long to wait, such as `45s` or `1500ms`; at most 50 s.", wait_time);
const LIMIT: Parameter = parameter("limit", "Rows of the page, from 1 to 200.", rows);
const ROUND_CURSOR: Parameter = parameter("cursor", "`next_cursor` of the page before.", of::<RoundId>);
const GRANT_CURSOR: Parameter = parameter("cursor", "`next_cursor` of the page before.", of::<GrantId>);
const EXECUTION_CURSOR: Parameter = parameter("cursor", "`next_cursor` of the page before.", of::<ExecutionId>);

const TOOL: Parameter = parameter("tool", "The tool, `server:name`.", of::<String>);

fn wait_time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": "^[0-9]+m?s$" })
}

fn late_prefix(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": "^late:" })
}

fn rows(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "minimum": 1, "maximum": PAGE_ROWS_MAX })
}

/// An OpenAPI document; what it looks like is not ours to say.
fn document(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object" })
}

const HTML: Body = Body::Text("text/html");

/// Everything that is served, in the order of the documentation.
pub(super) const OPERATIONS: &[Operation] = &[
    Operation::post("/v1/rounds", "ask", Who::Agent, "Asks: stores a round. It has been asked exactly if this answers. \
         A live round is held by a worker and comes with its lease; name a worker of yours to find the lease again when \
         the creation is repeated under its key.")
        .key(Key::Optional)
        .takes(of::<NewRound>)
        .gives(201, Body::Either(of::<Round>, of::<Leased>))
        .problems(&[Conflict, RoundLimit]),
    Operation::get("/v1/rounds", "list_rounds", Who::Caller, "One page of rounds, newest first.")
        .query(&[
            parameter("status", "Only those in this state.", of::<Status>),
            parameter("execution", "Only those of this execution.", of::<ExecutionId>),
            parameter("late", "Only unfinished ones of late operations whose id begins so, `late:` first.", late_prefix),
            ROUND_CURSOR,
            LIMIT,
        ])
        .gives(200, Body::Json(of::<RoundPage>)),
    Operation::get("/v1/rounds/{id}", "show_round", Who::Caller, "A round. With `wait`, once its `rev` is past `after` \
         or the wait is over.")
        .query(&[WAIT, parameter("after", "The `rev` that is known; by default what it is now.", of::<u32>)])
        .gives(200, Body::Json(of::<Round>)),
    Operation::post("/v1/rounds/{id}/responses", "answer", Who::Person, "Answers a round. Checked in this order: key, \
         state, digest, key set, content; on any fault nothing changes.")
        .key(Key::Required)
        .takes(of::<Answer>)
        .gives(200, Body::Json(of::<Round>))
        .problems(&[Conflict, State, Stale]),
    Operation::get("/v1/rounds/{id}/responses", "show_responses", Who::Caller, "What a round was answered with: values \
         for persons, a redacted projection for everybody else, null before an answer.")
        .gives(200, Body::Json(of::<Option<ResponseRecord>>)),
    Operation::post("/v1/rounds/{id}/relay", "relay", Who::Agent, "Passes on what a person told the agent, recorded as \
         relayed by it. Forbidden unless the server was started with `--trust-agent-relay`.")
        .key(Key::Required)
        .takes(of::<Answer>)
        .gives(200, Body::Json(of::<Round>))
        .problems(&[Conflict, State, Stale]),
    Operation::post("/v1/rounds/{id}/collect", "collect", Who::Agent, "Waits for the answer and takes it: claimed, \
         started, delivered and resolved in one transaction. The same key reads the same answer again.")
        .query(&[WAIT])
        .key(Key::Optional)
        .gives(200, Body::Json(of::<Collected>))
        .problems(&[Timeout, Conflict, State, Recovery]),
    Operation::post("/v1/rounds/{id}/claim", "claim_round", Who::Agent, "Takes a resumable round over for delivery. A \
         delivery that was started and not confirmed needs evidence. The same key finds the same lease.")
        .key(Key::Optional)
        .takes(of::<NewClaim>)
        .gives(200, Body::Json(of::<Leased>))
        .problems(&[Conflict, State, Recovery]),
    Operation::post("/v1/rounds/{id}/renew", "renew_round", Who::Agent, "Extends the lease of the round's holder, also \
         late, as long as nobody took over; with it that of everything the same worker holds.")
        .takes(of::<Holding>)
        .gives(200, Body::Json(of::<Renewed>))
        .problems(&[Conflict, State]),
    Operation::post("/v1/rounds/{id}/start_delivery", "start_delivery", Who::Agent, "Begins to hand the answer over; \
         beside collect the only way for an agent to read it.")
        .takes(of::<Holding>)
        .gives(200, Body::Json(of::<Collected>))
        .problems(&[Conflict, State]),
    Operation::post("/v1/rounds/{id}/delivered", "mark_delivered", Who::Agent, "The receipt is in hand.")
        .takes(of::<Holding>)
        .gives(200, Body::Json(of::<Round>))
        .problems(&[Conflict, State]),
    Operation::post("/v1/rounds/{id}/resolve", "resolve_round", Who::Agent, "The operation has gone on.")
        .takes(of::<Holding>)
        .gives(200, Body::Json(of::<Round>))
        .problems(&[Conflict, State]),
    Operation::post("/v1/rounds/{id}/fail", "fail_round", Who::Agent, "Ends a round with a reason: its holder, or \
         without one whoever asked, while it is pending.")
        .takes(of::<NewFailure>)
        .gives(200, Body::Json(of::<Round>))
        .problems(&[Conflict, State]),
    Operation::post("/v1/rounds/{id}/fail_recovery", "fail_recovery", Who::Agent, "Ends an unfinished round whose \
         holder is gone: its lease has run out, and this was its token.")
        .takes(of::<ExpectedToken>)
        .gives(200, Body::Json(of::<Round>))
        .problems(&[Conflict, State]),
    Operation::post("/v1/rounds/{id}/withdraw", "withdraw_round", Who::Agent, "Ends a live round whose asker took it \
         back, and opens its successor in the same transaction. A repeat finds the successor.")
        .takes(of::<Withdrawal>)
        .gives(200, Body::Json(of::<Round>))
        .problems(&[Conflict, State]),
    Operation::post("/v1/workers", "add_worker", Who::Agent, "A name under which one process holds rounds and renews \
         them all by one write. It belongs to the credential.")
        .gives(201, Body::Json(of::<Worker>)),
    Operation::post("/v1/workers/{owner}/renew", "renew_worker", Who::Agent, "The worker lives: extends its lease, and \
         with it that of everything it holds.")
        .gives(200, Body::Json(of::<Renewed>))
        .problems(&[Conflict]),
    Operation::post("/v1/workers/{owner}/release", "release_worker", Who::Agent, "The worker has settled all it held \
         and leaves. What it did not settle is ended once nobody comes back for it.")
        .gives(204, Body::Nothing)
        .problems(&[Conflict]),
    Operation::post("/v1/settle", "settle", Who::Agent, "Stores what became known in one transaction, all of it or \
         nothing. A repeat of steps that are all stored already changes nothing.")
        .takes(of::<Settlement>)
        .gives(200, Body::Json(of::<Settled>))
        .problems(&[Conflict, State]),
    Operation::get("/v1/reviewed", "reviewed", Who::Agent, "For a worker that judges calls itself: the definition under \
         which a tool was last reviewed for this caller. The step `reviewed` of `/v1/settle` stores the next.")
        .query(&[TOOL])
        .gives(200, Body::Json(of::<Reviewed>)),
    Operation::post("/v1/executions", "start_execution", Who::Agent, "Starts a record of an operation that lives in \
         one of the caller's workers.")
        .takes(of::<NewExecution>)
        .gives(201, Body::Json(of::<Execution>))
        .problems(&[Conflict]),
    Operation::get("/v1/executions", "list_executions", Who::Caller, "One page of executions, newest first.")
        .query(&[EXECUTION_CURSOR, LIMIT])
        .gives(200, Body::Json(of::<ExecutionPage>)),
    Operation::get("/v1/executions/{id}", "show_execution", Who::Caller, "A snapshot of an execution.")
        .gives(200, Body::Json(of::<Execution>)),
    Operation::get("/v1/executions/{id}/result", "result", Who::Caller, "Waits for an execution to end; what it \
         answered.")
        .query(&[WAIT])
        .gives(200, Body::Json(of::<ExecutionResult>))
        .problems(&[Timeout]),
    Operation::post("/v1/executions/{id}/cancel", "cancel_execution", Who::Caller, "Cancels an execution; its pending \
         rounds fail as cancelled.")
        .gives(200, Body::Json(of::<Execution>))
        .problems(&[Conflict]),
    Operation::get("/v1/events", "events", Who::Caller, "The event stream (server-sent events): a `snapshot` with the \
         number of the last event, then every event after the cursor, each `data` a StoredEvent.")
        .last_event_id()
        .gives(200, Body::Text("text/event-stream")),
    Operation::post("/v1/gate", "gate", Who::Agent, "May this call run? Judged by the policy and by what was granted; \
         where that asks, a person is asked. The same call sent again takes the answer given meanwhile, once. With \
         `wait`, once a person has answered or the wait is over. That nobody decided is a problem and never `deny`.")
        .query(&[WAIT])
        .takes(of::<NewGate>)
        .gives(200, Body::Json(of::<Gated>))
        .problems(&[Conflict, State, Timeout]),
    Operation::get("/v1/sessions/{session}/approvals", "list_session_approvals", Who::Person, "One page of the grants \
         that are bound to a session, newest first; ended ones are among them.")
        .query(&[GRANT_CURSOR, LIMIT])
        .gives(200, Body::Json(of::<GrantPage>)),
    Operation::post("/v1/sessions/{session}/approvals", "approve_for_session", Who::Person, "Lets calls of a tool \
         through in a session, where rules ask.")
        .takes(of::<NewApproval>)
        .gives(201, Body::Json(of::<Grant>))
        .problems(&[NotFound]),
    Operation::delete("/v1/sessions/{session}/approvals", "clear_session_approvals", Who::Person, "Takes back every \
         grant that is bound to a session.")
        .gives(200, Body::Json(of::<Cleared>)),
    Operation::get("/v1/grants", "list_grants", Who::Person, "One page of grants, newest first; ended ones are among \
         them.")
        .query(&[GRANT_CURSOR, LIMIT])
        .gives(200, Body::Json(of::<GrantPage>)),
    Operation::post("/v1/grants", "add_grant", Who::Person, "Allows calls to come: of any kind, drafted from a round \
         that asks about a call, or written out.")
        .takes(of::<GrantDraft>)
        .gives(201, Body::Json(of::<Grant>))
        .problems(&[NotFound]),
    Operation::post("/v1/grants/use", "use_grant", Who::Agent, "For a worker whose own rules ask about a call: has a \
         grant stand in for a person, whose use is stored before this answers. Null where a person has to be asked.")
        .takes(of::<GrantUse>)
        .gives(200, Body::Json(of::<GrantUsed>)),
    Operation::get("/v1/grants/{id}", "show_grant", Who::Person, "A grant.").gives(200, Body::Json(of::<Grant>)),
    Operation::delete("/v1/grants/{id}", "revoke_grant", Who::Person, "Takes a grant back, from now on and for good.")
        .gives(200, Body::Json(of::<Grant>)),
    Operation::get("/v1/tokens", "list_tokens", Who::Admin, "The credentials of the API, newest first.")
        .gives(200, Body::Json(of::<TokenPage>)),
    Operation::post("/v1/tokens", "add_token", Who::Admin, "Makes a credential. Its secret is in this answer and in \
         none after it.")
        .takes(of::<NewToken>)
        .gives(201, Body::Json(of::<Token>)),
    Operation::delete("/v1/tokens/{id}", "revoke_token", Who::Admin, "Revokes a credential.")
        .gives(200, Body::Json(of::<Token>)),
    Operation::post("/mcp", "mcp", Who::Agent, "MCP over streamable HTTP, up to 2025-11-25, where the server offers it: \
         one message. `initialize` answers with `Mcp-Session-Id`, which every later message carries. A tool call is \
         answered by a stream of events to whoever accepts one. Errors of MCP itself are JSON-RPC's.")
        .takes(document)
        .gives(200, Body::Json(document))
        .problems(&[NotFound]),
    Operation::delete("/mcp", "end_mcp_session", Who::Agent, "Ends the session that `Mcp-Session-Id` names. What was \
         asked in it goes on being asked.")
        .gives(204, Body::Nothing)
        .problems(&[NotFound]),
    Operation::get("/openapi.json", "openapi", Who::Anyone, "This document.").gives(200, Body::Json(document)),
    Operation::get("/healthz", "healthz", Who::Anyone, "Whether the process answers.")
        .gives(200, Body::Json(of::<Health>)),
    Operation::get("/readyz", "readyz", Who::Anyone, "Whether the store answers too.")
        .gives(200, Body::Json(of::<Health>)),
    Operation::get("/", "inbox_page", Who::Browser, "What waits for an answer.").gives(200, HTML),
    Operation::get("/rounds/{id}", "round_page", Who::Browser, "A round, with the form to answer it.").gives(200, HTML),
    Operation::post("/rounds/{id}", "answer_page", Who::Browser, "Answers a round by its form.").gives(200, HTML),
    Operation::post("/batch", "decide_batch", Who::Browser, "Decides several calls from the list.").gives(200, HTML),
    Operation::get("/executions/{id}", "execution_page", Who::Browser, "An execution.").gives(200, HTML),
    Operation::get("/history", "history_page", Who::Browser, "What was asked and what became of it.").gives(200, HTML),
    Operation::get("/grants", "grants_page", Who::Browser, "What is allowed beforehand.").gives(200, HTML),
    Operation::get("/grants/{id}", "grant_page", Who::Browser, "A grant and its uses.").gives(200, HTML),
    Operation::get("/grants/{id}/revoke", "revoking_page", Who::Browser, "What would be taken back.").gives(200, HTML),
    Operation::post("/grants/{id}/revoke", "revoke_page", Who::Browser, "Takes a grant back.").gives(303, HTML),
    Operation::get("/login", "login_page", Who::Browser, "Where a one-time link leads.").gives(200, HTML),
    Operation::post("/login", "log_in", Who::Browser, "Exchanges a one-time link for a session.").gives(303, HTML),
    Operation::post("/logout", "log_out", Who::Browser, "Ends the session.").gives(303, HTML),
    Operation::get("/assets/{file}", "asset", Who::Anyone, "The pages' style sheet, script and icon.")
        .gives(200, Body::Text("*/*")),
];

//! The tools as a client lists them, each under a name that is free there.

use serde_json::json;

/// Goes on waiting for a paused call.
pub(crate) const WAIT_TOOL: &str = "sayso_wait";
/// Asks a person.
pub(crate) const ASK_TOOL: &str = "ask_user";
/// Reports what a person decided.
pub(crate) const RESUME_TOOL: &str = "resume";

/// [`WAIT_TOOL`].
pub(crate) fn wait_definition(name: &str) -> String {
    json!({
        "name": name,
        "title": "Wait for a person",
        "description": "Go on waiting for a call that is paused because a person has to answer first. Give the \
            execution_id that the paused call returned. Returns the call's own result once it is there. Call it \
            again, as often as needed, while it says that the call is still waiting.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "execution_id": {"type": "string", "description": "The handle of the paused call, exe_…"}
            },
            "required": ["execution_id"],
            "additionalProperties": false
        },
        "annotations": {"readOnlyHint": true, "openWorldHint": false}
    })
    .to_string()
}

/// [`ASK_TOOL`].
pub(crate) fn ask_definition(name: &str) -> String {
    let option = json!({"type": "object", "required": ["label"], "properties": {
        "label": {"type": "string"}, "description": {"type": "string", "description": "What choosing it means"}}});
    let question = json!({"type": "object", "required": ["question"], "properties": {
        "question": {"type": "string", "description": "The whole question"},
        "header": {"type": "string", "description": "A word or two that say what it is about"},
        "multiSelect": {"type": "boolean", "description": "Whether several options may be taken"},
        "options": {"type": "array", "items": option, "description": "Leave out to be answered in free text"}}});
    json!({
        "name": name,
        "title": "Ask a person",
        "description": "Ask a person one or more questions and wait for the answers. Use it where only a person can know \
            or decide. The call may return before there is an answer; then go on waiting as its text says.",
        "inputSchema": {
            "type": "object",
            "properties": {"questions": {"type": "array", "minItems": 1, "items": question}},
            "required": ["questions"]
        },
        "annotations": {"readOnlyHint": true, "openWorldHint": false}
    })
    .to_string()
}

/// [`RESUME_TOOL`]: what it says of `approved` depends on whether an agent's word counts.
pub(crate) fn resume_definition(name: &str, relays: bool) -> String {
    let (whose, approved, data) = if relays {
        (
            "Where the person told you in this conversation, pass their verdict on with approved; it is recorded as \
             relayed by you. Never pass on what the person did not say.",
            "What the person said: true to run the call, false not to",
            "With approved true: {\"arguments\": …} for a call that runs with other arguments, or the values of a form. \
             With approved false: {\"reason\": …}",
        )
    } else {
        (
            "The verdict is the one that the person gave in Sayso; what you pass as approved or data changes nothing.",
            "Has no effect here: a person decides in Sayso",
            "Has no effect here",
        )
    };
    let description = format!(
        "Learn what a person decided about a paused call, and the call's result where it was approved. Give the \
         execution_id that the paused call returned. While nobody has decided it says so, and where the person can. {whose}"
    );
    json!({
        "name": name,
        "title": "Learn a person's verdict",
        "description": description,
        "inputSchema": {
            "type": "object",
            "properties": {
                "execution_id": {"type": "string", "description": "The handle of the paused call, exe_…"},
                "approved": {"type": "boolean", "description": approved},
                "data": {"type": "object", "description": data}
            },
            "required": ["execution_id"],
            "additionalProperties": false
        },
        // It may let an approved call run that waited for somebody to take its result.
        "annotations": {"readOnlyHint": false, "destructiveHint": false, "openWorldHint": false}
    })
    .to_string()
}

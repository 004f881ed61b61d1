//! `initialize`, both ways: what the gateway can do is said in the client's name, the rest of its words kept.

use sayso_core::json::ObjectView;

use crate::jsonrpc::Message;

/// The newest protocol version spoken on both sides.
const NEWEST: &str = "2025-11-25";

/// What the client said of itself.
#[derive(Debug, Clone, Default)]
pub(super) struct Handshake {
    /// The `params` that the upstream is given, at every start.
    pub params: String,
    /// The client's name for itself.
    pub client_name: Option<String>,
    pub has_sampling: bool,
    pub has_roots: bool,
}

impl Handshake {
    /// Reads the client's `initialize` and prepares the upstream's. `None` where it has no `params` object.
    pub fn read(message: &Message) -> Option<Self> {
        let params = message.member("params")?;
        let view = ObjectView::read(params)?;
        let capabilities = view.get("capabilities").unwrap_or("{}");
        let declared = ObjectView::read(capabilities)?;
        let client_name = view
            .get("clientInfo")
            .and_then(ObjectView::read)
            .and_then(|info| serde_json::from_str(info.get("name")?).ok());
        let capabilities_up = without_task_elicitation(capabilities);
        let capabilities_up = ObjectView::with_member(&capabilities_up, "elicitation", r#"{"form":{},"url":{}}"#);
        let version = view.get("protocolVersion").unwrap_or_default().trim_matches('"');
        let mut params_up = ObjectView::with_member(params, "capabilities", &capabilities_up);
        // Versions are dates: the lower one is the earlier one.
        if version > NEWEST {
            params_up = ObjectView::with_member(&params_up, "protocolVersion", &format!("\"{NEWEST}\""));
        }
        Some(Self {
            params: params_up,
            client_name,
            has_sampling: declared.get("sampling").is_some(),
            has_roots: declared.get("roots").is_some(),
        })
    }
}

/// A client that would take elicitations as tasks must not be offered for ours.
fn without_task_elicitation(capabilities: &str) -> String {
    let changed = || {
        let tasks = ObjectView::read(capabilities)?.get("tasks")?;
        let requests = ObjectView::read(tasks)?.get("requests")?;
        ObjectView::read(requests)?.get("elicitation")?;
        let requests_up = ObjectView::without_member(requests, "elicitation");
        let tasks_up = ObjectView::with_member(tasks, "requests", &requests_up);
        Some(ObjectView::with_member(capabilities, "tasks", &tasks_up))
    };
    changed().unwrap_or_else(|| capabilities.to_owned())
}

/// The upstream's answer as the client gets it: a server with tools may change them, since one of ours is among them.
pub(super) fn answer_for_client(message: &Message, client_id: &str) -> String {
    let line = message.with_id(client_id);
    let changed = || {
        let result = ObjectView::read(&line)?.get("result")?;
        let capabilities = ObjectView::read(result)?.get("capabilities")?;
        let tools = ObjectView::read(capabilities)?.get("tools")?;
        let tools_out = ObjectView::with_member(tools, "listChanged", "true");
        let capabilities_out = ObjectView::with_member(capabilities, "tools", &tools_out);
        let result_out = ObjectView::with_member(result, "capabilities", &capabilities_out);
        Some(ObjectView::with_member(&line, "result", &result_out))
    };
    changed().unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upstream_params(params: &str) -> String {
        let line = format!(r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{params}}}"#);
        Handshake::read(&Message::parse(&line).unwrap()).unwrap().params
    }

    #[test]
    fn elicitation_is_declared_for_every_client_and_the_rest_is_kept() {
        assert_eq!(
            upstream_params(r#"{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","v":1.0}}"#),
            r#"{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{"form":{},"url":{}}},"clientInfo":{"name":"c","v":1.0}}"#
        );
        assert_eq!(
            upstream_params(
                r#"{"protocolVersion":"2026-07-28","capabilities":{"elicitation":{},"tasks":{"list":{},"requests":{"elicitation":{"create":{}},"x":1}},"vendor":0.10}}"#
            ),
            r#"{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{"form":{},"url":{}},"tasks":{"list":{},"requests":{"x":1}},"vendor":0.10}}"#
        );
    }

    #[test]
    fn a_server_with_tools_is_said_to_change_them_and_one_without_is_left_alone() {
        let answer = |line: &str| answer_for_client(&Message::parse(line).unwrap(), "\"c\"");
        assert_eq!(
            answer(r#"{"id":1,"result":{"capabilities":{"tools":{}},"serverInfo":{"name":"s"}}}"#),
            r#"{"id":"c","result":{"capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"s"}}}"#
        );
        assert_eq!(
            answer(r#"{"id":1,"result":{"capabilities":{"prompts":{}}}}"#),
            r#"{"id":"c","result":{"capabilities":{"prompts":{}}}}"#
        );
    }
}

//! What passes: one member spliced, every other byte as it came.

use sayso_core::json::ObjectView;

use crate::jsonrpc::Message;

/// The request under our id. `progress_token` (JSON text) takes the place of the client's, or is added.
pub(super) fn forwarded(message: &Message, id: u64, progress_token: Option<&str>) -> String {
    let line = message.with_id(&id.to_string());
    let Some(token) = progress_token else { return line };
    let params = message.member("params").unwrap_or("{}");
    let meta = message.param("_meta").unwrap_or("{}");
    let meta = ObjectView::with_member(meta, "progressToken", token);
    let params = ObjectView::with_member(params, "_meta", &meta);
    ObjectView::with_member(&line, "params", &params)
}

/// A notification with one member of its `params` replaced by other JSON text.
pub(super) fn with_param(message: &Message, name: &str, value: &str) -> String {
    let params = message.member("params").unwrap_or("{}");
    let params = ObjectView::with_member(params, name, value);
    ObjectView::with_member(message.text(), "params", &params)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_passes_with_only_id_and_progress_token_changed() {
        let message = |line: &str| Message::parse(line).unwrap();
        let kept = r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"x","arguments":{"n":0.0,"m":0.10},"_meta":{"progressToken":"p","v":1}}}"#;
        assert_eq!(
            forwarded(&message(kept), 7, Some("7")),
            kept.replace(r#""id":"a""#, r#""id":7"#).replace(r#""progressToken":"p""#, r#""progressToken":7"#)
        );
        let bare = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}"#;
        assert_eq!(
            forwarded(&message(bare), 8, Some("8")),
            r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":8}}}"#
        );
        assert_eq!(forwarded(&message(bare), 8, None), bare.replace(r#""id":1"#, r#""id":8"#));
    }
}

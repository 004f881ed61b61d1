use sayso_core::json::{Json, ObjectView};

/// What a message is. Ids are kept as the text they were written in: `1` is not `"1"`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A call that wants an answer.
    Request {
        /// The id as written.
        id: String,
        /// The method.
        method: String,
    },
    /// A call that wants none.
    Notification {
        /// The method.
        method: String,
    },
    /// An answer, with `result` or `error`.
    Response {
        /// The id as written.
        id: String,
    },
}

/// Why a line is not a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Not JSON by the strict reader: duplicate members and lone surrogates are refused too.
    #[error("the line is not strict JSON")]
    NotJson,
    /// An array: batches were removed from MCP in 2025-06-18.
    #[error("batches are not taken")]
    Batch,
    /// JSON, but no JSON-RPC message.
    #[error("the line is not a JSON-RPC message")]
    NotAMessage,
}

/// One message: its text, untouched, and what it is.
#[derive(Clone)]
pub struct Message {
    text: Json,
    /// Request, notification or response.
    pub kind: Kind,
}

/// Contents never show in `Debug`.
impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Message").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl Message {
    /// Reads one line.
    pub fn parse(line: &str) -> Result<Self, Malformed> {
        let text = Json::parse(line).map_err(|_| Malformed::NotJson)?;
        let Some(view) = text.object() else {
            return Err(if text.as_str().starts_with('[') { Malformed::Batch } else { Malformed::NotAMessage });
        };
        let id = view.get("id").filter(|id| is_id(id)).map(str::to_owned);
        let method = view.get("method").map(|method| string(method).ok_or(Malformed::NotAMessage)).transpose()?;
        let answers = view.get("result").is_some() != view.get("error").is_some();
        let kind = match (id, method) {
            (Some(id), Some(method)) => Kind::Request { id, method },
            (None, Some(method)) if view.get("id").is_none() => Kind::Notification { method },
            (Some(id), None) if answers => Kind::Response { id },
            _ => return Err(Malformed::NotAMessage),
        };
        Ok(Self { text, kind })
    }

    /// The text as it came.
    pub fn text(&self) -> &str {
        self.text.as_str()
    }

    /// The text of a member, as written.
    pub fn member(&self, name: &str) -> Option<&str> {
        self.text.object().and_then(|view| view.get(name))
    }

    /// The text of a member of `params`, as written.
    pub fn param(&self, name: &str) -> Option<&str> {
        ObjectView::read(self.member("params")?)?.get(name)
    }

    /// A text member of `params`.
    pub fn string_param(&self, name: &str) -> Option<String> {
        string(self.param(name)?)
    }

    /// The message under another id, every other byte as it came.
    pub fn with_id(&self, id: &str) -> String {
        ObjectView::with_member(self.text(), "id", id)
    }

    /// The token under which the sender wants to hear of progress, as written.
    pub fn progress_token(&self) -> Option<&str> {
        ObjectView::read(self.param("_meta")?)?.get("progressToken")
    }
}

/// JSON-RPC allows texts and numbers; MCP rules out null.
fn is_id(text: &str) -> bool {
    text.starts_with('"') || text.starts_with(|c: char| c == '-' || c.is_ascii_digit())
}

/// The value of a JSON text that is a string.
fn string(text: &str) -> Option<String> {
    serde_json::from_str(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_told_by_its_members_and_ids_keep_their_text() {
        let kind = |line: &str| Message::parse(line).map(|message| message.kind);
        let request = |id: &str| Kind::Request { id: id.to_owned(), method: "ping".to_owned() };
        assert_eq!(kind(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#), Ok(request("1")));
        assert_eq!(kind(r#"{"jsonrpc":"2.0","id":"1","method":"ping"}"#), Ok(request("\"1\"")));
        assert_eq!(kind(r#"{"method":"x"}"#), Ok(Kind::Notification { method: "x".to_owned() }));
        assert_eq!(kind(r#"{"id":7,"result":null}"#), Ok(Kind::Response { id: "7".to_owned() }));
        for (line, error) in [
            ("[]", Malformed::Batch),
            (r#"[{"method":"x"}]"#, Malformed::Batch),
            ("7", Malformed::NotAMessage),
            (r#"{"id":null,"method":"x"}"#, Malformed::NotAMessage),
            (r#"{"id":1,"result":1,"error":{}}"#, Malformed::NotAMessage),
            (r#"{"id":1}"#, Malformed::NotAMessage),
            (r#"{"method":"x","method":"y"}"#, Malformed::NotJson),
            ("listening on 8080", Malformed::NotJson),
        ] {
            assert_eq!(kind(line), Err(error), "{line}");
        }
    }

    #[test]
    fn only_the_id_changes_under_another_id() {
        let line = r#"{ "jsonrpc" : "2.0", "id":  "a" ,"method":"x","params":{"n":0.10,"big":123456789012345678901234567890} }"#;
        let expected = line.replace(r#""a""#, "42");
        assert_eq!(Message::parse(line).unwrap().with_id("42"), expected);
    }
}

//! Why a part of a policy or a grant cannot be used.

/// What is wrong, and under which key. It quotes the policy at most, never a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", if key.is_empty() { String::new() } else { format!("{key}: ") })]
pub struct PolicyError {
    /// The key that is wrong, such as `allow`; empty where there is no one key.
    pub key: String,
    /// What is wrong with it.
    pub message: String,
}

impl PolicyError {
    /// An error under a key.
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self { key: key.into(), message: message.into() }
    }

    /// The same error, under this key.
    pub fn under(self, key: impl Into<String>) -> Self {
        Self { key: key.into(), message: self.message }
    }
}

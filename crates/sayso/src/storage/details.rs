//! What a caller wants kept beside a round, and the store itself has no use for.

use sayso_core::error::Error;
use sayso_core::json::Json;
use sayso_core::limits;
use sayso_core::round::OperationKind;
use sayso_core::wire::Keyed;
use serde::{Deserialize, Serialize};

/// The version of the stored form.
const VERSION: u32 = 1;

/// As it is stored: members are only ever added.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Details {
    pub version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery_idempotency_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harness_session_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native_resume_token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation_parameters: Option<Json>,
    #[serde(default)]
    pub requests: Keyed<RequestDetails>,
}

/// What a request has beside what people are shown of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RequestDetails {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation_kind: Option<OperationKind>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation_name: Option<String>,
}

impl Details {
    /// Checks the texts: one that is there is not empty.
    pub fn check(&self) -> Result<(), Error> {
        let texts = [
            ("/delivery_idempotency_key", &self.delivery_idempotency_key),
            ("/harness_session_id", &self.harness_session_id),
            ("/native_resume_token", &self.native_resume_token),
            ("/session_id", &self.session_id),
            ("/turn_id", &self.turn_id),
        ];
        for (pointer, text) in texts {
            check_name(pointer, text.as_deref().unwrap_or("-"))?;
        }
        match &self.operation_parameters {
            Some(parameters) if !parameters.is_object() => {
                Err(Error::field("/operation_parameters", "must be an object"))
            }
            _ => Ok(()),
        }
    }

    /// As stored; none where there is nothing to keep.
    pub fn to_json(&self) -> Result<Option<Json>, Error> {
        if *self == Self::default() {
            return Ok(None);
        }
        to_json(&Self { version: VERSION, ..self.clone() }).map(Some)
    }

    pub fn read(stored: Option<&Json>) -> Result<Self, Error> {
        let Some(stored) = stored else { return Ok(Self::default()) };
        serde_json::from_str(stored.as_str()).map_err(|_| Error::Corrupt("round"))
    }
}

/// A name or text of the caller's: something, and not too long.
pub(super) fn check_name(pointer: &str, name: &str) -> Result<(), Error> {
    if (1..=limits::NAME_BYTES_MAX).contains(&name.len()) {
        return Ok(());
    }
    Err(Error::field(pointer, format!("must have 1 to {} bytes", limits::NAME_BYTES_MAX)))
}

pub(super) fn to_json<T: Serialize>(value: &T) -> Result<Json, Error> {
    let text = serde_json::to_string(value).map_err(|_| Error::field("", "cannot be written as JSON"))?;
    Json::parse_within(&text, limits::ROUND_BYTES_MAX, limits::JSON_DEPTH_CEILING)
        .map_err(|_| Error::Limit(format!("a round may have at most {} bytes", limits::ROUND_BYTES_MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_version_1_stored_is_read() {
        let stored = r#"{"version":1,"delivery_idempotency_key":"dk","native_resume_token":"rt","turn_id":"t",
            "operation_parameters":{"n":1.0},"requests":{"city":{"task":{"ttl":5},"operation_kind":"prompt"}}}"#;
        let details = Details::read(Some(&Json::parse(stored).unwrap())).unwrap();
        assert_eq!(details.native_resume_token.as_deref(), Some("rt"));
        assert_eq!(details.operation_parameters.as_ref().map(Json::as_str), Some(r#"{"n":1.0}"#));
        assert_eq!(details.requests.get("city").and_then(|city| city.operation_kind), Some(OperationKind::Prompt));
        assert!(details.to_json().unwrap().is_some() && Details::default().to_json().unwrap().is_none());
    }
}

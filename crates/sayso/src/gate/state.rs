use sayso_core::error::Error;
use sayso_core::policy::RuleRef;
use serde::{Deserialize, Serialize};

/// What a gate keeps with a round until it is finished: by which rules it was asked.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct State {
    v: u8,
    pub(super) rules: Vec<RuleRef>,
}

const VERSION: u8 = 1;

impl State {
    pub(super) fn written(rules: &[RuleRef]) -> Result<String, Error> {
        let state = Self { v: VERSION, rules: rules.to_vec() };
        serde_json::to_string(&state).map_err(|_| Error::Corrupt("request state"))
    }

    pub(super) fn read(text: Option<&str>) -> Result<Self, Error> {
        let state: Option<Self> = text.and_then(|text| serde_json::from_str(text).ok());
        state.filter(|state| state.v == VERSION).ok_or(Error::Corrupt("request state"))
    }
}

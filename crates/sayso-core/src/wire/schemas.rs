//! The JSON Schemas of what the derive cannot see: texts with a form of their own, foreign JSON, ordered maps.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::{Keyed, LeaseToken};
use crate::id::{ExecutionId, GrantId, RoundId, TokenId};
use crate::json::Json;
use crate::principal::Principal;
use crate::round::Digest;
use crate::time::UnixMs;

/// Texts: the type, its name and what its schema says beside `type: string`.
macro_rules! texts {
    ($($type:ty, $name:literal, { $($members:tt)* };)*) => {$(
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", $($members)* })
            }
        }
    )*};
}

texts! {
    ExecutionId, "ExecutionId", {
        "description": "One run of an agent or of one MCP operation.",
        "pattern": "^exe_[0-7][0-9A-HJKMNP-TV-Z]{25}$"
    };
    RoundId, "RoundId", {
        "description": "One round: the requests an operation waits on.",
        "pattern": "^rnd_[0-7][0-9A-HJKMNP-TV-Z]{25}$"
    };
    TokenId, "TokenId", {
        "description": "One credential; its secret is never stored.",
        "pattern": "^tok_[0-7][0-9A-HJKMNP-TV-Z]{25}$"
    };
    GrantId, "GrantId", {
        "description": "One grant: somebody's word that covers calls to come.",
        "pattern": "^grt_[0-7][0-9A-HJKMNP-TV-Z]{25}$"
    };
    UnixMs, "Time", {
        "description": "An RFC 3339 time with its zone; written in UTC with milliseconds.",
        "format": "date-time"
    };
    Principal, "Principal", {
        "description": "An authenticated caller: its kind and its name, such as `person local:ada`.",
        "pattern": "^(person|agent|service|policy) "
    };
    Digest, "Digest", {
        "description": "SHA-256 over the canonical requests of a round: what an answer binds to.",
        "pattern": "^sha256:[0-9a-f]{64}$"
    };
    LeaseToken, "LeaseToken", {
        "description": "What fences off whoever held the round before. A capability: keep it to the worker.",
        "pattern": "^[0-9a-f]{32}$"
    };
}

/// Any JSON value, passed through as it was written.
impl JsonSchema for Json {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Json".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        Schema::from(true)
    }
}

impl<T: JsonSchema> JsonSchema for Keyed<T> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        format!("Keyed{}", T::schema_name()).into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "additionalProperties": generator.subschema_for::<T>() })
    }
}

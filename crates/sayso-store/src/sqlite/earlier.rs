//! What earlier versions stored, for the migrations that take it over.

use std::borrow::Cow;

use rusqlite::Connection;
use rusqlite::functions::FunctionFlags;
use sayso_core::event::{EventBody, NewEvent};
use sayso_core::id::{ExecutionId, RoundId};
use sayso_core::principal::{Channel, Principal};
use sayso_core::time::UnixMs;
use serde::Deserialize;

use super::rows;

/// An event as it stood in a list of objects, beside its hash.
#[derive(Deserialize)]
struct Listed {
    at: i64,
    execution: Option<Hex>,
    round: Option<Hex>,
    principal: Option<Principal>,
    channel: Option<Channel>,
    body: EventBody,
}

/// Sixteen bytes, as twice as many lower-case hexadecimal digits.
struct Hex([u8; 16]);

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(from)?;
        match u128::from_str_radix(&text, 16) {
            Ok(number) if text.len() == 32 => Ok(Self(number.to_be_bytes())),
            _ => Err(serde::de::Error::custom("not 32 hexadecimal digits")),
        }
    }
}

/// Gives a migration the function `event_list`: the bytes of a list of events that were stored as objects; null where they
/// cannot be read.
pub(super) fn add_functions(db: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_DIRECTONLY;
    db.create_scalar_function("event_list", 1, flags, |arguments| {
        let Ok(listed) = serde_json::from_str::<Vec<Listed>>(&arguments.get::<String>(0)?) else { return Ok(None) };
        let events: Vec<_> = listed.into_iter().map(event).collect();
        Ok(rows::event_list(events.iter()).ok())
    })
}

fn event(listed: Listed) -> NewEvent {
    NewEvent {
        at: UnixMs(listed.at),
        execution_id: listed.execution.map(|id| ExecutionId::from_bytes(id.0)),
        round_id: listed.round.map(|id| RoundId::from_bytes(id.0)),
        principal: listed.principal,
        channel: listed.channel,
        body: listed.body,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used, reason = "a test may panic")]

    use super::*;

    const EXECUTION: &str = "01a22caddea2770f9f4d63a618cb6401";
    const ROUND: &str = "01a22caddea27dd2b5caac105bc1fb09";

    #[test]
    fn a_list_of_objects_becomes_a_list_of_the_same_events() {
        let db = Connection::open_in_memory().expect("opens");
        add_functions(&db).expect("are added");
        let list = |text: &str| {
            db.query_row("SELECT event_list(?1)", [text], |row| row.get::<_, Option<Vec<u8>>>(0)).expect("runs")
        };
        let text = format!(
            r#"[{{"at":7,"execution":"{EXECUTION}","principal":"agent a","body":{{"event":"execution_created"}},"hash":"00"}},
                {{"at":8,"execution":"{EXECUTION}","round":"{ROUND}","principal":null,"channel":"inbox",
                  "body":{{"event":"failed","code":"expired"}},"hash":"00"}}]"#
        );
        let id = |digits| u128::from_str_radix(digits, 16).expect("digits").to_be_bytes();
        let first = NewEvent {
            at: UnixMs(7),
            execution_id: Some(ExecutionId::from_bytes(id(EXECUTION))),
            round_id: None,
            principal: Some(Principal::agent("a")),
            channel: None,
            body: EventBody::ExecutionCreated,
        };
        let second = NewEvent {
            at: UnixMs(8),
            round_id: Some(RoundId::from_bytes(id(ROUND))),
            principal: None,
            channel: Some(Channel::Inbox),
            body: EventBody::Failed { code: "expired".to_owned() },
            ..first.clone()
        };
        assert_eq!(list(&text), rows::event_list([first, second].iter()).ok());
        for wrong in ["", "{}", r#"[{"at":7}]"#, &text.replace(ROUND, "01"), &text.replace("inbox", "post")] {
            assert_eq!(list(wrong), None, "{wrong}");
        }
    }
}

//! What processes tell each other by `NOTIFY`: which rounds and executions have events. A hint, nothing more.

use sayso_core::error::Error;
use sayso_core::id::{ExecutionId, RoundId};

use super::batch::Concerned;
use super::write::Notice;

/// Ids in one payload: a payload may have 8,000 bytes, and an id takes 31 with its comma.
const IDS_MAX: usize = 240;
/// PostgreSQL cuts names here, and refuses to notify a channel with a longer one.
const CHANNEL_BYTES_MAX: usize = 63;

/// Writes and reads the payloads of one store object.
#[derive(Debug, Clone)]
pub(super) struct Notices {
    channel: String,
    /// Tells its own notices, of which it has told already, from those of others.
    sender: String,
}

impl Notices {
    /// Those of the stores in `schema`; a database may hold several.
    pub(super) fn new(schema: &str) -> Result<Self, Error> {
        let mut channel = String::from("sayso:");
        for letter in schema.chars().filter(|letter| *letter != '"') {
            if channel.len() + letter.len_utf8() <= CHANNEL_BYTES_MAX {
                channel.push(letter);
            }
        }
        let sender =
            getrandom::u64().map_err(|_| Error::Unavailable("the machine gives no random numbers".to_owned()))?;
        Ok(Self { channel, sender: format!("{sender:016x}") })
    }

    /// The statement that listens.
    pub(super) fn listen(&self) -> String {
        format!("LISTEN \"{}\"", self.channel)
    }

    pub(super) fn of(&self, concerned: &Concerned) -> Notice<'_> {
        let rounds = concerned.rounds.iter().map(ToString::to_string);
        let ids: Vec<String> = rounds.chain(concerned.executions.iter().map(ToString::to_string)).collect();
        let mut payloads: Vec<String> =
            ids.chunks(IDS_MAX).map(|ids| format!("{}:{}", self.sender, ids.join(","))).collect();
        if payloads.is_empty() {
            // An event about neither, such as a new credential: whoever follows the events is told.
            payloads.push(format!("{}:", self.sender));
        }
        Notice { channel: &self.channel, payloads }
    }

    /// What another process says; none for what this one said itself, or what is none of ours.
    pub(super) fn read(&self, payload: &str) -> Option<Concerned> {
        let (sender, ids) = payload.split_once(':')?;
        if sender == self.sender {
            return None;
        }
        let mut concerned = Concerned::default();
        for id in ids.split(',') {
            concerned.rounds.extend(RoundId::parse(id).ok());
            concerned.executions.extend(ExecutionId::parse(id).ok());
        }
        Some(concerned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn concerned(count: u128) -> Concerned {
        Concerned {
            rounds: (0..count).map(|n| RoundId::from_parts(1, n)).collect(),
            executions: (0..count).map(|n| ExecutionId::from_parts(1, n)).collect(),
        }
    }

    #[test]
    fn others_read_what_one_tells_and_one_does_not_hear_oneself() {
        let (one, other) = (Notices::new("public").unwrap(), Notices::new("public").unwrap());
        let notice = one.of(&concerned(200));
        assert!(notice.payloads.len() > 1 && notice.payloads.iter().all(|payload| payload.len() < 8000));
        let mut heard = Concerned::default();
        for payload in &notice.payloads {
            assert_eq!(one.read(payload), None);
            let Concerned { rounds, executions } = other.read(payload).unwrap();
            heard.rounds.extend(rounds);
            heard.executions.extend(executions);
        }
        assert_eq!(heard, concerned(200));
        let nothing = one.of(&concerned(0));
        assert_eq!(other.read(&nothing.payloads[0]), Some(concerned(0)));
    }

    #[test]
    fn a_channel_fits_whatever_the_schema_is_called() {
        let long = Notices::new(&"\u{e9}\"".repeat(60)).unwrap();
        assert!(long.channel.len() <= CHANNEL_BYTES_MAX && !long.channel.contains('"'));
        assert_eq!(long.read("nonsense"), None);
    }
}

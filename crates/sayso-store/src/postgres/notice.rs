//! What processes tell each other by `NOTIFY`: which rounds and executions have events, and of an answer that is stored by
//! itself, or another end of a wait, the round's row. A hint, nothing more: what nobody hears is found in the row.

use std::sync::Arc;

use sayso_core::error::Error;
use sayso_core::id::{ExecutionId, RoundId};
use sayso_core::round::Round;

use super::batch::Concerned;
use super::carried::Seal;
use super::write::Notice;

/// A payload is shorter than 8,000 bytes.
const PAYLOAD_BYTES_MAX: usize = 7_999;
/// Ids in one payload: an id takes 31 bytes with its comma.
const IDS_MAX: usize = 240;
/// What a carried row begins with, in the place of an id.
const ROW: &str = "row_";
/// PostgreSQL cuts names here, and refuses to notify a channel with a longer one.
const CHANNEL_BYTES_MAX: usize = 63;

/// Writes and reads the payloads of one store object.
#[derive(Clone)]
pub(super) struct Notices {
    channel: String,
    /// Tells its own notices, of which it has told already, from those of others.
    sender: String,
    seal: Seal,
}

/// What another process says.
pub(super) struct Heard {
    pub(super) concerned: Concerned,
    /// One of the rounds as that process committed it, where it says so.
    pub(super) row: Option<Arc<Round>>,
}

impl Notices {
    /// Those of the stores in `schema`, which hold this key; a database may hold several.
    pub(super) fn new(schema: &str, key: [u8; 32]) -> Result<Self, Error> {
        let mut channel = String::from("sayso:");
        for letter in schema.chars().filter(|letter| *letter != '"') {
            if channel.len() + letter.len_utf8() <= CHANNEL_BYTES_MAX {
                channel.push(letter);
            }
        }
        let sender =
            getrandom::u64().map_err(|_| Error::Unavailable("the machine gives no random numbers".to_owned()))?;
        Ok(Self { channel, sender: format!("{sender:016x}"), seal: Seal::new(key) })
    }

    /// The statement that listens.
    pub(super) fn listen(&self) -> String {
        format!("LISTEN \"{}\"", self.channel)
    }

    /// A part of the transaction that writes the row: nobody hears of a row that was not committed. None where the row does
    /// not fit.
    pub(super) fn carrying(&self, concerned: &Concerned, row: &Round) -> Option<Notice<'_>> {
        let mut words = concerned.ids();
        words.push(format!("{ROW}{}", self.seal.seal(row)?));
        let payload = format!("{}:{}", self.sender, words.join(","));
        (payload.len() <= PAYLOAD_BYTES_MAX).then_some(Notice::Within { channel: &self.channel, payload })
    }

    pub(super) fn of(&self, concerned: &Concerned) -> Notice<'_> {
        let mut payloads: Vec<String> =
            concerned.ids().chunks(IDS_MAX).map(|ids| format!("{}:{}", self.sender, ids.join(","))).collect();
        if payloads.is_empty() {
            // An event about neither, such as a new credential: whoever follows the events is told.
            payloads.push(format!("{}:", self.sender));
        }
        Notice::Behind { channel: &self.channel, payloads }
    }

    /// What another process says; none for what this one said itself, or what is none of ours.
    pub(super) fn read(&self, payload: &str) -> Option<Heard> {
        let (sender, words) = payload.split_once(':')?;
        if sender == self.sender {
            return None;
        }
        let mut heard = Heard { concerned: Concerned::default(), row: None };
        for word in words.split(',') {
            heard.concerned.rounds.extend(RoundId::parse(word).ok());
            heard.concerned.executions.extend(ExecutionId::parse(word).ok());
            if let Some(row) = word.strip_prefix(ROW).and_then(|sealed| self.seal.open(sealed)) {
                heard.row = Some(Arc::new(row));
            }
        }
        Some(heard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::answered;

    const KEY: [u8; 32] = [7; 32];

    fn notices(key: [u8; 32]) -> Notices {
        Notices::new("public", key).unwrap()
    }

    fn concerned(count: u128) -> Concerned {
        Concerned {
            rounds: (0..count).map(|n| RoundId::from_parts(1, n)).collect(),
            executions: (0..count).map(|n| ExecutionId::from_parts(1, n)).collect(),
        }
    }

    fn hints(notice: Notice<'_>) -> Vec<String> {
        match notice {
            Notice::Behind { payloads, .. } => payloads,
            Notice::Within { .. } => panic!("carries a row"),
        }
    }

    fn carried(notices: &Notices, row: &Round) -> Option<String> {
        match notices.carrying(&concerned(1), row)? {
            Notice::Within { payload, .. } => Some(payload),
            Notice::Behind { .. } => panic!("carries nothing"),
        }
    }

    #[test]
    fn others_read_what_one_tells_and_one_does_not_hear_oneself() {
        let (one, other) = (notices(KEY), notices(KEY));
        let payloads = hints(one.of(&concerned(200)));
        assert!(payloads.len() > 1 && payloads.iter().all(|payload| payload.len() <= PAYLOAD_BYTES_MAX));
        let mut all = Concerned::default();
        for payload in &payloads {
            assert!(one.read(payload).is_none());
            let Heard { concerned: Concerned { rounds, executions }, row } = other.read(payload).unwrap();
            all.rounds.extend(rounds);
            all.executions.extend(executions);
            assert!(row.is_none());
        }
        assert_eq!(all, concerned(200));
        assert_eq!(other.read(&hints(one.of(&concerned(0)))[0]).unwrap().concerned, concerned(0));
    }

    #[test]
    fn a_row_is_read_by_those_with_the_key_and_by_nobody_else() {
        let (one, other, stranger) = (notices(KEY), notices(KEY), notices([8; 32]));
        let row = answered("main");
        let payload = carried(&one, &row).unwrap();
        assert!(one.read(&payload).is_none());
        let heard = other.read(&payload).unwrap();
        assert_eq!((heard.row.as_deref(), heard.concerned), (Some(&row), concerned(1)));
        // Whoever cannot open it is told that the round changed, as ever.
        let heard = stranger.read(&payload).unwrap();
        assert_eq!((heard.row, heard.concerned), (None, concerned(1)));
        assert!(!payload.contains("main") && !payload.contains("answer-1"));
        assert_ne!(carried(&one, &row), Some(payload), "sealed anew each time");
    }

    #[test]
    fn a_row_that_anybody_has_changed_on_the_way_is_none() {
        let (one, other) = (notices(KEY), notices(KEY));
        let payload = carried(&one, &answered("main")).unwrap();
        let (before, sealed) = payload.split_once(ROW).unwrap();
        for at in 0..sealed.len() {
            let letter = if sealed.as_bytes()[at] == b'A' { "B" } else { "A" };
            let changed = format!("{before}{ROW}{}{letter}{}", &sealed[..at], &sealed[at + 1..]);
            assert!(other.read(&changed).unwrap().row.is_none(), "{at}");
        }
        for cut in [0, 1, 31, 32, 33, sealed.len() - 1] {
            assert!(other.read(&format!("{before}{ROW}{}", &sealed[..cut])).unwrap().row.is_none(), "{cut}");
        }
    }

    #[test]
    fn a_row_that_does_not_fit_stays_behind() {
        let one = notices(KEY);
        let of = |length: usize| carried(&one, &answered(&"x".repeat(length)));
        let lengths: Vec<usize> = (0..8_000).collect();
        let payload = of(lengths.partition_point(|length| of(*length).is_some()) - 1).unwrap();
        assert!((PAYLOAD_BYTES_MAX - 4..=PAYLOAD_BYTES_MAX).contains(&payload.len()));
    }

    #[test]
    fn a_channel_fits_whatever_the_schema_is_called() {
        let long = Notices::new(&"\u{e9}\"".repeat(60), KEY).unwrap();
        assert!(long.channel.len() <= CHANNEL_BYTES_MAX && !long.channel.contains('"'));
        assert!(long.read("nonsense").is_none());
    }
}

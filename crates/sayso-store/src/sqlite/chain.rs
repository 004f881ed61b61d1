//! The end of the event chain, within one transaction: each event gets its place there, and all are stored at the end.

use rusqlite::Connection;
use sayso_core::event::{Event, NewEvent};

use super::reader::ReadError;
use super::rows;
use super::statements::{Sql, Statements};

/// Events of a list at most: a page of events never reads much more than it needs.
const EVENTS_A_LIST: usize = 64;

/// The end of the event chain, within one transaction.
pub(super) struct Chain {
    last_seq: u64,
    last_hash: [u8; 32],
    /// Events of this transaction that are not stored yet.
    waiting: Vec<Event>,
}

/// A place in the chain.
pub(super) struct Mark {
    last_seq: u64,
    last_hash: [u8; 32],
    waiting: usize,
}

impl Chain {
    pub(super) fn load(db: &Connection) -> Result<Self, ReadError> {
        let (last_seq, last_hash) = rows::last_event(db)?;
        Ok(Self { last_seq, last_hash, waiting: Vec::new() })
    }

    /// Where the chain ends now, to go back to.
    pub(super) fn mark(&self) -> Mark {
        Mark { last_seq: self.last_seq, last_hash: self.last_hash, waiting: self.waiting.len() }
    }

    /// Takes back the events since `mark`, none of which is stored yet.
    pub(super) fn back_to(&mut self, mark: Mark) {
        (self.last_seq, self.last_hash) = (mark.last_seq, mark.last_hash);
        self.waiting.truncate(mark.waiting);
    }

    /// The number of the last event.
    pub(super) fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// Gives the event its place. It is stored with the others of its transaction, by [`Chain::store`].
    pub(super) fn append(&mut self, event: NewEvent) {
        let event = Event::chained(event, self.last_seq.saturating_add(1), self.last_hash);
        (self.last_seq, self.last_hash) = (event.seq, event.hash);
        self.waiting.push(event);
    }

    /// Stores the events that have been given their places. Nothing in a transaction reads them.
    pub(super) fn store(&mut self, statements: &Statements<'_>) -> Result<(), ReadError> {
        for events in self.waiting.chunks(EVENTS_A_LIST) {
            let (Some(first), Some(last)) = (events.first(), events.last()) else { continue };
            let list = rows::event_list(events.iter().map(|event| &event.event))?;
            statements.run(Sql::InsertEvents, |to| {
                to.put(i64::try_from(last.seq).unwrap_or(i64::MAX))?;
                to.put(last.event.at.0)?;
                to.put(first.previous_hash)?;
                to.put(last.hash)?;
                to.put(list)
            })?;
        }
        self.waiting.clear();
        Ok(())
    }
}

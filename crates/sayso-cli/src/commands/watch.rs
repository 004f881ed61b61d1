//! `sayso watch`: what is asked and what becomes of it, a line each.

use std::collections::VecDeque;
use std::time::Duration;

use clap::Args as ClapArgs;
use sayso::wire::StoredEvent;
use sayso::{Error, People as _, RoundFilter, Status, limits, wire};
use sayso_core::event::EventBody;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, timeout_at};

use crate::args::Place;
use crate::credential::Stdin;
use crate::data_folder::Missing;
use crate::error::CommandError;
use crate::session::Session;
use crate::{exit, output, render};

/// Follow what is asked and what becomes of it, a line each
#[derive(Debug, ClapArgs)]
#[command(after_help = exit::help(&[
    "sayso watch",
    "sayso watch --since 0 --json          every event there is, then what comes",
    "sayso watch --once --wait 60 --json   the first pending round, for a script",
]))]
pub struct WatchArgs {
    /// Begin after the event of this number instead of now
    #[arg(long, value_name = "SEQ")]
    since: Option<u64>,
    /// Print the oldest pending round, waiting for one if there is none, and end
    #[arg(long, conflicts_with = "since")]
    once: bool,
    /// With --once: give up after so many seconds
    #[arg(long, requires = "once", value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    wait: Option<u32>,
    /// Print each event (with --once: the round) as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Follows until Ctrl-C, which is how it is meant to end.
pub async fn run(place: &Place, args: WatchArgs) -> Result<(), CommandError> {
    let session = Session::open(place, Stdin::Keys, Missing::Create).await?;
    if args.once {
        return once(&session, &args).await;
    }
    let mut interrupt = signal(SignalKind::interrupt()).map_err(CommandError::Runtime)?;
    tokio::select! {
        ended = follow(&session, &args) => ended,
        _ = interrupt.recv() => Ok(()),
    }
}

async fn follow(session: &Session, args: &WatchArgs) -> Result<(), CommandError> {
    let mut events = Events::from(session, args.since).await?;
    output::note("Watching. Ctrl-C ends it.");
    loop {
        let event = events.next().await?;
        // What the policy decides in a person's place has no round.
        if event.round_id.is_none() && !matches!(event.body, EventBody::Approval { .. }) {
            continue;
        }
        if args.json {
            output::json(&event)?;
        } else if let Some(line) = line(session, &event).await? {
            output::text(&line)?;
        }
    }
}

/// The events of the store in order, from a place in the sequence on.
struct Events<'a> {
    session: &'a Session,
    feed: sayso::EventFeed,
    seq: u64,
    read: VecDeque<StoredEvent>,
}

impl<'a> Events<'a> {
    async fn from(session: &'a Session, since: Option<u64>) -> Result<Self, CommandError> {
        // Subscribed before reading, so that nothing falls in between.
        let feed = session.sayso.event_feed();
        let seq = match since {
            Some(seq) => seq,
            None => session.sayso.last_event().await?,
        };
        Ok(Self { session, feed, seq, read: VecDeque::new() })
    }

    async fn next(&mut self) -> Result<StoredEvent, CommandError> {
        loop {
            if let Some(event) = self.read.pop_front() {
                return Ok(event);
            }
            let last = self.session.sayso.last_event().await?;
            let events = self.session.sayso.events_after(&self.session.caller, self.seq).await?;
            self.read.extend(events.iter().map(StoredEvent::from));
            match self.read.back() {
                Some(event) => self.seq = event.seq,
                // A page that held only what this caller may not see: the sequence has no gaps, so it is stepped over.
                None if self.seq < last => self.seq = last.min(self.seq.saturating_add(limits::PAGE_ROWS_MAX as u64)),
                None => self.feed.maybe_more().await,
            }
        }
    }
}

async fn line(session: &Session, event: &StoredEvent) -> Result<Option<String>, CommandError> {
    let round = match (&event.body, event.round_id) {
        (EventBody::RoundCreated | EventBody::Failed { .. }, Some(id)) => Some(session.people().show(id).await?),
        _ => None,
    };
    Ok(render::event(event, round.as_ref()))
}

async fn once(session: &Session, args: &WatchArgs) -> Result<(), CommandError> {
    let until = args.wait.map(|seconds| Instant::now() + Duration::from_secs(u64::from(seconds)));
    let mut feed = session.sayso.event_feed();
    let round = loop {
        if let Some(round) = oldest_pending(session).await? {
            break round;
        }
        match until {
            Some(until) => timeout_at(until, feed.maybe_more()).await.map_err(|_| Error::Timeout)?,
            None => feed.maybe_more().await,
        }
    };
    if args.json { output::json(&round) } else { output::text(&render::rounds(&[round], render::now(), false)) }
}

async fn oldest_pending(session: &Session) -> Result<Option<wire::Round>, CommandError> {
    let mut oldest = None;
    let mut before = None;
    loop {
        let filter = RoundFilter { status: Some(Status::Pending), before, ..RoundFilter::default() };
        let page = session.people().list(filter).await?;
        oldest = page.rounds.into_iter().next_back().or(oldest);
        match page.next_cursor {
            Some(cursor) => before = Some(cursor),
            None => return Ok(oldest),
        }
    }
}

//! What is asked of both kinds of database in the same words, and what the answers mean.

use std::collections::BTreeMap;

use sayso_core::id::RoundId;
use sayso_core::time::UnixMs;

use super::{Examined, OwnerFacts, TokenFacts};

/// Rows of a list at most: enough to see what is going on.
const ROWS: usize = 1000;
/// Rounds that are named.
const NAMED: usize = 5;

/// A column of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cell {
    Nothing,
    Number(i64),
    Text(String),
    Id([u8; 16]),
}

/// The rows of one answer.
pub(crate) type Table = Vec<Vec<Cell>>;

/// One thing that is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Question {
    Rounds,
    Overdue,
    AbandonedRounds,
    AbandonedExecutions,
    Interrupted,
    InterruptedNames,
    Owners,
    Stamps,
    Tokens,
    /// A kind of row that lacks something: what, in words.
    Orphans(&'static str),
}

impl Question {
    /// What is asked, in words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Rounds => "how many rounds there are",
            Self::Overdue => "which are overdue",
            Self::AbandonedRounds | Self::AbandonedExecutions => "what is abandoned",
            Self::Interrupted | Self::InterruptedNames => "which deliveries were interrupted",
            Self::Owners => "the workers",
            Self::Stamps => "the newest stamp",
            Self::Tokens => "the credentials",
            Self::Orphans(what) => what,
        }
    }
}

const UNFINISHED: &str = "finished_at IS NULL";

/// Rows that lack what belongs to them: in words, and where they are. Each is looked for by key, never by scanning twice.
pub(crate) type Orphans = [(&'static str, &'static str)];

/// Everything that is asked, at `now`. `events_at` are the times of events, the newest among them: a column `at`.
pub(crate) fn questions(now: UnixMs, orphans: &Orphans, events_at: &str) -> Vec<(Question, String)> {
    let now = now.0;
    // A lease that is not there has run out as well.
    let lapsed = format!("(owners.expires_at IS NULL OR owners.expires_at <= {now})");
    let interrupted = format!(
        "FROM rounds LEFT JOIN owners ON owners.owner = rounds.owner
         WHERE rounds.status = 'delivery_started' AND rounds.delivery = 'resumable' AND {lapsed}"
    );
    // Of each kind what goes on in a worker, counted in one pass.
    let going_on = |kind| {
        format!(
            "(SELECT owner, count(*) AS how_many FROM {kind} WHERE owner IS NOT NULL AND {UNFINISHED} GROUP BY owner)"
        )
    };
    let (held, lives) = (going_on("rounds"), going_on("executions"));
    let mut all = vec![
        (Question::Rounds, "SELECT status, delivery, count(*) FROM rounds GROUP BY status, delivery".to_owned()),
        (
            Question::Overdue,
            format!("SELECT count(*) FROM rounds WHERE status = 'pending' AND deadline IS NOT NULL AND deadline < {now}"),
        ),
        (
            Question::AbandonedRounds,
            format!(
                "SELECT count(*) FROM rounds LEFT JOIN owners ON owners.owner = rounds.owner
                 WHERE rounds.owner IS NOT NULL AND rounds.{UNFINISHED} AND rounds.delivery = 'live' AND {lapsed}"
            ),
        ),
        (
            Question::AbandonedExecutions,
            format!(
                "SELECT count(*) FROM executions LEFT JOIN owners ON owners.owner = executions.owner
                 WHERE executions.owner IS NOT NULL AND executions.{UNFINISHED} AND {lapsed}
                   AND executions.id NOT IN (SELECT execution_id FROM rounds WHERE {UNFINISHED})"
            ),
        ),
        (Question::Interrupted, format!("SELECT count(*) {interrupted}")),
        (Question::InterruptedNames, format!("SELECT rounds.id {interrupted} ORDER BY rounds.id LIMIT {NAMED}")),
        (
            Question::Owners,
            format!(
                "SELECT named.owner, owners.expires_at, coalesce(held.how_many, 0), coalesce(lives.how_many, 0)
                 FROM (SELECT owner FROM owners WHERE expires_at IS NOT NULL
                       UNION SELECT owner FROM {held} AS holding UNION SELECT owner FROM {lives} AS living) AS named
                 LEFT JOIN owners ON owners.owner = named.owner LEFT JOIN {held} AS held ON held.owner = named.owner
                 LEFT JOIN {lives} AS lives ON lives.owner = named.owner ORDER BY named.owner LIMIT {ROWS}"
            ),
        ),
        (
            Question::Stamps,
            format!(
                "SELECT max(at) FROM (SELECT max(created_at) AS at FROM rounds UNION ALL SELECT max(finished_at) FROM rounds
                 UNION ALL SELECT max(at) FROM {events_at}) AS stamps"
            ),
        ),
        (Question::Tokens, "SELECT expires_at, revoked_at FROM tokens WHERE use = 'api'".to_owned()),
    ];
    let orphans = orphans.iter().map(|(what, from)| (Question::Orphans(what), format!("SELECT count(*) {from}")));
    all.extend(orphans);
    all
}

fn number(cell: Option<&Cell>) -> Option<i64> {
    match cell {
        Some(Cell::Number(number)) => Some(*number),
        _ => None,
    }
}

fn count(table: &Table) -> u64 {
    counted(table.first().and_then(|row| row.first()))
}

fn counted(cell: Option<&Cell>) -> u64 {
    number(cell).and_then(|number| u64::try_from(number).ok()).unwrap_or_default()
}

fn text(cell: Option<&Cell>) -> String {
    match cell {
        Some(Cell::Text(text)) => text.clone(),
        _ => "unknown".to_owned(),
    }
}

/// Puts the answers where they belong.
pub(crate) fn read(examined: &mut Examined, now: UnixMs, mut answers: BTreeMap<Question, Table>) {
    if let Some(rounds) = answers.remove(&Question::Rounds) {
        let of = |row: &Vec<Cell>| (text(row.first()), text(row.get(1)), counted(row.get(2)));
        examined.rounds = rounds.iter().map(of).collect();
    }
    examined.overdue = answers.remove(&Question::Overdue).as_ref().map(count);
    examined.abandoned =
        match (answers.remove(&Question::AbandonedRounds), answers.remove(&Question::AbandonedExecutions)) {
            (Some(rounds), Some(executions)) => Some(count(&rounds).saturating_add(count(&executions))),
            _ => None,
        };
    if let Some(interrupted) = answers.remove(&Question::Interrupted) {
        let id = |row: &Vec<Cell>| match row.first() {
            Some(Cell::Id(bytes)) => Some(RoundId::from_bytes(*bytes)),
            _ => None,
        };
        let named = answers.remove(&Question::InterruptedNames).unwrap_or_default();
        examined.interrupted = Some((count(&interrupted), named.iter().filter_map(id).collect()));
    }
    if let Some(owners) = answers.remove(&Question::Owners) {
        let of = |row: &Vec<Cell>| OwnerFacts {
            owner: text(row.first()),
            expires_at: number(row.get(1)).map(UnixMs),
            rounds: counted(row.get(2)),
            executions: counted(row.get(3)),
        };
        examined.owners = owners.iter().map(of).collect();
    }
    if let Some(stamps) = answers.remove(&Question::Stamps) {
        examined.newest_stamp = number(stamps.first().and_then(|row| row.first())).map(UnixMs);
    }
    examined.tokens = answers.remove(&Question::Tokens).map(|tokens| tokens_of(&tokens, now));
    for (question, table) in answers {
        if let Question::Orphans(what) = question {
            examined.orphans.push((what, count(&table)));
        }
    }
}

fn tokens_of(table: &Table, now: UnixMs) -> TokenFacts {
    let mut facts = TokenFacts::default();
    for row in table {
        let (end, revoked) = (number(row.first()).map(UnixMs), number(row.get(1)));
        if revoked.is_some() || end.is_some_and(|end| end <= now) {
            facts.over = facts.over.saturating_add(1);
            continue;
        }
        facts.good = facts.good.saturating_add(1);
        facts.next_end = [facts.next_end, end].into_iter().flatten().min();
    }
    facts
}

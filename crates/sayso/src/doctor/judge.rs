//! What both kinds of store have: rounds, workers, the chain, credentials.

use sayso_core::limits::LEASE_MS;
use sayso_core::round::{Delivery, Status};
use sayso_core::time::UnixMs;
use sayso_store::examine::{Backing, Examined, OwnerFacts};

use super::Finding;

/// A stamp this far in the future is not two machines' clocks differing.
const FUTURE_MS_MAX: i64 = 60_000;
/// Credentials that end within this are mentioned: long enough to replace one.
const TOKEN_ENDS_SOON_MS: i64 = 7 * 24 * 60 * 60 * 1000;
/// Sweepers look once a second: what is older than this has found none.
const SWEEPERS: &str = "a running `sayso serve` or gateway does it; where none runs, the next one to start will";

pub(super) fn judge(facts: &Examined, found: &mut Vec<Finding>) {
    if !facts.unread.is_empty() {
        let detail = format!("what follows is not all: {}", facts.unread.join("; "));
        found.push(Finding::problem("reading", detail, "restore a backup, or look at the disk and at who may read it"));
    }
    schema(facts, found);
    match &facts.damage {
        Some(lines) if lines.is_empty() => found.push(Finding::ok("integrity", "the file is whole")),
        Some(lines) => {
            let detail = format!("the file is damaged: {}", lines.join("; "));
            let help = "stop everything that uses it, keep a copy of the folder, and restore a backup";
            found.push(Finding::problem("integrity", detail, help));
        }
        None => {}
    }
    chain(facts, found);
    rounds(facts, found);
    waiting_for_somebody(facts, found);
    workers(facts, found);
    for (what, count) in facts.orphans.iter().filter(|(_, count)| *count > 0) {
        let help = "no version of sayso writes this: restore a backup, and report it";
        found.push(Finding::problem("rows", format!("{count} {what}"), help));
    }
    if !facts.orphans.is_empty() && facts.orphans.iter().all(|(_, count)| *count == 0) {
        found.push(Finding::ok("rows", "every row has what belongs to it"));
    }
    clock(facts, found);
    tokens(facts, found);
}

fn schema(facts: &Examined, found: &mut Vec<Finding>) {
    let known = facts.schema_known;
    match facts.schema_version {
        Some(version) if version > known => {
            let detail = format!("version {version}, and this sayso knows {known}: a newer one has upgraded the store");
            found.push(Finding::problem(
                "schema",
                detail,
                "use that version; older processes that still run must be restarted",
            ));
        }
        Some(version) if version < known => {
            let detail = format!("version {version}; the first process of this version makes it {known}");
            found.push(Finding::warning("schema", detail, "back the store up first"));
        }
        Some(version) => found.push(Finding::ok("schema", format!("version {version}, as this sayso knows it"))),
        None if facts.unread.is_empty() && facts.damage.is_none() && is_there(facts) => {
            let help = "the first process that opens the store writes them";
            found.push(Finding::warning("schema", "there are no tables of sayso in it", help));
        }
        None => {}
    }
}

/// Whether there is anything that could hold a store.
fn is_there(facts: &Examined) -> bool {
    match &facts.backing {
        Some(Backing::File(file)) => file.is_file,
        Some(Backing::Database(_)) => true,
        None => false,
    }
}

fn chain(facts: &Examined, found: &mut Vec<Finding>) {
    let Some(chain) = &facts.chain else { return };
    found.push(match &chain.broken {
        None => Finding::ok("chain", format!("{} events, each linked to the one before it", chain.linked)),
        Some(broken) => {
            let detail = format!("{broken}; the {} before are whole", chain.linked);
            let help = "somebody changed the store by hand, or the disk did: compare with a backup";
            Finding::problem("chain", detail, help)
        }
    });
}

fn rounds(facts: &Examined, found: &mut Vec<Finding>) {
    if facts.schema_version.is_none() || facts.overdue.is_none() {
        return;
    }
    let total: u64 = facts.rounds.iter().map(|(_, _, count)| count).sum();
    let mut by_state: Vec<(&str, u64)> = Vec::new();
    for (status, _, count) in &facts.rounds {
        match by_state.iter_mut().find(|(known, _)| known == status) {
            Some((_, sum)) => *sum = sum.saturating_add(*count),
            None => by_state.push((status, *count)),
        }
    }
    by_state.sort_unstable();
    let parts: Vec<_> = by_state.iter().map(|(status, count)| format!("{count} {status}")).collect();
    let of = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
    found.push(Finding::ok("rounds", format!("{total}{of}")));
}

/// What is over, or waits, and what becomes of it.
fn waiting_for_somebody(facts: &Examined, found: &mut Vec<Finding>) {
    if let Some(overdue) = facts.overdue.filter(|count| *count > 0) {
        let detail = format!("{overdue} pending rounds are past their deadline; they will fail as expired");
        found.push(Finding::warning("overdue", detail, SWEEPERS));
    }
    if let Some(abandoned) = facts.abandoned.filter(|count| *count > 0) {
        let detail = format!(
            "{abandoned} live rounds or executions have lost their worker; they will fail as recovery_unavailable, or \
             end as lost, unless it renews within {} s",
            LEASE_MS / 1000
        );
        found.push(Finding::warning("abandoned", detail, SWEEPERS));
    }
    if let Some((count, named)) = facts.interrupted.as_ref().filter(|(count, _)| *count > 0) {
        let names: Vec<_> = named.iter().map(ToString::to_string).collect();
        let detail = format!(
            "{count} answers were on their way when their worker ended, and nobody can tell whether they arrived: {}",
            names.join(", ")
        );
        let help = "they are not sent again by themselves: a worker claims each with evidence of what became of it";
        found.push(Finding::warning("interrupted", detail, help));
    }
    let answered = |(status, delivery, _): &&(String, String, u64)| {
        status == Status::ResponseValidated.as_str() && delivery == Delivery::Resumable.as_str()
    };
    let uncollected: u64 = facts.rounds.iter().filter(answered).map(|(_, _, count)| count).sum();
    if uncollected > 0 {
        found.push(Finding::ok("uncollected", format!("{uncollected} answers wait for their agents to collect them")));
    }
}

fn workers(facts: &Examined, found: &mut Vec<Finding>) {
    let Some(now) = facts.now else { return };
    let lives = |owner: &&OwnerFacts| owner.expires_at.is_some_and(|until| now < until);
    let (live, gone): (Vec<&OwnerFacts>, Vec<&OwnerFacts>) = facts.owners.iter().partition(lives);
    let held: u64 = live.iter().map(|owner| owner.rounds).sum();
    if facts.overdue.is_some() {
        found.push(Finding::ok("workers", format!("{} with a live lease, holding {held} rounds", live.len())));
    }
    let idle = gone.iter().filter(|owner| owner.rounds == 0 && owner.executions == 0).count();
    if idle > 0 {
        let detail = format!("{idle} rows of workers that are gone and held nothing; they do no harm");
        found.push(Finding::ok("leftovers", detail));
    }
    let too_long =
        |owner: &&OwnerFacts| owner.expires_at.is_some_and(|until| until.0 - now.0 > LEASE_MS + FUTURE_MS_MAX);
    let long = live.iter().copied().filter(too_long).count();
    if long > 0 {
        let detail = format!("{long} leases are good for longer than any lease is: the clock was set back");
        found.push(Finding::warning(
            "clock",
            detail,
            "workers of these that are gone are noticed only when they run out",
        ));
    }
}

fn clock(facts: &Examined, found: &mut Vec<Finding>) {
    let (Some(now), Some(newest)) = (facts.now, facts.newest_stamp) else { return };
    let ahead_ms = newest.0.saturating_sub(now.0);
    if ahead_ms > FUTURE_MS_MAX {
        let detail = format!("the newest row was written at {newest}, which is {} s from now", ahead_ms / 1000);
        let help = "the clock was set back, or was wrong then: deadlines and leases count by it, so set it right";
        found.push(Finding::warning("clock", detail, help));
    } else {
        found.push(Finding::ok("clock", format!("now is {now}; no row is from the future")));
    }
}

fn tokens(facts: &Examined, found: &mut Vec<Finding>) {
    let (Some(tokens), Some(now)) = (facts.tokens, facts.now) else { return };
    let soon = |end: &UnixMs| end.0.saturating_sub(now.0) < TOKEN_ENDS_SOON_MS;
    match tokens.next_end.filter(soon) {
        Some(end) => {
            let detail = format!("{} are good, and the next one ends at {end}", tokens.good);
            found.push(Finding::warning("tokens", detail, "`sayso token new` makes another"));
        }
        None => found.push(Finding::ok("tokens", format!("{} are good, {} revoked or over", tokens.good, tokens.over))),
    }
}

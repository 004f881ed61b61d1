//! A database server: what it keeps, and whether its events keep up.

use sayso_core::time::UnixMs;
use sayso_store::examine::DatabaseFacts;

use super::Finding;

/// The oldest server that this is tested with, as PostgreSQL numbers its versions.
const VERSION_MIN: u32 = 13;
/// Events have their place within 50 ms; this late, nobody gives it to them.
const BEHIND_MS_MAX: i64 = 10_000;

pub(super) fn judge(server: &DatabaseFacts, now: Option<UnixMs>, found: &mut Vec<Finding>) {
    let setting = |name: &str| server.settings.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    version(setting("server_version"), found);
    let before = found.len();
    for (name, why) in [
        ("fsync", "what was acknowledged may be lost when the machine stops"),
        ("full_page_writes", "a page that was half written cannot be mended when the machine stops"),
    ] {
        if setting(name) == Some("off") {
            found.push(Finding::problem("durability", format!("{name} is off: {why}"), format!("set {name} = on")));
        }
    }
    if setting("synchronous_commit") == Some("off") {
        let detail = "synchronous_commit is off: what was acknowledged in the last moments may be lost in a crash";
        found.push(Finding::problem("durability", detail, "set synchronous_commit = on, for this user or database"));
    }
    if found.len() == before && setting("fsync").is_some() {
        let detail = format!("fsync on, synchronous_commit {}", setting("synchronous_commit").unwrap_or("unknown"));
        found.push(Finding::ok("durability", detail));
    }
    if setting("transaction_read_only").is_none() {
        found.push(Finding::warning("server", "the settings cannot be read", "docs/scale.md says what is needed"));
    }
    if setting("jit") == Some("on") {
        let detail = "jit is on; connections of sayso that write turn it off for themselves, reading ones do not";
        found.push(Finding::ok("jit", detail));
    }
    match server.listens {
        Some(true) => found.push(Finding::ok("listen", "LISTEN works")),
        Some(false) => {
            let help = "run with --poll-only: changes are then looked for every 25 ms";
            found.push(Finding::warning("listen", "LISTEN does not work here", help));
        }
        None => {}
    }
    sequencer(server, now, found);
}

fn version(version: Option<&str>, found: &mut Vec<Finding>) {
    let Some(version) = version else { return };
    let major = version.split(|c: char| !c.is_ascii_digit()).next().and_then(|digits| digits.parse::<u32>().ok());
    found.push(match major {
        Some(major) if major < VERSION_MIN => {
            let detail = format!("version {version} is older than {VERSION_MIN}");
            Finding::warning("server", detail, "it is not tested with that; docs/scale.md says with which")
        }
        _ => Finding::ok("server", format!("version {version}")),
    });
}

fn sequencer(server: &DatabaseFacts, now: Option<UnixMs>, found: &mut Vec<Finding>) {
    let Some((waiting, oldest)) = server.behind else { return };
    let late = oldest.zip(now).map_or(0, |(oldest, now)| now.0.saturating_sub(oldest.0));
    let is_held = server.sequencer.as_ref().zip(now).is_some_and(|((_, until), now)| now < *until);
    let holder = match &server.sequencer {
        Some((owner, _)) if is_held => format!("process {owner} numbers events"),
        Some((owner, until)) => format!("nobody numbers events; process {owner} did until {until}"),
        None => "nobody numbers events".to_owned(),
    };
    if waiting == 0 {
        found.push(Finding::ok("sequencer", format!("{holder}; none waits")));
    } else if is_held && late < BEHIND_MS_MAX {
        found.push(Finding::ok("sequencer", format!("{holder}; {waiting} wait, the oldest for {late} ms")));
    } else {
        let detail = format!("{holder}; {waiting} events wait for their number, the oldest for {late} ms");
        let help = "any process that serves the store takes over within 3 s; if one runs, look at its connections";
        found.push(Finding::warning("sequencer", detail, help));
    }
}

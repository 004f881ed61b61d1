//! Shell commands: cut into the commands they are made of, or found to be more than can be judged.
//!
//! What restricts looks into every part and takes what it cannot read for the worst. What permits must cover every part,
//! and covers nothing that it cannot read.

mod folder;
mod pattern;
mod split;

pub use folder::WorkFolder;
pub use pattern::CommandPattern;
pub use split::{Opaque, Segment, split};

use pattern::{covers_segment, runs_another, starts};

/// Whether patterns that restrict find something in a command: yes, no, or none if that cannot be said.
pub(super) fn finds(patterns: &[CommandPattern], command: &str) -> Option<bool> {
    let found = |words: &[String]| starts(words).any(|from| patterns.iter().any(|pattern| pattern.finds(from)));
    match split(command) {
        Ok(segments) if segments.iter().any(|segment| found(&segment.words)) => Some(true),
        Ok(segments) if segments.iter().any(|segment| runs_another(&segment.words)) => None,
        Ok(_) => Some(false),
        Err(_) => split::loose(command).iter().any(|words| found(words)).then_some(true),
    }
}

/// Whether patterns that permit cover the whole of a command. A leading `cd` into the work folder needs no pattern of
/// its own.
pub(super) fn covers(
    patterns: &[CommandPattern],
    command: &str,
    folder: Option<&WorkFolder<'_>>,
) -> Result<bool, Opaque> {
    let covers_all = |segments: Vec<Segment>| segments.iter().all(|segment| covers_segment(patterns, segment));
    let as_it_is = covers_all(split(command)?);
    let rest = folder.and_then(|folder| folder.after_cd(command));
    Ok(as_it_is || rest.is_some_and(|rest| split(rest).is_ok_and(covers_all)))
}

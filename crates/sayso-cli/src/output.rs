//! Standard output and standard error: results go to the one, everything said about them to the other.

use std::io::{self, Write as _};

use sayso_core::json::{visible, visible_multiline};
use serde::Serialize;

use crate::error::CommandError;

/// Prints a result for a person. The text is made visible already; a line break is added where one is missing.
pub fn text(text: &str) -> Result<(), CommandError> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}

/// Prints a result as one JSON object.
pub fn json<T: Serialize>(value: &T) -> Result<(), CommandError> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, value).map_err(io::Error::from)?;
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}

/// Says something beside the result. Nobody listening is no failure.
pub fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Says why a command was not done: as a problem of the wire with `json`, else as sentences that say what to do.
pub fn error(error: &CommandError, json: bool) {
    if matches!(error, CommandError::Output(broken) if broken.kind() == io::ErrorKind::BrokenPipe) {
        return;
    }
    if matches!(error, CommandError::NotAllowed { .. } | CommandError::Run { .. }) {
        // Printed as the result, and told by the exit code.
        return;
    }
    if matches!(error, CommandError::NotPassed { .. } | CommandError::Found { .. }) {
        // The result on standard output says it all; a person is told once more at the end.
        if !json {
            note(&error.to_string());
        }
        return;
    }
    let problem = error.problem();
    if json {
        note(&serde_json::to_string(&problem).unwrap_or_default());
        return;
    }
    let code = match error {
        CommandError::Interrupted | CommandError::Stopped => "interrupted",
        _ => &problem.code,
    };
    let mut lines = vec![format!("error[{code}]: {}", visible_multiline(&error.to_string()))];
    for field in &problem.fields {
        lines.push(format!("  field {}: {}", visible(&field.pointer), visible(&field.message)));
    }
    if let Some(winner) = &problem.winner {
        let action = winner.action.map(|action| format!(" ({})", action.as_str())).unwrap_or_default();
        let who = winner.principal.to_string();
        lines.push(format!(
            "  answered by {} through {} at {}{action}",
            visible(&who),
            winner.channel.as_str(),
            winner.at
        ));
    }
    lines.push(format!("help: {}", error.help()));
    note(&lines.join("\n"));
}

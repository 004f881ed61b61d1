//! How the command ends. These numbers are public: scripts rely on them, so they only ever grow.

use std::fmt::Write as _;
use std::process::ExitCode;

use sayso::Error;

/// The exit codes, as `docs/cli.md` and every `--help` list them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// It was done.
    Done = 0,
    /// Something that should not happen, such as stored state that cannot be read.
    Unexpected = 1,
    /// The command line could not be understood.
    Usage = 2,
    /// An answer or argument does not fit; the error names the fields.
    NotValid = 3,
    /// Somebody else was first, or what was shown is no longer what is pending.
    Conflict = 4,
    /// The round has ended, expired, or is in another state than this needs.
    State = 5,
    /// A credential is needed, or this one does not allow it.
    Credential = 6,
    /// There is no such round, token or data folder.
    NotFound = 7,
    /// The store, a file or an address cannot be used now.
    Unavailable = 8,
    /// The wait ended first; the round goes on.
    Timeout = 9,
    /// A plan was run, and not every operation passed.
    NotPassed = 10,
    /// The call is denied.
    Denied = 11,
    /// A person is asked about the call.
    Asks = 12,
    /// `doctor` looked, and found something to look at.
    Found = 13,
    /// A run of an agent ended, and not with its model's last word.
    RunEnded = 14,
    /// The person left before anything was sent.
    Interrupted = 130,
}

impl Exit {
    /// Every code, in order.
    pub const ALL: [Self; 16] = [
        Self::Done,
        Self::Unexpected,
        Self::Usage,
        Self::NotValid,
        Self::Conflict,
        Self::State,
        Self::Credential,
        Self::NotFound,
        Self::Unavailable,
        Self::Timeout,
        Self::NotPassed,
        Self::Denied,
        Self::Asks,
        Self::Found,
        Self::RunEnded,
        Self::Interrupted,
    ];

    /// What the code means, for a list of them.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Unexpected => "unexpected, such as stored state that cannot be read",
            Self::Usage => "the command line could not be understood",
            Self::NotValid => "not valid: the error names the fields",
            Self::Conflict => "somebody else was first, or what was shown is no longer pending",
            Self::State => "the round has ended or expired",
            Self::Credential => "a credential is needed, or this one does not allow it",
            Self::NotFound => "no such round, token or data folder",
            Self::Unavailable => "the store, a file or an address cannot be used now",
            Self::Timeout => "the wait ended first; the round goes on",
            Self::NotPassed => "a plan was run, and not every operation passed",
            Self::Denied => "the call is denied",
            Self::Asks => "a person is asked about the call, or the run waits for one",
            Self::Found => "`doctor` found warnings or problems",
            Self::RunEnded => "a run failed or was cancelled",
            Self::Interrupted => "interrupted; nothing was sent",
        }
    }

    /// The code that an error of the library ends with.
    pub fn of(error: &Error) -> Self {
        match error {
            Error::Validation { .. } | Error::Model(_) | Error::Limit(_) => Self::NotValid,
            Error::Conflict { .. } | Error::Stale => Self::Conflict,
            Error::State { .. } | Error::Recovery(_) | Error::RoundLimit(_) => Self::State,
            Error::Unauthenticated(_) | Error::Forbidden(_) => Self::Credential,
            Error::NotFound(_) => Self::NotFound,
            Error::Unavailable(_) => Self::Unavailable,
            Error::Timeout => Self::Timeout,
            Error::Corrupt(_) | Error::Sealed(_) => Self::Unexpected,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

/// What follows the options in a command's `--help`: its examples, then the exit codes.
pub fn help(examples: &[&str]) -> String {
    let mut text = String::from("Examples:\n");
    for example in examples {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {example}");
    }
    text.push_str("\nExit codes:\n");
    for exit in Exit::ALL {
        let _ = writeln!(text, "  {:<4} {}", exit as u8, exit.meaning());
    }
    text
}

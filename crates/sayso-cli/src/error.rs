//! What a command can end with other than success, and what to do about it.

use std::io;

use sayso::wire::Problem;
use sayso::{Error, ErrorCode, RoundId};

use crate::exit::Exit;

/// Why a command was not done. No variant carries a value that somebody answered with.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The library refused.
    #[error("{error}")]
    Refused {
        /// Why.
        error: Error,
        /// The round concerned.
        round: Option<RoundId>,
    },
    /// As [`CommandError::Refused`], where more can be said about what to do next.
    #[error("{error}")]
    Advised {
        /// Why.
        error: Error,
        /// What to do next.
        help: String,
    },
    /// The command line asks for something that cannot be.
    #[error("{message}")]
    Usage {
        /// What is wrong.
        message: String,
        /// What to do next.
        help: String,
    },
    /// A file that cannot be used as it is.
    #[error("{path}: {problem}")]
    TokenFile {
        /// The file.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A plan was run and did not hold; what was wrong has been printed as the command's result.
    #[error("{failed} of {total} operations did not pass")]
    NotPassed {
        /// How many.
        failed: usize,
        /// Of how many.
        total: usize,
    },
    /// A call is not allowed; why has been printed as the command's result.
    #[error("{}", if *asks { "a person is asked about the call" } else { "the call is denied" })]
    NotAllowed {
        /// Whether a person is asked; else it is denied.
        asks: bool,
    },
    /// A run of an agent has not completed; what became of it has been printed as the command's result.
    #[error("the run is {outcome}")]
    Run {
        /// What became of it.
        outcome: &'static str,
        /// How the command ends.
        exit: Exit,
    },
    /// `doctor` found something; it has been printed as the command's result.
    #[error("{problems} problems, {warnings} warnings; nothing was changed")]
    Found {
        /// What is lost, refused or open to others.
        problems: usize,
        /// What is to be looked at.
        warnings: usize,
    },
    /// The person left the form.
    #[error("interrupted; nothing was sent and the round is as it was")]
    Interrupted,
    /// The process was told to stop before it was done.
    #[error("stopped before it was done")]
    Stopped,
    /// The terminal does not do what a form needs.
    #[error("the terminal cannot show a form: {0}")]
    Terminal(String),
    /// The reader of the output went away.
    #[error("the output cannot be written: {0}")]
    Output(io::Error),
    /// The runtime could not be started.
    #[error("the process cannot start its workers: {0}")]
    Runtime(io::Error),
}

impl From<Error> for CommandError {
    fn from(error: Error) -> Self {
        Self::Refused { error, round: None }
    }
}

impl From<io::Error> for CommandError {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl CommandError {
    /// The library's refusal about one round.
    pub fn about(round: RoundId) -> impl FnOnce(Error) -> Self {
        move |error| Self::Refused { error, round: Some(round) }
    }

    /// The exit code.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Refused { error, .. } | Self::Advised { error, .. } => Exit::of(error),
            Self::Usage { .. } => Exit::Usage,
            Self::TokenFile { .. } => Exit::Credential,
            Self::NotPassed { .. } => Exit::NotPassed,
            Self::NotAllowed { asks } => {
                if *asks {
                    Exit::Asks
                } else {
                    Exit::Denied
                }
            }
            Self::Run { exit, .. } => *exit,
            Self::Found { .. } => Exit::Found,
            Self::Interrupted | Self::Stopped => Exit::Interrupted,
            Self::Terminal(_) => Exit::Unavailable,
            // Whoever closes a pipe early, as `head` does, has what they wanted.
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Done,
            Self::Output(_) | Self::Runtime(_) => Exit::Unexpected,
        }
    }

    /// The error as the wire says it, the same as over HTTP.
    pub fn problem(&self) -> Problem {
        match self {
            Self::Refused { error, round } => Problem::new(error, *round),
            Self::Advised { error, .. } => Problem::new(error, None),
            Self::Usage { message, .. } => Problem {
                title: "The command line is not valid".to_owned(),
                ..Problem::new(&Error::Validation { detail: message.clone(), fields: Vec::new() }, None)
            },
            Self::TokenFile { .. } => {
                let unauthenticated = Error::Unauthenticated("the token file cannot be used");
                Problem { detail: self.to_string(), ..Problem::new(&unauthenticated, None) }
            }
            Self::NotPassed { .. }
            | Self::NotAllowed { .. }
            | Self::Run { .. }
            | Self::Found { .. }
            | Self::Interrupted
            | Self::Stopped
            | Self::Terminal(_)
            | Self::Output(_)
            | Self::Runtime(_) => Problem::new(&Error::Unavailable(self.to_string()), None),
        }
    }

    /// What to do next.
    pub fn help(&self) -> String {
        match self {
            Self::Refused { error: Error::Validation { .. }, round: None } => {
                "nothing was changed; correct what is named and try again".to_owned()
            }
            Self::Refused { error, round } => {
                let id = round.map_or_else(|| "ID".to_owned(), |id| id.to_string());
                next_step(error, &id)
            }
            Self::Advised { help, .. } | Self::Usage { help, .. } => help.clone(),
            Self::TokenFile { .. } => {
                "name a file that holds the token alone and that only you can read: chmod 600 FILE".to_owned()
            }
            Self::Found { .. } => "each finding says what to do".to_owned(),
            Self::NotPassed { .. } => "docs/plans.md says how a plan is matched".to_owned(),
            Self::Run { .. } => "docs/native.md says what becomes of runs".to_owned(),
            Self::NotAllowed { .. } => "docs/policy.md says how rules decide".to_owned(),
            Self::Interrupted | Self::Stopped => "run the same command to start again".to_owned(),
            Self::Terminal(_) => "answer with --field, --text or --json instead".to_owned(),
            Self::Output(_) | Self::Runtime(_) => "look at the disk, the pipe or the limits of this account".to_owned(),
        }
    }
}

fn next_step(error: &Error, id: &str) -> String {
    match error {
        Error::Validation { fields, .. } if fields.iter().any(|field| field.pointer == "/digest") => {
            format!("look at `sayso show {id}` and pass the digest it prints: --digest sha256:…")
        }
        Error::Validation { .. } => format!("nothing was changed; `sayso show {id}` says what each field takes"),
        Error::Conflict { winner: Some(_), .. } => format!("`sayso show {id}` shows what was answered"),
        Error::Conflict { winner: None, .. } => format!("`sayso show {id}` says where the round stands"),
        Error::State { .. } | Error::Recovery(_) | Error::RoundLimit(_) => {
            format!("nobody can answer it any more; `sayso show {id}` says why and `sayso list` what is pending")
        }
        Error::Stale => format!("look again with `sayso show {id}` and pass the digest it prints"),
        Error::Unauthenticated(_) => {
            "pass --token-file FILE with a person's token from `sayso token new`, or use a terminal; \
             docs/security.md says what each protects"
                .to_owned()
        }
        Error::Forbidden(_) => "use a person's token, or leave --token-file out on a terminal".to_owned(),
        Error::NotFound(_) => "`sayso list --all` shows what there is; --data or --store says where".to_owned(),
        Error::Model(_) => "nothing was started; correct what is named and try again".to_owned(),
        Error::Limit(_) => "send less".to_owned(),
        Error::Unavailable(_) => {
            "look at the folder that --data names, or the database that --store names, then try again".to_owned()
        }
        Error::Timeout => "the same command waits again".to_owned(),
        Error::Corrupt(_) | Error::Sealed(_) => {
            format!("see docs/errors/{}.md", ErrorCode::CorruptSuspendedState.as_str())
        }
    }
}

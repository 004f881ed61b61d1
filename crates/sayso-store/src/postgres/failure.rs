//! What went wrong in the database, and what a caller is told: never a value, never SQL, never the URL.

use sayso_core::error::Error;
use tokio_postgres::error::SqlState;

use super::value::Corrupt;

/// Why something was not done.
#[derive(Debug)]
pub(super) enum Failure {
    /// The driver or the database.
    Database(tokio_postgres::Error),
    /// A row that does not say what a row of ours says.
    Corrupt(&'static str),
    /// No answer for too long; the connection was given up.
    Late,
    /// A newer version has changed the schema.
    Newer,
    /// What was guessed is out of date.
    Stale,
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error)
    }
}

impl From<Corrupt> for Failure {
    fn from(Corrupt(what): Corrupt) -> Self {
        Self::Corrupt(what)
    }
}

/// What can be done about a failure of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Remedy {
    /// Another transaction was in the way; the same may work now.
    Repeat,
    /// The connection is of no use any more.
    Reconnect,
    /// One of several units may be at fault; the others work without it.
    Separate,
}

impl Failure {
    fn state(&self) -> Option<&SqlState> {
        match self {
            Self::Database(error) => error.code(),
            _ => None,
        }
    }

    pub(super) fn is(&self, state: &SqlState) -> bool {
        self.state() == Some(state)
    }

    /// Another transaction wrote the same key first.
    pub(super) fn is_taken(&self) -> bool {
        self.is(&SqlState::UNIQUE_VIOLATION)
    }

    pub(super) fn remedy(&self) -> Remedy {
        const IN_THE_WAY: [SqlState; 4] = [
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::T_R_DEADLOCK_DETECTED,
            SqlState::UNIQUE_VIOLATION,
            // The guard of an update: a row was not as it had been read.
            SqlState::DIVISION_BY_ZERO,
        ];
        match (self, self.state()) {
            (Self::Database(_), None) | (Self::Late, _) => Remedy::Reconnect,
            (Self::Stale, _) => Remedy::Repeat,
            (_, Some(state)) if IN_THE_WAY.contains(state) => Remedy::Repeat,
            // Class 57 is "operator intervention": the server goes down, or somebody ended our session.
            (_, Some(state)) if state.code().starts_with("57P") || state.code().starts_with("08") => Remedy::Reconnect,
            _ => Remedy::Separate,
        }
    }

    /// What a caller is told who only read, or whose change was certainly not made.
    pub(super) fn unchanged(self) -> Error {
        self.told("; nothing was changed")
    }

    /// What a caller is told whose change may have been made when the connection was lost.
    pub(super) fn unknown(self) -> Error {
        match self.remedy() {
            Remedy::Reconnect => self.told("; whether the change was stored is not known, and repeating it is safe"),
            _ => self.unchanged(),
        }
    }

    fn told(self, what_of_it: &str) -> Error {
        let reason = match &self {
            Self::Corrupt(what) => return Error::Corrupt(what),
            Self::Newer => return newer_schema(),
            Self::Late => "the database does not answer",
            Self::Stale => "other processes were always first",
            Self::Database(_) => match self.state() {
                None => "the database cannot be reached",
                Some(state) => reason(state),
            },
        };
        Error::Unavailable(format!("{reason}{what_of_it}"))
    }
}

fn reason(state: &SqlState) -> &'static str {
    match *state {
        SqlState::DISK_FULL => "the database's disk is full",
        SqlState::TOO_MANY_CONNECTIONS => "the database takes no more connections",
        SqlState::INVALID_PASSWORD | SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
            "the database refused the store URL's user or password"
        }
        SqlState::INVALID_CATALOG_NAME => "the database that the store URL names does not exist",
        SqlState::INVALID_SCHEMA_NAME => "the schema that the store URL names does not exist",
        SqlState::INSUFFICIENT_PRIVILEGE => "the store URL's user may not do this in the database",
        SqlState::READ_ONLY_SQL_TRANSACTION => "the database can only be read, as a standby can",
        SqlState::LOCK_NOT_AVAILABLE | SqlState::QUERY_CANCELED => "another process has held the rows for too long",
        SqlState::T_R_SERIALIZATION_FAILURE | SqlState::T_R_DEADLOCK_DETECTED => "other processes were always first",
        _ if state.code().starts_with("57P") => "the database is restarting or ended the session",
        _ => "the database could not do it",
    }
}

/// What a process says when a newer one has changed the schema under it.
pub(super) fn newer_schema() -> Error {
    Error::Unavailable("a newer sayso has upgraded this store; restart this process with that version".to_owned())
}

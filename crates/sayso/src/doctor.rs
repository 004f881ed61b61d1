//! Explains the state of a store, and repairs nothing. The store gives facts; here is what they mean, what will happen
//! by itself, and what a person may do.

mod file;
mod judge;
mod server;

use std::sync::Arc;

use sayso_core::error::Error;
use sayso_store::clock::SystemClock;
use sayso_store::examine::{Backing, Examined};
use sayso_store::{PostgresStore, SqliteStore};

use crate::open::{Options, Place, database_in};

/// How much something matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// As it should be.
    Ok,
    /// To be looked at: slower, less safe, or waiting for somebody.
    Warning,
    /// Something is lost, refused or open to others.
    Problem,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    /// What was looked at: a stable word.
    pub check: &'static str,
    /// How it is.
    pub severity: Severity,
    /// What was found, for a person; never a value that somebody typed.
    pub detail: String,
    /// What happens next, or what to do; none where there is nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

impl Finding {
    fn ok(check: &'static str, detail: impl Into<String>) -> Self {
        Self { check, severity: Severity::Ok, detail: detail.into(), help: None }
    }
    fn warning(check: &'static str, detail: impl Into<String>, help: impl Into<String>) -> Self {
        Self { check, severity: Severity::Warning, detail: detail.into(), help: Some(help.into()) }
    }
    fn problem(check: &'static str, detail: impl Into<String>, help: impl Into<String>) -> Self {
        Self { check, severity: Severity::Problem, detail: detail.into(), help: Some(help.into()) }
    }
}

/// Looks at the store that `options` name, without opening it as one, and says what was found. Works on a store that
/// others use, that may not be written, or that is damaged. An error only where a database cannot be reached, or its URL
/// is none. `uid` is the account that is to own a data folder: the caller's.
pub async fn examine(options: &Options, uid: u32) -> Result<Vec<Finding>, Error> {
    let facts = match &options.place {
        Place::Folder(folder) => {
            let path = database_in(folder);
            let clock = options.clock.clone().unwrap_or_else(|| Arc::new(SystemClock));
            let look = move || SqliteStore::examine(&path, clock.as_ref());
            let looked = tokio::task::spawn_blocking(look).await;
            looked.map_err(|_| Error::Unavailable("the store could not be looked at".to_owned()))?
        }
        Place::Database { url, .. } => PostgresStore::examine(url).await?,
    };
    Ok(findings(&facts, uid))
}

fn findings(facts: &Examined, uid: u32) -> Vec<Finding> {
    let mut found = Vec::new();
    match &facts.backing {
        Some(Backing::File(file)) => file::judge(file, uid, &mut found),
        Some(Backing::Database(server)) => server::judge(server, facts.now, &mut found),
        None => {}
    }
    judge::judge(facts, &mut found);
    found
}

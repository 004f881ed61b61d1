//! Which store a command works on: a data folder, or the database that `--store` names.

use std::fmt;
use std::path::PathBuf;

use sayso::Options;

use crate::args::{Place, StoreUrl};
use crate::data_folder::{self, Missing};
use crate::error::CommandError;

/// A store that is not opened yet.
pub enum Where {
    /// In a data folder.
    Folder(PathBuf),
    /// In a database.
    Database {
        /// Its URL.
        url: StoreUrl,
        /// Whether it is asked for news instead of listened to.
        polls: bool,
    },
}

/// The store that the command line and the environment name. Both a folder and a database are refused, since one of them
/// would be left out without a word.
pub fn resolve(place: &Place) -> Result<Where, CommandError> {
    match (&place.store, &place.data) {
        (Some(_), Some(_)) => Err(CommandError::Usage {
            message: "--store (or SAYSO_STORE) and --data (or SAYSO_DATA) name two stores".to_owned(),
            help: "leave one of them out: the rounds are in a database or in a folder".to_owned(),
        }),
        (Some(StoreUrl(url)), None) if url.is_empty() => Err(CommandError::Usage {
            message: "--store (or SAYSO_STORE) is empty".to_owned(),
            help: "name a database: postgres://USER:PASSWORD@HOST/DATABASE; docs/scale.md says more".to_owned(),
        }),
        (Some(url), None) => Ok(Where::Database { url: url.clone(), polls: place.poll_only }),
        (None, data) => data_folder::resolve(data.as_deref()).map(Where::Folder),
    }
}

impl Where {
    /// Checks that the folder is there where it has to be. A database that is not there says so itself.
    pub fn check(&self, missing: Missing) -> Result<(), CommandError> {
        match self {
            Self::Folder(folder) => data_folder::check(folder, missing),
            Self::Database { .. } => Ok(()),
        }
    }

    /// How it is opened.
    pub fn options(&self) -> Options {
        match self {
            Self::Folder(folder) => Options::at(folder),
            Self::Database { url: StoreUrl(url), polls: false } => Options::database(url),
            Self::Database { url: StoreUrl(url), polls: true } => Options::database(url).polling(),
        }
    }
}

/// Without the database's URL, which may hold a password.
impl fmt::Display for Where {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => folder.display().fmt(f),
            Self::Database { .. } => f.write_str("the database that --store names"),
        }
    }
}

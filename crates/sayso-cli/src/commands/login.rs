//! `sayso login`: a one-time link to the inbox.

use clap::Args as ClapArgs;
use sayso::UnixMs;
use serde::Serialize;

use crate::args::Place;
use crate::credential::Stdin;
use crate::data_folder::Missing;
use crate::error::CommandError;
use crate::session::Session;
use crate::{exit, output};

/// Print a one-time link to the inbox
#[derive(Debug, ClapArgs)]
#[command(after_help = exit::help(&[
    "sayso login",
    "sayso login --url https://inbox.example.com",
]))]
pub struct LoginArgs {
    /// Where the inbox is served
    #[arg(long, default_value = "http://127.0.0.1:7717", value_name = "URL")]
    url: String,
    /// Print {"url": …, "expires_at": …} as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Serialize)]
struct Link {
    url: String,
    expires_at: Option<UnixMs>,
}

/// Prints the link.
pub async fn run(place: &Place, args: LoginArgs) -> Result<(), CommandError> {
    let session = Session::open(place, Stdin::Keys, Missing::Create).await?;
    let login = session.sayso.new_login(&session.caller).await?;
    let url = format!("{}/login?token={}", args.url.trim_end_matches('/'), login.secret);
    if args.json {
        return output::json(&Link { url, expires_at: login.expires_at });
    }
    output::note("This link logs one browser in, once, within ten minutes:");
    output::text(&url)
}

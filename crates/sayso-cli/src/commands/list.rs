//! `sayso list`: what waits for an answer.

use clap::Args as ClapArgs;
use sayso::{People as _, RoundFilter, RoundId, Status};

use crate::args::Place;
use crate::credential::Stdin;
use crate::data_folder::Missing;
use crate::error::CommandError;
use crate::session::Session;
use crate::{exit, output, render};

/// List the rounds that wait for an answer
#[derive(Debug, ClapArgs)]
#[command(after_help = exit::help(&[
    "sayso list",
    "sayso list --all --limit 20",
    "sayso list --status failed --json",
]))]
pub struct ListArgs {
    /// Also those that are answered or over
    #[arg(long, conflicts_with = "status")]
    all: bool,
    /// Those in one state: pending, response_validated, delivery_started, delivered, resolved or failed
    #[arg(long, value_parser = status, value_name = "STATUS")]
    status: Option<Status>,
    /// At most this many, newest first
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=200))]
    limit: u16,
    /// Go on where a page ended: its `next_cursor`
    #[arg(long, value_name = "ID")]
    cursor: Option<RoundId>,
    /// Print the page as JSON
    #[arg(long)]
    pub json: bool,
}

fn status(word: &str) -> Result<Status, String> {
    Status::parse(word).ok_or_else(|| {
        let known: Vec<_> = Status::ALL.iter().map(|status| status.as_str()).collect();
        format!("must be one of {}", known.join(", "))
    })
}

/// Prints the page.
pub async fn run(place: &Place, args: ListArgs) -> Result<(), CommandError> {
    let session = Session::open(place, Stdin::Keys, Missing::Refuse).await?;
    let status = if args.all { None } else { Some(args.status.unwrap_or(Status::Pending)) };
    let filter = RoundFilter { status, before: args.cursor, limit: usize::from(args.limit), ..RoundFilter::default() };
    let page = session.people().list(filter).await?;
    if args.json {
        return output::json(&page);
    }
    if page.rounds.is_empty() {
        output::note(match status {
            Some(Status::Pending) => "Nothing waits for an answer.",
            _ => "There is no such round.",
        });
        return Ok(());
    }
    let with_status = status != Some(Status::Pending);
    output::text(&render::rounds(&page.rounds, render::now(), with_status))?;
    if let Some(cursor) = page.next_cursor {
        output::note(&format!("There are more: add --cursor {cursor}"));
    }
    Ok(())
}

//! `sayso show`: one round, whole.

use clap::Args as ClapArgs;
use sayso::{People as _, PrincipalKind};

use crate::args::Place;
use crate::credential::Stdin;
use crate::data_folder::Missing;
use crate::error::CommandError;
use crate::session::Session;
use crate::{exit, output, render};

/// Show one round: who asks, what for, and what each field takes
#[derive(Debug, ClapArgs)]
#[command(after_help = exit::help(&[
    "sayso show rnd_01JZ6Q3V9GF2T0X4M8S5E7Q2M4K",
    "sayso show 7Q2M4K --json",
    "sayso show 7Q2M4K --answer --json    what it was answered with",
]))]
pub struct ShowArgs {
    /// The round: its id, or six characters or more that it begins or ends with
    id: String,
    /// Print what it was answered with and nothing else; null before
    #[arg(long)]
    answer: bool,
    /// Print the round (with --answer: the answer) as JSON
    #[arg(long)]
    pub json: bool,
}

/// Prints the round.
pub async fn run(place: &Place, args: ShowArgs) -> Result<(), CommandError> {
    let session = Session::open(place, Stdin::Keys, Missing::Refuse).await?;
    let round = session.round(&args.id).await?;
    let id = round.round_id;
    // Only a person reads values here; an agent collects its answer, once.
    let is_person = session.caller.kind == PrincipalKind::Person;
    let answer = match args.answer || (is_person && !args.json) {
        true => session.people().responses(id).await.map_err(CommandError::about(id))?,
        false => None,
    };
    match (args.answer, args.json) {
        (true, true) => output::json(&answer),
        (false, true) => output::json(&round),
        (true, false) => output::text(&answer.as_ref().map_or_else(|| "not answered".to_owned(), render::answer)),
        (false, false) => {
            let requests = round.requests.check().map_err(CommandError::about(id))?;
            output::text(&render::page(&round, &requests, answer.as_ref(), render::now()))
        }
    }
}

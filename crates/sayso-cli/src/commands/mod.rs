//! The commands, a file each: arguments, and what is done with them.

pub mod agent;
pub mod answer;
pub mod bench;
pub mod demo;
pub mod doctor;
pub mod gate;
pub mod gateway;
pub mod grants;
pub mod list;
pub mod login;
pub mod policy;
pub mod run;
pub mod serve;
pub mod show;
pub mod token;
pub mod watch;

use crate::args::{Args, Command};
use crate::error::CommandError;

/// Does what the command line says.
pub async fn run(Args { place, command }: Args) -> Result<(), CommandError> {
    match command {
        Command::Agent(args) => agent::run(&place, args).await,
        Command::Demo(args) => demo::run(&place, args).await,
        Command::Doctor(args) => doctor::run(&place, args).await,
        Command::Gate(args) => gate::run(&place, args).await,
        Command::Grants(args) => grants::run(&place, args).await,
        Command::Gateway(args) => gateway::run(&place, args).await,
        Command::Run(args) => run::run(args).await,
        Command::Policy(args) => policy::run(args),
        Command::Serve(args) => serve::run(&place, args).await,
        Command::Login(args) => login::run(&place, args).await,
        Command::Token(args) => token::run(&place, args).await,
        Command::List(args) => list::run(&place, args).await,
        Command::Show(args) => show::run(&place, args).await,
        Command::Answer(args) => answer::run(&place, args).await,
        Command::Watch(args) => watch::run(&place, args).await,
        Command::Bench(args) => bench::run(&place, args).await,
    }
}

//! The command line. Each command's own arguments stand in its file under `commands/`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand};

use crate::commands::{
    agent, answer, bench, demo, doctor, gate, gateway, grants, list, login, policy, run, serve, show, token, watch,
};
use crate::exit;

/// Durable human input for AI agents: agents ask, a person answers, once, and it survives restarts.
#[derive(Debug, Parser)]
#[command(
    name = "sayso",
    version,
    max_term_width = 100,
    after_help = exit::help(&[
        "sayso serve                  start the inbox on this machine",
        "sayso list                   what waits for an answer",
        "sayso answer 7Q2M4K          answer in the terminal, field by field",
    ])
)]
pub struct Args {
    /// Where the rounds are, and as whom.
    #[command(flatten)]
    pub place: Place,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// A database's URL. It may hold a password, and so is never printed.
#[derive(Clone)]
pub struct StoreUrl(pub String);

impl std::fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StoreUrl(..)")
    }
}

impl From<String> for StoreUrl {
    fn from(url: String) -> Self {
        Self(url)
    }
}

/// Where the rounds are, and as whom the command acts.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Where, and as whom")]
pub struct Place {
    /// The data folder [default: `sayso` in the platform's data folder]
    #[arg(long, env = "SAYSO_DATA", hide_env_values = true, global = true, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// A PostgreSQL database instead, which several machines may share; see docs/scale.md
    #[arg(long, env = "SAYSO_STORE", hide_env_values = true, global = true, value_name = "URL")]
    pub store: Option<StoreUrl>,
    /// Ask the database for news instead of listening, for databases that have no LISTEN
    #[arg(long, env = "SAYSO_POLL_ONLY", hide_env_values = true, global = true)]
    pub poll_only: bool,
    /// A file with a token, readable for you alone; needed where no terminal shows that a person is here
    #[arg(long, global = true, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// The account's name, where the system keeps no list of accounts.
    #[arg(long, env = "USER", hide = true, hide_env_values = true, global = true)]
    pub account: Option<String>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// See it work: a sample server asks, you answer, the booking goes through
    Demo(demo::DemoArgs),
    /// Stand in front of an MCP server, so that a person answers what it asks
    Gateway(gateway::GatewayArgs),
    /// Run a model with tools; its runs wait for people, and go on in any process
    Agent(agent::AgentArgs),
    /// Test what an MCP server asks: run operations, answered by a scripted plan
    Run(run::RunArgs),
    /// Check policy files, and see what they make of a call
    Policy(policy::PolicyArgs),
    /// Ask whether a call may run; the exit code is the answer
    Gate(gate::GateArgs),
    /// List what is allowed beforehand, allow more, take it back
    Grants(grants::GrantsArgs),
    /// Start the inbox and the HTTP API over the data folder or database
    Serve(serve::ServeArgs),
    /// Print a one-time link to the inbox
    Login(login::LoginArgs),
    /// Make, list and revoke credentials
    Token(token::TokenArgs),
    /// List the rounds that wait for an answer
    List(list::ListArgs),
    /// Show one round: who asks, what for, and what each field takes
    Show(show::ShowArgs),
    /// Answer a round, with flags or in a form on the terminal
    Answer(answer::AnswerArgs),
    /// Follow what is asked and what becomes of it, a line each
    Watch(watch::WatchArgs),
    /// Measure what this version reaches on this machine
    Bench(bench::BenchArgs),
    /// Explain the state of the data folder or database; repairs nothing
    Doctor(doctor::DoctorArgs),
}

impl Command {
    /// Whether results and errors are to be JSON.
    pub fn is_json(&self) -> bool {
        match self {
            Self::Agent(args) => args.is_json(),
            Self::Demo(args) => args.json,
            Self::Gateway(_) => false,
            Self::Run(args) => args.json,
            Self::Policy(args) => args.is_json(),
            Self::Gate(args) => args.json,
            Self::Grants(args) => args.is_json(),
            Self::Serve(args) => args.json,
            Self::Login(args) => args.json,
            Self::Token(args) => args.is_json(),
            Self::List(args) => args.json,
            Self::Show(args) => args.json,
            Self::Answer(args) => args.is_json(),
            Self::Watch(args) => args.json,
            Self::Bench(args) => args.json,
            Self::Doctor(args) => args.json,
        }
    }
}

//! `sayso gateway`: an MCP server in front of another.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args as ClapArgs;
use sayso::policy::{Mode, PolicyFiles};
use sayso::{Desk, Error, Principal, Sayso};
use sayso_agents::gateway::{self, Gate, GatewayExit, GatewayOptions, Hold, Program, Replay};
use sayso_http::client::Client;

use crate::args::Place;
use crate::commands::policy::check_mode;
use crate::error::CommandError;
use crate::remote::Remote;
use crate::{account, exit, output, stop, store};

/// Stand in front of an MCP server, so that a person answers what it asks
///
/// Standard input and output speak MCP with the client; there is no --json. What the server prints on its standard error
/// goes to ours.
#[derive(Debug, ClapArgs)]
#[command(after_help = exit::help(&[
    "sayso gateway --name everything -- npx @modelcontextprotocol/server-everything stdio",
    "sayso gateway --name files --policy policy.toml -- npx @modelcontextprotocol/server-filesystem /home/ada/code",
    "sayso gateway --name shipping --hold auto --linger 3600 -- ./shipping-server",
    "sayso gateway --name shipping --server http://127.0.0.1:7717 --token-file agent.token -- ./shipping-server",
]))]
pub struct GatewayArgs {
    /// The server's name, as people see it beside each question; without a colon
    #[arg(long, value_parser = server_name)]
    name: String,
    /// How long a paused tool call is held before it returns its handle: seconds, or `auto` for longer with clients that
    /// are known to wait
    #[arg(long, default_value = "45", value_parser = hold, value_name = "SECONDS|auto")]
    hold: Hold,
    /// When a call is made again because a person has answered after its server gave up waiting
    #[arg(long, value_enum, default_value_t = ReplayArg::Declared)]
    replay: ReplayArg,
    /// How long to stay for paused calls after the client has left, in seconds
    #[arg(long, default_value_t = 600, value_name = "SECONDS")]
    linger: u64,
    /// Judge every call by this policy before it reaches the server; a file a layer (see policy.md)
    #[arg(long, value_name = "FILE")]
    policy: Vec<PathBuf>,
    /// What becomes of calls that no rule is about: approval, autonomous or guarded. Without this and without --policy
    /// every call passes
    #[arg(long, value_parser = super::policy::mode)]
    mode: Option<Mode>,
    /// Give the agent a tool, `ask_user`, to ask a person by itself
    #[arg(long)]
    ask_user: bool,
    /// Take what the agent says with the tool `resume` for the person's verdict, recorded as relayed by the agent. A
    /// --server must have been started with this flag, too
    #[arg(long)]
    trust_agent_relay: bool,
    #[command(flatten)]
    remote: Remote,
    /// The server's program and arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// When a call is made again for a late answer.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum ReplayArg {
    /// Where the tool says that it is read-only or idempotent
    Declared,
    /// Always; the server's calls may then run twice
    Always,
    /// Never; the answer waits until the agent calls again
    Never,
}

impl From<ReplayArg> for Replay {
    fn from(arg: ReplayArg) -> Self {
        match arg {
            ReplayArg::Declared => Self::Declared,
            ReplayArg::Always => Self::Always,
            ReplayArg::Never => Self::Never,
        }
    }
}

fn server_name(text: &str) -> Result<String, String> {
    if text.trim().is_empty() || text.contains(':') || text.chars().any(char::is_control) {
        return Err("a server's name is not empty and has no colon".to_owned());
    }
    Ok(text.to_owned())
}

/// A hold as it is written.
pub fn hold(text: &str) -> Result<Hold, String> {
    match text {
        "auto" => Ok(Hold::Auto),
        seconds => match seconds.parse() {
            Ok(seconds @ 1..=86_400) => Ok(Hold::Fixed(Duration::from_secs(seconds))),
            _ => Err("expected 1 to 86400 seconds, or auto".to_owned()),
        },
    }
}

/// The policy that judges the calls, if any does.
fn policy(args: &GatewayArgs) -> Result<Option<PolicyFiles>, CommandError> {
    check_mode(&args.policy, args.mode)?;
    if args.policy.is_empty() && args.mode.is_none() {
        return Ok(None);
    }
    let policy = PolicyFiles::open(&args.policy);
    for fault in policy.current().faults() {
        output::note(&format!("warning: {fault}; every call is denied until that is put right"));
    }
    Ok(Some(policy))
}

/// Where the rounds are kept, at a server or in the data folder or database, and this worker's name there.
async fn desk(place: &Place, args: &GatewayArgs) -> Result<(Arc<dyn Desk>, String), CommandError> {
    let Some(options) = args.remote.options(place)? else {
        let owner = account::owner(place.account.as_deref());
        let options = store::resolve(place)?.options().person(owner).sweeping();
        let options = if args.trust_agent_relay { options.trusting_agent_relay() } else { options };
        let sayso = Sayso::open(options).await?;
        let desk = sayso.desk(Principal::agent(format!("gateway:{}", args.name)));
        let worker = desk.owner_id().to_owned();
        return Ok((Arc::new(desk), worker));
    };
    let client = Client::connect(options).await.map_err(|error| args.remote.advise(error))?;
    let worker = client.owner_id().to_owned();
    Ok((Arc::new(client), worker))
}

/// Runs until the client leaves, or until SIGINT or SIGTERM.
pub async fn run(place: &Place, args: GatewayArgs) -> Result<(), CommandError> {
    let policy = policy(&args)?;
    // The client's connection is the session: it lasts as long as this process.
    let (desk, session) = desk(place, &args).await?;
    let gate = policy.map(|policy| Gate { policy: Arc::new(policy), mode: args.mode, session });
    let options = GatewayOptions {
        name: args.name,
        upstream: Arc::new(Program(args.command)),
        hold: args.hold,
        linger: Duration::from_secs(args.linger),
        replay: args.replay.into(),
        ask_user: args.ask_user,
        gate,
        trust_agent_relay: args.trust_agent_relay,
        inbox: args.remote.server.clone(),
    };
    let report = gateway::run(desk, options, tokio::io::stdin(), tokio::io::stdout(), stop::signal()?).await;
    if report.skipped_lines > 0 {
        let noise = report.skipped_lines;
        output::note(&format!("sayso: {noise} lines of the server's output were no MCP messages and were skipped"));
    }
    match report.exit {
        GatewayExit::ClientLeft | GatewayExit::LingerOver | GatewayExit::Stopped => Ok(()),
        GatewayExit::ClientBroken => Err(Error::Limit("the client sent a line of more than 16 MiB".to_owned()).into()),
    }
}

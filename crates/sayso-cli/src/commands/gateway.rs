//! `sayso gateway`: an MCP server in front of another.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use clap::Args as ClapArgs;
use sayso::{Principal, Sayso};
use sayso_agents::gateway::{self, GatewayExit, GatewayOptions, Hold, Program, Replay};

use crate::args::Place;
use crate::error::CommandError;
use crate::{account, exit, output, stop, store};

/// Stand in front of an MCP server, so that a person answers what it asks
///
/// Standard input and output speak MCP with the client; there is no --json. What the server prints on its standard error
/// goes to ours.
#[derive(Debug, ClapArgs)]
#[command(after_help = exit::help(&[
    "sayso gateway --name everything -- npx @modelcontextprotocol/server-everything stdio",
    "sayso gateway --name shipping --hold auto --linger 3600 -- ./shipping-server",
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

fn hold(text: &str) -> Result<Hold, String> {
    match text {
        "auto" => Ok(Hold::Auto),
        seconds => match seconds.parse() {
            Ok(seconds @ 1..=86_400) => Ok(Hold::Fixed(Duration::from_secs(seconds))),
            _ => Err("expected 1 to 86400 seconds, or auto".to_owned()),
        },
    }
}

/// Runs until the client leaves, or until SIGINT or SIGTERM.
pub async fn run(place: &Place, args: GatewayArgs) -> Result<(), CommandError> {
    let owner = account::owner(place.account.as_deref());
    let sayso = Sayso::open(store::resolve(place)?.options().person(owner).sweeping()).await?;
    let desk = Arc::new(sayso.desk(Principal::agent(format!("gateway:{}", args.name))));
    let options = GatewayOptions {
        name: args.name,
        upstream: Arc::new(Program(args.command)),
        hold: args.hold,
        linger: Duration::from_secs(args.linger),
        replay: args.replay.into(),
    };
    let report = gateway::run(desk, options, tokio::io::stdin(), tokio::io::stdout(), stop::signal()?).await;
    if report.skipped_lines > 0 {
        let noise = report.skipped_lines;
        output::note(&format!("sayso: {noise} lines of the server's output were no MCP messages and were skipped"));
    }
    match report.exit {
        GatewayExit::ClientLeft | GatewayExit::LingerOver | GatewayExit::Stopped => Ok(()),
        GatewayExit::ClientBroken => {
            Err(sayso::Error::Limit("the client sent a line of more than 16 MiB".to_owned()).into())
        }
    }
}

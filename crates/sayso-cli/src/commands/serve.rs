//! `sayso serve`: the inbox and the HTTP API over the data folder or database.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use sayso::{Error, Sayso};
use sayso_agents::mcp::{Hold, McpOptions, McpServer};
use sayso_http::McpService;
use serde::Serialize;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::args::Place;
use crate::error::CommandError;
use crate::{account, exit, output, stop, store};

/// Start the inbox and the HTTP API over the data folder or database
#[derive(Debug, ClapArgs)]
#[command(after_help = exit::help(&[
    "sayso serve",
    "sayso serve --data ~/rounds --listen 127.0.0.1:0 --json",
    "SAYSO_STORE=postgres://sayso:…@db/sayso sayso serve    several of these share one database",
    "sayso serve --policy policy.toml    also judges calls: POST /v1/gate",
    "sayso serve --public-url https://inbox.example.com    behind a proxy that speaks TLS",
]))]
pub struct ServeArgs {
    /// The address to listen on; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:7717", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// The address that people use, where a proxy stands in between
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
    /// Allow an address that other machines can reach; the traffic is not encrypted
    #[arg(long)]
    listen_anywhere: bool,
    /// A file with one layer of the policy that `POST /v1/gate` judges by; may be given for each layer
    #[arg(long, value_name = "FILE")]
    policy: Vec<PathBuf>,
    /// How long a tool call at /mcp is held before it returns its handle: seconds, or `auto` for longer with clients that
    /// are known to wait
    #[arg(long, default_value = "45", value_parser = super::gateway::hold, value_name = "SECONDS|auto")]
    hold: Hold,
    /// Take what agents say with the tool `resume` for the person's verdict, recorded as relayed by the agent
    #[arg(long)]
    trust_agent_relay: bool,
    /// Print one line of JSON, {"listening": URL}, once it listens
    #[arg(long)]
    pub json: bool,
}

#[derive(Serialize)]
struct Listening {
    listening: String,
}

/// Serves until SIGINT or SIGTERM.
pub async fn run(place: &Place, args: ServeArgs) -> Result<(), CommandError> {
    check_reach(&args)?;
    let store = store::resolve(place)?;
    let owner = account::owner(place.account.as_deref());
    let listener = TcpListener::bind(args.listen).await.map_err(|error| unusable(args.listen, &error))?;
    let listening = format!("http://{}", listener.local_addr()?);
    let options = store.options().person(owner).sweeping();
    let options = if args.trust_agent_relay { options.trusting_agent_relay() } else { options };
    let sayso = Sayso::open(options).await?;
    let stop = stop::signal()?;
    let inbox = args.public_url.as_deref().map_or(listening.as_str(), |url| url.trim_end_matches('/'));
    if args.json {
        output::json(&Listening { listening: listening.clone() })?;
    } else {
        output::text(&format!("Inbox: {inbox}/"))?;
        output::note(&format!("The rounds are in {store}."));
        output::note("Run `sayso login` in another terminal for a link that logs you in. Ctrl-C stops it.");
    }
    let (stopped, stopping) = watch::channel(false);
    let mcp = McpOptions {
        hold: args.hold,
        inbox: Some(inbox.to_owned()),
        trust_agent_relay: args.trust_agent_relay,
        stopping: Some(stopping),
    };
    let options = sayso_http::ServeOptions {
        policy: args.policy,
        mcp: Some(McpService::new(McpServer::new(&sayso, mcp))),
        public_url: args.public_url,
        ..sayso_http::ServeOptions::default()
    };
    let stop = async move {
        stop.await;
        stopped.send_replace(true);
    };
    sayso_http::serve(listener, sayso, options, stop)
        .await
        .map_err(|error| Error::Unavailable(format!("the server stopped: {}", error.kind())).into())
}

/// Other machines are let in only by somebody who says so.
fn check_reach(args: &ServeArgs) -> Result<(), CommandError> {
    if args.listen.ip().is_loopback() {
        return Ok(());
    }
    if !args.listen_anywhere {
        return Err(CommandError::Usage {
            message: format!("{} can be reached from other machines, and the traffic is not encrypted", args.listen),
            help:
                "listen on 127.0.0.1 behind a proxy that speaks TLS, or add --listen-anywhere if the network is yours"
                    .to_owned(),
        });
    }
    output::note(&format!(
        "warning: other machines can reach {}; whoever is on the way can read answers and tokens",
        args.listen
    ));
    Ok(())
}

fn unusable(address: SocketAddr, error: &io::Error) -> CommandError {
    let (what, help) = match error.kind() {
        io::ErrorKind::AddrInUse => (
            "is in use",
            "another `sayso serve` may be running; stop it, or take another address: --listen 127.0.0.1:0",
        ),
        io::ErrorKind::PermissionDenied => {
            ("is not allowed for this account", "take a port above 1023, such as --listen 127.0.0.1:7717")
        }
        io::ErrorKind::AddrNotAvailable => {
            ("is not an address of this machine", "use 127.0.0.1, or one that `ip address` lists")
        }
        _ => ("cannot be listened on", "take another address: --listen 127.0.0.1:0"),
    };
    CommandError::Advised { error: Error::Unavailable(format!("{address} {what}")), help: help.to_owned() }
}

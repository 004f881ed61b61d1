//! `sayso gate`: may this call run? For programs that are not MCP; the exit code is the answer.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args as ClapArgs;
use sayso::gate::{Call, Gates};
use sayso::policy::{Annotations, Decision, PolicyFiles, ToolName};
use sayso::wire::{Gated, NewGate};
use sayso::{Error, Json, Principal, RoundId, Sayso};
use sayso_core::json::visible_multiline;
use sayso_http::client::{ClientOptions, GateClient};

use crate::args::Place;
use crate::credential;
use crate::error::CommandError;
use crate::remote::Remote;
use crate::{account, exit, output, store};

/// Ask whether a call may run: exit code 0 if it may, 11 if not, 12 while a person is asked
///
/// The same call asked again takes the answer that was given meanwhile, once. Without --token-file it is asked as the
/// agent of this account.
#[derive(Debug, ClapArgs)]
#[command(after_help = exit::help(&[
    "sayso gate --policy policy.toml --tool shell:run --args '{\"command\":\"npm publish\"}' --wait 10m && npm publish",
    "sayso gate --tool files:write_file --args '{\"path\":\"a.txt\"}' --session build-17 --json",
    "sayso gate --server http://127.0.0.1:7717 --token-file agent.token --tool shell:run --wait 10m",
]))]
pub struct GateArgs {
    /// A file with one layer of the policy; may be given for each layer. A --server judges by its own
    #[arg(long, value_name = "FILE", conflicts_with = "server")]
    policy: Vec<PathBuf>,
    /// The tool, server:name
    #[arg(long, value_parser = ToolName::parse, value_name = "TOOL")]
    tool: ToolName,
    /// Its arguments, a JSON object
    #[arg(long, default_value = "{}", value_parser = Json::parse, value_name = "JSON")]
    args: Json,
    /// The hints about the tool: readOnlyHint, destructiveHint, idempotentHint, openWorldHint
    #[arg(long, default_value = "{}", value_parser = Json::parse, value_name = "JSON")]
    annotations: Json,
    /// What the tool does, for whoever is asked
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// The conversation it belongs to, by your own name for it
    #[arg(long, default_value = "cli", value_name = "NAME")]
    session: String,
    /// How long to wait for a person, such as 45s or 10m; without it not at all
    #[arg(long, value_parser = wait, value_name = "TIME")]
    wait: Option<Duration>,
    #[command(flatten)]
    remote: Remote,
    /// Print the verdict as one JSON object, the arguments to run with included
    #[arg(long)]
    pub json: bool,
}

/// `45s`, `1500ms` or `10m`.
fn wait(text: &str) -> Result<Duration, String> {
    let number = |digits: &str| digits.parse::<u64>().ok();
    let read = match (text.strip_suffix("ms"), text.strip_suffix('s'), text.strip_suffix('m')) {
        (Some(ms), ..) => number(ms).map(Duration::from_millis),
        (None, Some(seconds), _) => number(seconds).map(Duration::from_secs),
        (None, None, Some(minutes)) => number(minutes).and_then(|n| n.checked_mul(60)).map(Duration::from_secs),
        _ => None,
    };
    read.ok_or_else(|| "must be a time such as 45s, 1500ms or 10m".to_owned())
}

/// Judges, prints and ends with the verdict's exit code.
pub async fn run(place: &Place, args: GateArgs) -> Result<(), CommandError> {
    let json = args.json;
    let gated = match args.remote.options(place)? {
        Some(options) => {
            let remote = &args.remote;
            at_server(&options, &args).await.map_err(|error| remote.advise(error))?
        }
        None => here(place, args).await?,
    };
    if json {
        output::json(&gated)?;
    } else {
        output::text(&visible_multiline(&page(&gated)))?;
    }
    match gated.verdict {
        Decision::Allow => Ok(()),
        decision => Err(CommandError::NotAllowed { asks: decision == Decision::Ask }),
    }
}

/// Judged here, by the files of the command line.
async fn here(place: &Place, args: GateArgs) -> Result<Gated, CommandError> {
    let owner = account::owner(place.account.as_deref());
    let secret = place.token_file.as_deref().map(credential::read_token).transpose()?;
    let sayso = Sayso::open(store::resolve(place)?.options().person(owner.clone())).await?;
    let caller = match secret {
        Some(secret) => sayso.authenticate(&secret).await?,
        None => Principal::agent(owner.name),
    };
    let call = Call {
        annotations: Annotations::read(&args.annotations),
        description: args.description,
        ..Call::new(args.session, args.tool, args.args)
    };
    let gate = Gates::new(&sayso, PolicyFiles::open(args.policy)).of(caller);
    let ruling = match args.wait {
        Some(wait) => gate.pass(&call, Some(wait), |round| waits(round.round_id)).await?,
        None => gate.judge(&call).await?,
    };
    Ok(ruling.into())
}

/// Judged by the server's policy, as the agent of the token.
async fn at_server(options: &ClientOptions, args: &GateArgs) -> Result<Gated, Error> {
    let gate = GateClient::new(options)?;
    let call = NewGate {
        session_id: args.session.clone(),
        tool: args.tool.to_string(),
        arguments: args.args.clone(),
        annotations: Some(args.annotations.clone()),
        description: args.description.clone(),
        definition: None,
        arguments_schema: None,
        schema: None,
        preview: Vec::new(),
    };
    match args.wait {
        Some(wait) => gate.pass(&call, wait, |round| waits(round.round_id)).await,
        None => gate.judge(&call).await,
    }
}

fn waits(round: RoundId) {
    output::note(&format!("A person is asked: `sayso show {round}`, or the inbox."));
}

fn page(gated: &Gated) -> String {
    let round = gated.round.as_ref().map(|round| format!(" ({})", round.round_id)).unwrap_or_default();
    format!("{}: {}{round}", gated.verdict.as_str(), gated.message)
}

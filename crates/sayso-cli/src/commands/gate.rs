//! `sayso gate`: may this call run? For programs that are not MCP; the exit code is the answer.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args as ClapArgs;
use sayso::gate::{Call, Gates, Ruling};
use sayso::policy::{Annotations, Decision, PolicyFiles, ToolName};
use sayso::wire::Gated;
use sayso::{Json, Principal, RoundId, Sayso};
use sayso_core::json::visible_multiline;

use crate::args::Place;
use crate::credential;
use crate::error::CommandError;
use crate::{account, exit, output, store};

/// Ask whether a call may run: exit code 0 if it may, 11 if not, 12 while a person is asked
///
/// The same call asked again takes the answer that was given meanwhile, once. Without --token-file it is asked as the
/// agent of this account.
#[derive(Debug, ClapArgs)]
#[command(after_help = exit::help(&[
    "sayso gate --policy policy.toml --tool shell:run --args '{\"command\":\"npm publish\"}' --wait 10m && npm publish",
    "sayso gate --tool files:write_file --args '{\"path\":\"a.txt\"}' --session build-17 --json",
]))]
pub struct GateArgs {
    /// A file with one layer of the policy; may be given for each layer
    #[arg(long, value_name = "FILE")]
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
    let decision = ruling.decision();
    if args.json {
        output::json(&Gated::from(ruling))?;
    } else {
        output::text(&visible_multiline(&page(&ruling)))?;
    }
    match decision {
        Decision::Allow => Ok(()),
        decision => Err(CommandError::NotAllowed { asks: decision == Decision::Ask }),
    }
}

fn waits(round: RoundId) {
    output::note(&format!("A person is asked: `sayso show {round}`, or the inbox."));
}

fn page(ruling: &Ruling) -> String {
    let word = ruling.decision().as_str();
    match ruling {
        Ruling::Allow(allowed) => format!("{word}: {}", allowed.words()),
        Ruling::Deny(denied) => format!("{word}: {}", denied.words()),
        Ruling::Ask(round) => format!("{word}: {} ({})", sayso::words::ASKED, round.round_id),
    }
}

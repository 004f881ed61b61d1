//! `sayso grants`: what people have allowed beforehand.

use clap::{Args as ClapArgs, Subcommand};
use sayso::gate::definition_of;
use sayso::policy::{Annotations, GrantScope, Pins, ToolName};
use sayso::wire::{Grant, GrantKind};
use sayso::{Error, GrantFilter, GrantId, GrantsOf, Json, NewGrant, Principal};
use sayso_core::json::visible;

use crate::args::Place;
use crate::credential::Stdin;
use crate::data_folder::Missing;
use crate::error::CommandError;
use crate::render::table;
use crate::session::Session;
use crate::{exit, output};

/// List what is allowed beforehand, allow more, take it back
#[derive(Debug, ClapArgs)]
#[command(after_help = exit::help(EXAMPLES))]
pub struct GrantsArgs {
    #[command(subcommand)]
    command: GrantsCommand,
}

const EXAMPLES: &[&str] = &[
    "sayso grants list",
    "sayso grants add --session build-17 --tool files:write_file --for-seconds 3600",
    "sayso grants add --from 7Q2M4K --pinned",
    "sayso grants revoke grt_01JZ…",
];

#[derive(Debug, Subcommand)]
enum GrantsCommand {
    /// List grants, newest first, also those that have ended
    #[command(after_help = exit::help(EXAMPLES))]
    List {
        /// Only those of this session
        #[arg(long, value_name = "NAME")]
        session: Option<String>,
        /// `next_cursor` of the page before
        #[arg(long, value_name = "ID")]
        cursor: Option<GrantId>,
        /// Print the page as JSON
        #[arg(long)]
        json: bool,
    },
    /// Let calls of a tool through in a session, where rules ask
    #[command(after_help = exit::help(EXAMPLES))]
    Add(AddArgs),
    /// Take a grant back, from now on and for good
    #[command(after_help = exit::help(EXAMPLES))]
    Revoke {
        /// Its id, such as grt_01JZ…
        id: String,
        /// Print the grant as JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, ClapArgs)]
struct AddArgs {
    /// The session
    #[arg(long, required_unless_present = "from", conflicts_with = "from", value_name = "NAME")]
    session: Option<String>,
    /// The tool, server:name
    #[arg(long, required_unless_present = "from", conflicts_with = "from", value_parser = ToolName::parse, value_name = "TOOL")]
    tool: Option<ToolName>,
    /// The arguments to pin it to, a whole JSON object; without them any
    #[arg(long, conflicts_with = "from", value_parser = Json::parse, value_name = "JSON")]
    args: Option<Json>,
    /// The hints that the tool is judged with, where it has any
    #[arg(long, default_value = "{}", conflicts_with = "from", value_parser = Json::parse, value_name = "JSON")]
    annotations: Json,
    /// The agent whose calls it covers, by its token's name; without it every agent's
    #[arg(long, conflicts_with = "from", value_name = "NAME")]
    agent: Option<String>,
    /// Instead of all these: the round that asks about the call
    #[arg(long, value_name = "ROUND")]
    from: Option<String>,
    /// With --from: for the arguments that were shown alone
    #[arg(long, requires = "from")]
    pinned: bool,
    /// How long it is good for
    #[arg(long, value_name = "SECONDS")]
    for_seconds: Option<u32>,
    /// How many calls it covers
    #[arg(long, value_name = "NUMBER")]
    uses: Option<u32>,
    /// Print the grant as JSON
    #[arg(long)]
    json: bool,
}

impl GrantsArgs {
    /// Whether results and errors are to be JSON.
    pub fn is_json(&self) -> bool {
        match &self.command {
            GrantsCommand::List { json, .. } | GrantsCommand::Revoke { json, .. } => *json,
            GrantsCommand::Add(args) => args.json,
        }
    }
}

/// Lists, adds or revokes.
pub async fn run(place: &Place, args: GrantsArgs) -> Result<(), CommandError> {
    let session = Session::open(place, Stdin::Keys, Missing::Refuse).await?;
    match args.command {
        GrantsCommand::List { session: of, cursor, json } => list(&session, of, cursor, json).await,
        GrantsCommand::Add(args) => add(&session, args).await,
        GrantsCommand::Revoke { id, json } => revoke(&session, &id, json).await,
    }
}

async fn list(session: &Session, of: Option<String>, before: Option<GrantId>, json: bool) -> Result<(), CommandError> {
    let of = of.map_or(GrantsOf::All, GrantsOf::Session);
    let page = session.people().grant_page(GrantFilter { of, before, ..GrantFilter::default() }).await?;
    if json {
        return output::json(&page);
    }
    if page.grants.is_empty() {
        output::note("There are no grants: whatever the rules ask about is asked each time.");
        return Ok(());
    }
    let now = session.sayso.now().await?;
    let rows: Vec<_> = page.grants.iter().map(|grant| row(grant, now)).collect();
    output::text(&table(&["id", "state", "used", "by", "covers"], &rows))?;
    if let Some(cursor) = page.next_cursor {
        output::note(&format!("There are more: --cursor {cursor}"));
    }
    Ok(())
}

fn row(grant: &Grant, now: sayso::UnixMs) -> Vec<String> {
    let state = match (grant.revoked_at, grant.expires_at) {
        (Some(at), _) => format!("revoked {at}"),
        (None, Some(at)) if at <= now => format!("expired {at}"),
        _ if grant.uses_max.is_some_and(|most| grant.uses >= most) => "used up".to_owned(),
        (None, Some(at)) => format!("until {at}"),
        (None, None) => "in force".to_owned(),
    };
    let used = grant.uses_max.map_or_else(|| grant.uses.to_string(), |most| format!("{} of {most}", grant.uses));
    let by = visible(&grant.granted_by.to_string()).into_owned();
    vec![grant.grant_id.to_string(), state, used, by, covers(grant)]
}

/// Everything that a grant covers, in one line.
fn covers(grant: &Grant) -> String {
    let mut parts = vec![match grant.kind {
        GrantKind::Once => "the one call that was shown".to_owned(),
        GrantKind::Session | GrantKind::Rule => grant.tool.clone().unwrap_or_default(),
    }];
    if let Some(arguments) = &grant.arguments {
        parts.push(format!("with {}", arguments.as_str()));
    }
    if let Some(when) = &grant.when {
        parts.push(format!("when {}", when.as_str()));
    }
    if let Some(effects) = &grant.effects {
        let effects: Vec<_> = effects.iter().map(|effect| effect.as_str()).collect();
        parts.push(format!("that may {} at most", effects.join(", ")));
    }
    if let Some(session) = &grant.session {
        parts.push(format!("in session {session}"));
    }
    if let Some(agent) = &grant.agent {
        parts.push(format!("for {agent}"));
    }
    visible(&parts.join(" ")).into_owned()
}

async fn add(session: &Session, args: AddArgs) -> Result<(), CommandError> {
    let people = session.people();
    let drafted = match (&args.from, args.session, args.tool) {
        (Some(round), ..) => {
            let round = session.round(round).await?;
            people.session_grant_of(round.round_id, args.pinned).await.map_err(CommandError::about(round.round_id))?
        }
        (None, Some(of), Some(tool)) => {
            let definition = definition_of(&tool, Annotations::read(&args.annotations));
            let pins = args.args.map_or(Pins::Any, Pins::Exactly);
            let agent = args.agent.map(Principal::agent);
            NewGrant { agent, ..NewGrant::of(GrantScope::Session { session: of, tool, definition, pins }) }
        }
        _ => {
            return Err(CommandError::Usage {
                message: "--session and --tool are needed, or --from".to_owned(),
                help: "name what is to be allowed, or the round that asks about it".to_owned(),
            });
        }
    };
    let good_for_ms = args.for_seconds.map(|seconds| i64::from(seconds) * 1_000);
    let grant = people.grant(NewGrant { good_for_ms, uses_max: args.uses, ..drafted }).await?;
    let grant = Grant::new(&grant);
    if args.json {
        return output::json(&grant);
    }
    output::text(&format!("{} allows {}", grant.grant_id, covers(&grant)))
}

async fn revoke(session: &Session, id: &str, json: bool) -> Result<(), CommandError> {
    let id = GrantId::parse(id).map_err(|error| CommandError::Advised {
        error: Error::field("/id", format!("is {error}")),
        help: "`sayso grants list` prints the ids".to_owned(),
    })?;
    let grant = session.people().revoke_grant(id).await.map_err(|error| match error {
        Error::NotFound(_) => {
            CommandError::Advised { error, help: "`sayso grants list` shows the grants there are".to_owned() }
        }
        error => error.into(),
    })?;
    let grant = Grant::new(&grant);
    if json {
        return output::json(&grant);
    }
    output::text(&format!("{} is taken back: {}", grant.grant_id, covers(&grant)))
}

//! `sayso grants`: what people have allowed beforehand.

use clap::{Args as ClapArgs, Subcommand};
use sayso::policy::Effect;
use sayso::wire::{Grant, GrantDraft, GrantKind};
use sayso::{Error, GrantFilter, GrantId, GrantsOf, Json, Principal, RoundId};
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
    "sayso grants add --from 7Q2M4K --kind rule --free content --uses 20",
    "sayso grants add --kind rule --tool 'files:read_*' --for-seconds 3600",
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
    /// Let calls through where rules ask: in a session, by a rule, or one call
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
    /// How far it reaches
    #[arg(long, value_enum, default_value_t = KindArg::Session)]
    kind: KindArg,
    /// Session: which
    #[arg(long, conflicts_with = "from", value_name = "NAME")]
    session: Option<String>,
    /// Session: the tool, server:name. Rule: a pattern of that form, such as 'files:read_*'
    #[arg(long, conflicts_with = "from", value_name = "TOOL")]
    tool: Option<String>,
    /// The arguments to pin it to, a whole JSON object; without them any
    #[arg(long, conflicts_with = "from", value_parser = Json::parse, value_name = "JSON")]
    args: Option<Json>,
    /// Rule: conditions that the arguments must meet, a JSON list of them as in a policy's rule
    #[arg(long, conflicts_with_all = ["from", "args"], value_parser = Json::parse, value_name = "JSON")]
    when: Option<Json>,
    /// Rule: all that a tool may do for the rule to cover it; without it anything
    #[arg(long, conflicts_with = "from", value_delimiter = ',', value_parser = effect, value_name = "EFFECT")]
    effects: Option<Vec<Effect>>,
    /// Session: the hints that the tool is judged with, where it has any
    #[arg(long, conflicts_with = "from", value_parser = Json::parse, value_name = "JSON")]
    annotations: Option<Json>,
    /// The agent whose calls it covers, by its token's name; without it every agent's
    #[arg(long, conflicts_with = "from", value_name = "NAME")]
    agent: Option<String>,
    /// Instead of all these: the round that asks about the call
    #[arg(long, value_name = "ROUND")]
    from: Option<String>,
    /// Session, with --from: for the arguments that were shown alone
    #[arg(long, requires = "from")]
    pinned: bool,
    /// Rule, with --from: a member of the arguments that may have any value; may be given for each
    #[arg(long, requires = "from", value_name = "MEMBER")]
    free: Vec<String>,
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

/// How far a grant reaches.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum KindArg {
    /// One tool in one session, as long as it stays the tool that was shown
    Session,
    /// Calls like the one that was shown, or of tools that fit a pattern, in every session
    Rule,
    /// The one call that was shown, when it is made again; with --from
    Once,
}

fn effect(text: &str) -> Result<Effect, String> {
    let words = || Effect::ALL.map(Effect::as_str).join(", ");
    Effect::ALL.into_iter().find(|effect| effect.as_str() == text).ok_or_else(|| format!("must be one of {}", words()))
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
    let json = args.json;
    let round = match &args.from {
        Some(round) => Some(session.round(round).await?.round_id),
        None => None,
    };
    let drafted = people.drafted_grant(draft(args, round)).await;
    let drafted = match round {
        Some(round) => drafted.map_err(CommandError::about(round))?,
        None => drafted.map_err(|error| CommandError::Advised {
            error,
            help: "name what is to be allowed (--session and --tool, or --kind rule and --tool), or with --from the \
                   round that asks about it"
                .to_owned(),
        })?,
    };
    let grant = Grant::new(&people.grant(drafted).await?);
    if json {
        return output::json(&grant);
    }
    output::text(&format!("{} allows {}", grant.grant_id, covers(&grant)))
}

fn draft(args: AddArgs, round_id: Option<RoundId>) -> GrantDraft {
    let kind = match args.kind {
        KindArg::Session => GrantKind::Session,
        KindArg::Rule => GrantKind::Rule,
        KindArg::Once => GrantKind::Once,
    };
    GrantDraft {
        round_id,
        pinned: args.pinned.then_some(true),
        free: args.free,
        session: args.session,
        tool: args.tool,
        annotations: args.annotations,
        effects: args.effects,
        arguments: args.args,
        when: args.when,
        agent: args.agent.map(Principal::agent),
        expires_in_seconds: args.for_seconds,
        uses_max: args.uses,
        ..GrantDraft::empty(kind)
    }
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

//! `sayso token`: credentials for agents, scripts and other people. Only hashes are stored.

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use sayso::wire::{NewToken, NewTokenKind, Token};
use sayso::{Error, TokenId};
use sayso_core::json::visible;

use crate::args::Place;
use crate::credential::Stdin;
use crate::data_folder::Missing;
use crate::error::CommandError;
use crate::render::table;
use crate::session::Session;
use crate::{exit, output};

/// Make, list and revoke credentials
#[derive(Debug, ClapArgs)]
#[command(after_help = exit::help(EXAMPLES))]
pub struct TokenArgs {
    #[command(subcommand)]
    command: TokenCommand,
}

const EXAMPLES: &[&str] = &[
    "(umask 077; sayso token new --kind agent --name booking > booking.token)",
    "sayso token list",
    "sayso token revoke tok_01JZ…",
];

#[derive(Debug, Subcommand)]
enum TokenCommand {
    /// Make a credential; its secret is printed once, alone on standard output
    #[command(after_help = exit::help(EXAMPLES))]
    New {
        /// Whom it speaks for: a person answers, an agent asks and collects
        #[arg(long)]
        kind: Kind,
        /// The name that records will show
        #[arg(long)]
        name: String,
        /// Print the credential as JSON, its secret included
        #[arg(long)]
        json: bool,
    },
    /// List credentials, never their secrets
    #[command(after_help = exit::help(EXAMPLES))]
    List {
        /// Print them as JSON
        #[arg(long)]
        json: bool,
    },
    /// Revoke a credential, from now on and for good
    #[command(after_help = exit::help(EXAMPLES))]
    Revoke {
        /// Its id, such as tok_01JZ…
        id: String,
        /// Print the credential as JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kind {
    Person,
    Agent,
}

impl TokenArgs {
    /// Whether results and errors are to be JSON.
    pub fn is_json(&self) -> bool {
        match self.command {
            TokenCommand::New { json, .. } | TokenCommand::List { json } | TokenCommand::Revoke { json, .. } => json,
        }
    }
}

/// Makes, lists or revokes.
pub async fn run(place: &Place, args: TokenArgs) -> Result<(), CommandError> {
    let session = Session::open(place, Stdin::Keys, Missing::Create).await?;
    match args.command {
        TokenCommand::New { kind, name, json } => new(&session, kind, name, json).await,
        TokenCommand::List { json } => list(&session, json).await,
        TokenCommand::Revoke { id, json } => revoke(&session, &id, json).await,
    }
}

async fn new(session: &Session, kind: Kind, name: String, json: bool) -> Result<(), CommandError> {
    let kind = match kind {
        Kind::Person => NewTokenKind::Person,
        Kind::Agent => NewTokenKind::Agent,
    };
    let minted = session.sayso.new_token(&session.caller, NewToken { kind, name }).await?;
    if json {
        return output::json(&minted.token);
    }
    let secret = minted.token.secret.as_deref().ok_or(Error::Corrupt("token"))?;
    output::text(secret)?;
    output::note(&format!(
        "{} for {}. It is shown this once; keep it in a file that only its user can read.",
        minted.token.token_id,
        visible(&minted.token.principal.to_string())
    ));
    Ok(())
}

async fn list(session: &Session, json: bool) -> Result<(), CommandError> {
    let page = session.sayso.tokens(&session.caller).await?;
    if json {
        return output::json(&page);
    }
    if page.tokens.is_empty() {
        output::note("There are no tokens. `sayso token new --kind agent --name NAME` makes one.");
        return Ok(());
    }
    let row = |token: &Token| {
        let revoked = token.revoked_at.map_or_else(|| "in use".to_owned(), |at| format!("revoked {at}"));
        vec![
            token.token_id.to_string(),
            visible(&token.principal.to_string()).into_owned(),
            token.created_at.to_string(),
            revoked,
        ]
    };
    let rows: Vec<_> = page.tokens.iter().map(row).collect();
    output::text(&table(&["id", "for", "made", "state"], &rows))
}

async fn revoke(session: &Session, id: &str, json: bool) -> Result<(), CommandError> {
    let id = TokenId::parse(id).map_err(|error| CommandError::Advised {
        error: Error::field("/id", format!("is {error}")),
        help: "`sayso token list` prints the ids".to_owned(),
    })?;
    let token = session.sayso.revoke_token(&session.caller, id).await.map_err(|error| match error {
        Error::NotFound(_) => {
            CommandError::Advised { error, help: "`sayso token list` shows the tokens there are".to_owned() }
        }
        error => error.into(),
    })?;
    if json {
        return output::json(&token);
    }
    output::text(&format!("{} for {} is revoked.", token.token_id, visible(&token.principal.to_string())))
}

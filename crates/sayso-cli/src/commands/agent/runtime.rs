//! What a run is put together from, on the command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args as ClapArgs;
use sayso::kit::{HttpServer, Server, StdioServer};
use sayso::policy::{Mode, PolicyFiles};
use sayso::{LocalDesk, Principal, Sayso};
use sayso_agents::native::{AgentRuntime, ChatEndpoint, Keyring};
use sayso_core::limits::{MODEL_TURNS_DEFAULT, MODEL_TURNS_MAX};

use crate::args::Place;
use crate::commands::policy::check_mode;
use crate::error::CommandError;
use crate::{account, credential, output, store};

/// The longest time limit: a day.
const TIME_LIMIT_SECONDS_MAX: u64 = 86_400;

/// A key from the environment. It is never printed.
#[derive(Clone)]
struct Secret(String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

/// The model, the tools, and who says what may run. A resume needs the same as the run it goes on with.
#[derive(Debug, ClapArgs)]
pub struct RuntimeArgs {
    /// An OpenAI-compatible endpoint, such as http://127.0.0.1:11434/v1; https through a proxy on this machine
    #[arg(long, value_name = "URL")]
    endpoint: String,
    /// The model's name there
    #[arg(long, value_name = "NAME")]
    model: String,
    /// A file with the endpoint's key, readable for you alone; SAYSO_MODEL_KEY holds the key itself
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// The endpoint's key.
    #[arg(long, env = "SAYSO_MODEL_KEY", hide = true, hide_env_values = true)]
    key: Option<Secret>,
    /// Let the endpoint be on another machine. Whoever is on the way can read the key and every message
    #[arg(long)]
    allow_plain_http: bool,
    /// An MCP server whose tools are offered, as NAME=COMMAND (split at spaces) or NAME=http://…; may be repeated
    #[arg(long, value_parser = server, value_name = "NAME=…")]
    server: Vec<Server>,
    /// Offer this tool, server:name, and no others but those named so; may be repeated
    #[arg(long, value_name = "TOOL")]
    tool: Vec<String>,
    /// A file with one layer of the policy; may be given for each layer
    #[arg(long, value_name = "FILE")]
    policy: Vec<PathBuf>,
    /// What becomes of calls that no rule is about: approval, autonomous or guarded
    #[arg(long, value_parser = crate::commands::policy::mode)]
    mode: Option<Mode>,
    /// Seal runs that wait with the newest key of this file (see native.md)
    #[arg(long, value_name = "FILE")]
    state_keys: Option<PathBuf>,
    /// Whose runs these are: an agent's name, the same on every machine [default: this account's own agent]
    #[arg(long, value_parser = agent_name, value_name = "NAME")]
    name: Option<String>,
    /// What the model is told before the prompt
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// How many answers of the model a run may take
    #[arg(long, default_value_t = MODEL_TURNS_DEFAULT, value_parser = clap::value_parser!(u32).range(1..=i64::from(MODEL_TURNS_MAX)), value_name = "N")]
    turns: u32,
    /// How long a server may take for an answer while nobody is asked, in seconds
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=TIME_LIMIT_SECONDS_MAX), value_name = "SECONDS")]
    timeout: u64,
}

fn server(text: &str) -> Result<Server, String> {
    let (name, place) = text.split_once('=').ok_or("expected NAME=COMMAND or NAME=http://…")?;
    if name.trim().is_empty() || name.contains(':') || name.chars().any(char::is_control) {
        return Err("a server's name is not empty and has no colon".to_owned());
    }
    if place.starts_with("http://") || place.starts_with("https://") {
        return Ok(HttpServer::new(name, place).into());
    }
    let words: Vec<_> = place.split_whitespace().collect();
    if words.is_empty() {
        Err("the server has no command".to_owned())
    } else {
        Ok(StdioServer::new(name, words).into())
    }
}

fn agent_name(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_alphanumeric() || "-_.@".contains(c);
    if text.is_empty() || text.len() > 64 || !text.chars().all(is_plain) {
        return Err("an agent's name has 1 to 64 letters, digits, - _ . @".to_owned());
    }
    Ok(format!("agent:{text}"))
}

/// A runtime over an opened store.
pub struct Opened {
    pub runtime: AgentRuntime,
    /// The same agent's side of the rounds, for waiting.
    pub desk: LocalDesk,
}

impl RuntimeArgs {
    /// Opens the store and puts the runtime together; what cannot be is said before anything is started.
    pub async fn open(self, place: &Place) -> Result<Opened, CommandError> {
        check_mode(&self.policy, self.mode)?;
        let key = match (&self.key_file, &self.key) {
            (Some(file), _) => Some(credential::read_token(file)?),
            (None, key) => key.as_ref().map(|Secret(key)| key.trim().to_owned()).filter(|key| !key.is_empty()),
        };
        let make = if self.allow_plain_http { ChatEndpoint::unencrypted_anywhere } else { ChatEndpoint::new };
        let model = make(&self.endpoint, self.model.clone(), key.as_deref()).map_err(|error| CommandError::Usage {
            message: format!("--endpoint cannot be used: {error}"),
            help: "use an http:// URL of this machine; docs/native.md says how to reach others".to_owned(),
        })?;
        let keys = self.state_keys.as_ref().map(|file| {
            Keyring::open(file).map_err(|error| CommandError::Usage {
                message: format!("--state-keys {}: {error}", file.display()),
                help: "docs/native.md has the form of a key file".to_owned(),
            })
        });
        let keys = keys.transpose()?;
        let policy = PolicyFiles::open(&self.policy);
        for fault in policy.current().faults() {
            output::note(&format!("warning: {fault}; every call is denied until that is put right"));
        }
        let owner = account::owner(place.account.as_deref());
        let secret = place.token_file.as_deref().map(credential::read_token).transpose()?;
        let sayso = Sayso::open(store::resolve(place)?.options().person(owner.clone()).sweeping()).await?;
        let agent = match (secret, self.name) {
            (Some(secret), _) => sayso.authenticate(&secret).await?,
            (None, Some(name)) => Principal::agent(name),
            (None, None) => Principal::agent(owner.name),
        };
        let desk = sayso.desk(agent.clone());
        let mut runtime = AgentRuntime::new(&sayso, agent, model)
            .servers(self.server, self.tool)
            .policy(policy, self.mode)
            .turns_max(self.turns)
            .time_limit(Duration::from_secs(self.timeout));
        if let Some(keys) = keys {
            runtime = runtime.keys(keys);
        }
        if let Some(system) = self.system {
            runtime = runtime.system(system);
        }
        runtime.check()?;
        Ok(Opened { runtime, desk })
    }
}

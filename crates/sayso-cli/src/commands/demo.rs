//! `sayso demo`: the whole way of an answer, on this machine, with a sample server and a scripted client.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args as ClapArgs;
use sayso::wire::{Answer, Keyed, Response, Round};
use sayso::{Channel, Error, Json, Options, People as _, Principal, RoundFilter, RoundId, Sayso, Status};
use sayso_agents::gateway::{self, GatewayOptions, GatewayReport, Hold, Program, Replay};
use sayso_core::json::visible;
use serde::Serialize;
use serde_json::json;
use tokio::io::DuplexStream;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::args::Place;
use crate::demo::{client::Client, shipping};
use crate::error::CommandError;
use crate::{account, data_folder, exit, output, stop};

/// Bytes on their way between the scripted client and the gateway.
const PIPE_BYTES: usize = 64 * 1024;
/// The agent's name in the demo.
const AGENT: &str = "gateway:shipping";

/// See it work: a sample server asks, you answer, the booking goes through
#[derive(Debug, ClapArgs)]
#[command(after_help = exit::help(&[
    "sayso demo",
    "sayso demo --answers demo-answers.json    answer from a file, for scripts",
]))]
pub struct DemoArgs {
    /// Answer from FILE, a response map as JSON: {"elicitation": {"action": "accept", "content": {…}}}
    #[arg(long, value_name = "FILE")]
    answers: Option<PathBuf>,
    /// Where the inbox listens; a free port is taken where this one is in use
    #[arg(long, default_value = "127.0.0.1:7717", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// Print one line of JSON at the end: {"round_id": …, "status": …, "result": …}
    #[arg(long)]
    pub json: bool,
    /// Be the sample server on standard input and output
    #[arg(long, hide = true)]
    as_server: bool,
}

#[derive(Serialize)]
struct Outcome {
    round_id: sayso::RoundId,
    status: Status,
    result: String,
}

/// Runs the demo once, or until it is told to stop.
pub async fn run(place: &Place, args: DemoArgs) -> Result<(), CommandError> {
    if args.as_server {
        shipping::serve(tokio::io::stdin(), tokio::io::stdout()).await;
        return Ok(());
    }
    let answers = args.answers.as_deref().map(read_answers).transpose()?;
    // A store of its own: whoever runs the demo is let into it without more ado, and nothing real is in there.
    let folder = data_folder::resolve(place.data.as_deref())?.join("demo");
    let owner = account::owner(place.account.as_deref());
    let sayso = Sayso::open(Options::at(&folder).person(owner).sweeping()).await?;
    let told = stop::signal()?;
    let before = latest(&sayso).await?;
    let narrator = Narrator { is_quiet: args.json };
    if let Some(round) = &before {
        narrator.say(&format!("Last time: round {} {}.", round.round_id, became(round)))?;
    }
    let stage = Stage::set(&sayso, args.listen).await?;
    let scene = Scene { sayso: &sayso, narrator, inbox: &stage.inbox, folder: &folder, answers };
    let play = scene.play(stage.client_end, before.as_ref().map(|round| round.round_id));
    tokio::pin!(play);
    // The agent stays until the gateway has ended: otherwise it might be seen to leave before the gateway is stopped.
    let result = tokio::select! {
        result = &mut play => result,
        () = told => Err(CommandError::Stopped),
    };
    stage.stop.send_replace(true);
    // A task that panicked has been reported; what it held is for the sweeper.
    let _ = tokio::join!(stage.gateway, stage.server);
    let round = latest(&sayso).await?;
    match (result, round) {
        (Ok(result), Some(Round { round_id, status, .. })) if args.json => {
            output::json(&Outcome { round_id, status, result })
        }
        (Ok(result), _) => narrator.say(&format!("The tool answered: {}", visible(&result))),
        (Err(error), Some(round)) if Some(round.round_id) != before.map(|round| round.round_id) => {
            narrator.say(&format!("Round {} {}.", round.round_id, became(&round)))?;
            Err(error)
        }
        (Err(error), _) => Err(error),
    }
}

/// The response map of a file.
fn read_answers(file: &Path) -> Result<Keyed<Response>, CommandError> {
    let unreadable = |problem: String| CommandError::Advised {
        error: Error::field("/answers", problem),
        help: "give a response map: {\"elicitation\": {\"action\": \"accept\", \"content\": {…}}}".to_owned(),
    };
    let text =
        std::fs::read_to_string(file).map_err(|error| unreadable(format!("cannot be read: {}", error.kind())))?;
    let strict = Json::parse(&text).map_err(|error| unreadable(error.to_string()))?;
    serde_json::from_str(strict.as_str()).map_err(|_| unreadable("is not a response map".to_owned()))
}

/// The newest round of the demo's agent.
async fn latest(sayso: &Sayso) -> Result<Option<Round>, CommandError> {
    let filter = RoundFilter { asked_by: Some(Principal::agent(AGENT)), limit: 1, ..RoundFilter::default() };
    Ok(sayso.people().list(filter).await?.rounds.pop())
}

/// What has become of a round, as a half sentence.
fn became(round: &Round) -> String {
    match (&round.failure, &round.answered, round.status) {
        (Some(failure), _, _) => format!("ended as {}: {}", failure.code, failure.message),
        (None, Some(answered), Status::Resolved) => {
            format!("was answered by {} and went through", visible(&answered.principal.to_string()))
        }
        (None, Some(_), _) => "was answered; its process ended before it went on".to_owned(),
        (None, None, _) => {
            "is still pending; its process ended without a word and it will be marked so within two minutes".to_owned()
        }
    }
}

/// Says things to a person, unless only the result is wanted.
#[derive(Clone, Copy)]
struct Narrator {
    is_quiet: bool,
}

impl Narrator {
    fn say(self, text: &str) -> Result<(), CommandError> {
        if self.is_quiet { Ok(()) } else { output::text(text) }
    }
}

/// The inbox and the gateway with its server, running.
struct Stage {
    inbox: String,
    client_end: DuplexStream,
    stop: watch::Sender<bool>,
    gateway: JoinHandle<GatewayReport>,
    server: JoinHandle<std::io::Result<()>>,
}

impl Stage {
    async fn set(sayso: &Sayso, listen: SocketAddr) -> Result<Self, CommandError> {
        let listener = match TcpListener::bind(listen).await {
            Ok(listener) => listener,
            Err(_) => TcpListener::bind((listen.ip(), 0)).await.map_err(CommandError::Runtime)?,
        };
        let inbox = format!("http://{}", listener.local_addr().map_err(CommandError::Runtime)?);
        let (stop, stopped) = watch::channel(false);
        let until_stopped = |mut stopped: watch::Receiver<bool>| async move {
            // The sender outlives both tasks.
            let _ = stopped.wait_for(|stop| *stop).await;
        };
        let options = sayso_http::ServeOptions::default();
        let server = sayso_http::serve(listener, sayso.clone(), options, until_stopped(stopped.clone()));
        let server = tokio::spawn(server);
        let this = std::env::current_exe().map_err(CommandError::Runtime)?;
        let options = GatewayOptions {
            name: "shipping".to_owned(),
            upstream: Arc::new(Program(vec![this.into(), "demo".into(), "--as-server".into()])),
            hold: Hold::DEFAULT,
            linger: Duration::from_secs(0),
            replay: Replay::Never,
            ask_user: false,
            gate: None,
            trust_agent_relay: false,
            inbox: None,
        };
        let (client_end, gateway_end) = tokio::io::duplex(PIPE_BYTES);
        let (input, output) = tokio::io::split(gateway_end);
        let desk = Arc::new(sayso.desk(Principal::agent(AGENT)));
        let gateway = tokio::spawn(gateway::run(desk, options, input, output, until_stopped(stopped)));
        Ok(Self { inbox, client_end, stop, gateway, server })
    }
}

/// What is played on the stage.
struct Scene<'a> {
    sayso: &'a Sayso,
    narrator: Narrator,
    inbox: &'a str,
    folder: &'a Path,
    answers: Option<Keyed<Response>>,
}

impl Scene<'_> {
    /// The scripted agent quotes, then books, which pauses for a person. What the booking answered.
    async fn play(&self, client_end: DuplexStream, before: Option<RoundId>) -> Result<String, CommandError> {
        let gone = || Error::Unavailable("the sample server ended early".to_owned());
        let (input, output) = tokio::io::split(client_end);
        let mut client = Client::connect(input, output).await.ok_or_else(gone)?;
        let tools = client.tools().await.ok_or_else(gone)?;
        self.narrator.say(&format!("A scripted agent sees the tools {}.", tools.join(", ")))?;
        let quote = client.call("quote_shipment", json!({"item": "anvil"})).await.ok_or_else(gone)?;
        self.narrator.say(&format!("It calls quote_shipment, which passes: {quote}"))?;
        self.narrator.say("It calls book_shipment, which asks where to deliver. The call is paused.")?;
        let result = {
            let booking = client.call("book_shipment", json!({"item": "anvil"}));
            tokio::pin!(booking);
            tokio::select! {
                result = &mut booking => result,
                asked = self.asked(before) => {
                    self.put_to_a_person(&asked?).await?;
                    booking.await
                }
            }
        };
        client.close().await;
        Ok(result.ok_or_else(gone)?)
    }

    /// The round that the booking opens.
    async fn asked(&self, before: Option<RoundId>) -> Result<Round, CommandError> {
        let mut feed = self.sayso.event_feed();
        loop {
            match latest(self.sayso).await? {
                Some(round) if Some(round.round_id) != before => return Ok(round),
                _ => feed.maybe_more().await,
            }
        }
    }

    async fn put_to_a_person(&self, round: &Round) -> Result<(), CommandError> {
        let id = round.round_id;
        if let Some(responses) = &self.answers {
            let answer = Answer { digest: Some(round.digest), responses: responses.clone() };
            let people = self.sayso.people_as(self.sayso.person().clone(), Channel::Cli);
            people.answer(id, answer, "demo").await.map_err(CommandError::about(id))?;
            return self.narrator.say(&format!("Round {id} is answered from the file."));
        }
        let login = self.sayso.new_login(self.sayso.person()).await?;
        self.narrator.say(&format!(
            "\nAnswer in the browser (the link logs you in, once):\n  {}/login?token={}\n\nor in another terminal:\n  \
             sayso answer {id} --data {}\n  sayso answer {id} --data {} --field street=\"1 Main Street\" --field city=Pune\n",
            self.inbox,
            login.secret,
            self.folder.display(),
            self.folder.display(),
        ))?;
        self.narrator.say("Waiting for you. Ctrl-C stops it; starting again says what became of the round.")
    }
}

//! `sayso agent`: a model with tools, whose runs wait for people and go on in whichever process takes them up.

mod outcome;
mod runtime;

use std::io::Read as _;
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand};
use sayso::{Desk as _, Error, ExecutionId, RoundId, Status};
use sayso_agents::native::{AgentRuntime, RunOutcome};
use sayso_core::limits::WAIT_MS_MAX;
use tokio::time::{MissedTickBehavior, interval};

use crate::args::Place;
use crate::error::CommandError;
use crate::{exit, output, stop};
use outcome::{Line, Lines};
use runtime::{Opened, RuntimeArgs};

/// The largest prompt that is read from standard input.
const PROMPT_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// How often a watcher looks for runs that were answered.
const LOOK_EVERY: Duration = Duration::from_secs(1);

const EXAMPLES: &[&str] = &[
    "sayso agent run --endpoint http://127.0.0.1:11434/v1 --model qwen3 --prompt 'Tidy the notes.' \\",
    "    --server 'files=npx @modelcontextprotocol/server-filesystem /home/ada/notes' --policy policy.toml",
    "sayso agent resume --endpoint http://127.0.0.1:11434/v1 --model qwen3 --server … --policy policy.toml",
    "sayso agent resume exe_01JZ… --endpoint … --model … --json",
];

/// Run a model with tools; where a call needs a person, the run waits in the store until it is taken up again
#[derive(Debug, ClapArgs)]
#[command(after_help = exit::help(EXAMPLES))]
pub struct AgentArgs {
    #[command(subcommand)]
    command: AgentCommand,
}

#[derive(Debug, Subcommand)]
enum AgentCommand {
    /// Begin a run: exit code 0 with the model's last word, 12 where a person is asked and the run waits
    #[command(after_help = exit::help(EXAMPLES))]
    Run {
        /// What the model is to do; - reads standard input
        #[arg(long, value_name = "TEXT")]
        prompt: String,
        /// Stay while a person is asked, and go on
        #[arg(long)]
        wait: bool,
        #[command(flatten)]
        runtime: RuntimeArgs,
        /// Print the outcome as one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Go on with runs that have been answered, whichever process began them
    #[command(after_help = exit::help(EXAMPLES))]
    Resume {
        /// One run; without it all of this agent's that were answered
        #[arg(value_name = "EXECUTION")]
        execution: Option<String>,
        /// Stay, and take up each run once it is answered
        #[arg(long, conflicts_with = "execution")]
        watch: bool,
        #[command(flatten)]
        runtime: RuntimeArgs,
        /// Print {"runs": […]}; with --watch a line for each as it comes
        #[arg(long)]
        json: bool,
    },
}

impl AgentArgs {
    /// Whether results and errors are to be JSON.
    pub fn is_json(&self) -> bool {
        match &self.command {
            AgentCommand::Run { json, .. } | AgentCommand::Resume { json, .. } => *json,
        }
    }
}

/// Begins a run, or goes on with some.
pub async fn run(place: &Place, args: AgentArgs) -> Result<(), CommandError> {
    let told = stop::signal()?;
    let work = async {
        match args.command {
            AgentCommand::Run { prompt, wait, runtime, json } => {
                let prompt = read_prompt(prompt)?;
                let opened = runtime.open(place).await?;
                begin(&opened, &prompt, wait, json).await
            }
            AgentCommand::Resume { execution: Some(execution), watch: _, runtime, json } => {
                let execution = ExecutionId::parse(&execution).map_err(|_| no_execution())?;
                let opened = runtime.open(place).await?;
                let outcome = opened.runtime.resume(execution).await?;
                report(Line::of(execution, &outcome), json, true)
            }
            AgentCommand::Resume { execution: None, watch, runtime, json } => {
                let opened = runtime.open(place).await?;
                if watch { follow(&opened.runtime, json).await } else { take_up_all(&opened.runtime, json).await }
            }
        }
    };
    tokio::select! {
        ended = work => ended,
        () = told => Err(CommandError::Stopped),
    }
}

fn no_execution() -> CommandError {
    CommandError::Advised {
        error: Error::field("/execution", "must be a run's id, exe_…"),
        help: "`sayso agent run --json` prints it, and so does `sayso show` of the round it waits in".to_owned(),
    }
}

fn read_prompt(prompt: String) -> Result<String, CommandError> {
    if prompt != "-" {
        return Ok(prompt);
    }
    let usage =
        |message: String| CommandError::Usage { message, help: "give the prompt with --prompt TEXT".to_owned() };
    let mut text = String::new();
    let read = std::io::stdin().lock().take(PROMPT_BYTES_MAX + 1).read_to_string(&mut text);
    read.map_err(|error| usage(format!("standard input cannot be read: {}", error.kind())))?;
    if text.len() as u64 > PROMPT_BYTES_MAX {
        return Err(usage("the prompt has more than 4 MiB".to_owned()));
    }
    Ok(text)
}

async fn begin(opened: &Opened, prompt: &str, wait: bool, json: bool) -> Result<(), CommandError> {
    let runtime = &opened.runtime;
    let execution = runtime.begin().await?;
    let mut outcome = runtime.run(execution, prompt).await?;
    while wait && let Some(round) = outcome.round().map(|round| round.round_id) {
        output::note(&format!("A person is asked: `sayso answer {round}`, or the inbox."));
        answered(opened, round).await?;
        outcome = match runtime.resume(execution).await {
            // Another process was first; how it ends is read from the store.
            Err(Error::Conflict { .. }) => ended_elsewhere(opened, execution).await?,
            outcome => outcome?,
        };
    }
    report(Line::of(execution, &outcome), json, false)
}

/// Returns once the round does not wait any more.
async fn answered(opened: &Opened, round: RoundId) -> Result<(), Error> {
    let mut seen = 0;
    loop {
        let now = opened.desk.wait(round, seen, Duration::from_millis(WAIT_MS_MAX)).await?;
        if now.status != Status::Pending {
            return Ok(());
        }
        seen = now.rev;
    }
}

async fn ended_elsewhere(opened: &Opened, execution: ExecutionId) -> Result<RunOutcome, Error> {
    let mut pause = interval(LOOK_EVERY);
    pause.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        pause.tick().await;
        match opened.runtime.resume(execution).await {
            Err(Error::Conflict { .. }) => {}
            outcome => return outcome,
        }
    }
}

/// Goes on with everything that was answered; none where another process is at it.
async fn take_up(runtime: &AgentRuntime) -> Result<Vec<Line>, CommandError> {
    let mut lines = Vec::new();
    for execution in runtime.answered().await? {
        match runtime.resume(execution).await {
            Ok(outcome) => lines.push(Line::of(execution, &outcome)),
            Err(Error::Conflict { .. }) => {}
            Err(error @ Error::Unavailable(_)) => return Err(error.into()),
            Err(error) => lines.push(Line::refused(execution, &error)),
        }
    }
    Ok(lines)
}

async fn take_up_all(runtime: &AgentRuntime, json: bool) -> Result<(), CommandError> {
    let runs = take_up(runtime).await?;
    if json {
        output::json(&Lines { runs: &runs })?;
    } else if runs.is_empty() {
        output::text("no run has been answered; `sayso list` shows what waits")?;
    } else {
        runs.iter().try_for_each(|line| output::text(&line.text(true)))?;
    }
    runs.iter().find_map(Line::failure).map_or(Ok(()), Err)
}

/// Takes runs up as they are answered, until it is told to stop. One that cannot go on is told of once.
async fn follow(runtime: &AgentRuntime, json: bool) -> Result<(), CommandError> {
    let mut pause = interval(LOOK_EVERY);
    pause.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut told: Vec<Line> = Vec::new();
    loop {
        pause.tick().await;
        let lines = match take_up(runtime).await {
            Ok(lines) => lines,
            // The store is away for a moment; what was answered is still there.
            Err(CommandError::Refused { error: Error::Unavailable(_), .. }) => continue,
            Err(error) => return Err(error),
        };
        for line in lines.iter().filter(|line| !told.contains(line)) {
            if json { output::json(line)? } else { output::text(&line.text(true))? }
        }
        told = lines;
    }
}

fn report(line: Line, json: bool, with_id: bool) -> Result<(), CommandError> {
    if json {
        output::json(&line)?
    } else {
        output::text(&line.text(with_id))?
    }
    if let Some(help) = line.help() {
        output::note(&help);
    }
    line.failure().map_or(Ok(()), Err)
}

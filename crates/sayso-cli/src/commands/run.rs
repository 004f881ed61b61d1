//! `sayso run`: operations against an MCP server, with a scripted plan in the person's place.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args as ClapArgs;
use sayso::kit::{HttpServer, Server};
use sayso::wire::Request;
use sayso::{Error, Response};
use sayso_agents::operate::{Client, OperateError, Operation, Report, reach};
use sayso_core::json::visible;
use serde::Serialize;

use crate::error::CommandError;
use crate::plan_file::{self, PlanFile, TIME_LIMIT_MAX};
use crate::{credential, exit, output, stop};

/// The largest plan file: far more than a thousand expectations take.
const PLAN_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Test what an MCP server asks: run operations, answered by a scripted plan
///
/// The plan file names the server (a command, or a URL), the operations, and what each is expected to ask. Nothing is
/// stored, no person is asked, and no data folder is needed. docs/plans.md has the form of the file.
#[derive(Debug, ClapArgs)]
#[command(after_help = exit::help(&[
    "sayso run --plan plan.toml                  a line for each operation; exit code 0 if all passed, else 10",
    "sayso run --plan plan.toml --timeout 5      where a server must be quick",
    "sayso run --plan plan.toml --json           {\"passed\": …, \"operations\": […]}",
    "sayso run --plan plan.toml --url http://127.0.0.1:3001/mcp    against a server that runs already",
]))]
pub struct RunArgs {
    /// The plan, a TOML file; - reads standard input
    #[arg(long, value_name = "FILE")]
    plan: PathBuf,
    /// How long an operation may take, and the server to start, in seconds
    #[arg(long, default_value = "30", value_parser = time_limit, value_name = "SECONDS")]
    timeout: Duration,
    /// Speak to the server at this URL, over HTTP, instead of the one that the plan names
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Send the token in this file to that URL, as Authorization: Bearer; only you may be able to read the file
    #[arg(long, value_name = "FILE", requires = "url")]
    bearer_file: Option<PathBuf>,
    /// Let that URL be one of another machine. Whoever is on the way can read the token and every answer
    #[arg(long, requires = "url")]
    allow_plain_http: bool,
    /// Print the outcome as one JSON object
    #[arg(long)]
    pub json: bool,
}

fn time_limit(text: &str) -> Result<Duration, String> {
    let limit = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    limit
        .filter(|limit| !limit.is_zero() && *limit <= TIME_LIMIT_MAX)
        .ok_or_else(|| format!("expected more than 0 and at most {} seconds", TIME_LIMIT_MAX.as_secs()))
}

/// Runs the plan's operations in order.
pub async fn run(args: RunArgs) -> Result<(), CommandError> {
    let PlanFile { name, server, operations } = read(&args.plan)?;
    let server = match &args.url {
        Some(url) => at(url, &name, &args)?,
        None => server.ok_or_else(|| CommandError::Usage {
            message: "the plan names no server".to_owned(),
            help: "give its [server] a command or a url, or name one with --url".to_owned(),
        })?,
    };
    let transport = reach(&server)?;
    let told = stop::signal()?;
    let mut client = Client::new(name, transport, args.timeout);
    let mut outcome = Outcome { passed: true, operations: Vec::new() };
    let total = operations.len();
    let work = async {
        for (operation, run) in operations {
            let report = client.run(&operation, run).await;
            outcome.passed &= report.is_passed();
            if !args.json {
                output::text(&line(&operation, &report))?;
            }
            outcome.operations.push(Done::of(operation, report));
        }
        Ok::<_, CommandError>(())
    };
    let ended = tokio::select! {
        ended = work => ended,
        () = told => Err(CommandError::Stopped),
    };
    client.close().await;
    ended?;
    if args.json {
        output::json(&outcome)?;
    }
    let failed = outcome.operations.iter().filter(|done| !done.passed).count();
    if failed == 0 { Ok(()) } else { Err(CommandError::NotPassed { failed, total }) }
}

/// The server at `--url`. The headers of the plan are for the plan's server, and are not sent here.
fn at(url: &str, name: &str, args: &RunArgs) -> Result<Server, CommandError> {
    let mut server = HttpServer { allow_plain_http: args.allow_plain_http, ..HttpServer::new(name, url) };
    if let Some(file) = &args.bearer_file {
        server = server.header("Authorization", format!("Bearer {}", credential::read_token(file)?));
    }
    let server = Server::from(server);
    reach(&server).map_err(|error| CommandError::Usage {
        message: format!("--url cannot be used: {error}"),
        help: "use an http:// URL of this machine; docs/plans.md says what else there is".to_owned(),
    })?;
    Ok(server)
}

fn read(file: &Path) -> Result<PlanFile, CommandError> {
    let name = file.display();
    let text = read_text(file).map_err(|error| CommandError::Usage {
        message: format!("--plan {name} cannot be read: {error}"),
        help: "name a TOML file; docs/plans.md has its form".to_owned(),
    })?;
    plan_file::read(&text).map_err(|problem| CommandError::Advised {
        error: Error::Validation { detail: format!("{name}: {problem}"), fields: Vec::new() },
        help: "nothing was started; docs/plans.md has the form of a plan".to_owned(),
    })
}

fn read_text(file: &Path) -> io::Result<String> {
    use io::Read as _;
    let mut text = String::new();
    let read = |from: &mut dyn io::Read, text: &mut String| from.take(PLAN_BYTES_MAX + 1).read_to_string(text);
    if file == Path::new("-") {
        read(&mut io::stdin().lock(), &mut text)?;
    } else {
        read(&mut std::fs::File::open(file)?, &mut text)?;
    }
    if text.len() as u64 > PLAN_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it has more than 4 MiB"));
    }
    Ok(text)
}

/// One line, or one more for each failure beyond the first.
fn line(operation: &Operation, report: &Report) -> String {
    let what = format!("{} {}", operation.kind.as_str(), visible(&operation.name));
    if report.is_passed() {
        let answered = match report.exchanges.len() {
            0 => String::new(),
            1 => " (1 question answered)".to_owned(),
            many => format!(" ({many} questions answered)"),
        };
        return format!("ok      {what}{answered}");
    }
    let failures: Vec<_> = report.failures.iter().map(|error| visible(&error.to_string()).into_owned()).collect();
    format!("FAILED  {what}: {}", failures.join("\n        and "))
}

/// `--json`.
#[derive(Serialize)]
struct Outcome {
    passed: bool,
    operations: Vec<Done>,
}

#[derive(Serialize)]
struct Done {
    kind: &'static str,
    name: String,
    passed: bool,
    failures: Vec<FailureLine>,
    elicitations: Vec<Asked>,
    answer: Option<AnswerText>,
}

#[derive(Serialize)]
struct FailureLine {
    code: &'static str,
    message: String,
}

#[derive(Serialize)]
struct Asked {
    request: Request,
    /// With defaults filled in; null where the plan had no answer.
    response: Option<Response>,
}

#[derive(Serialize)]
struct AnswerText {
    is_error: bool,
    text: String,
}

impl Done {
    fn of(operation: Operation, report: Report) -> Self {
        let failure = |error: &OperateError| FailureLine { code: error.code(), message: error.to_string() };
        Self {
            kind: operation.kind.as_str(),
            name: operation.name,
            passed: report.is_passed(),
            failures: report.failures.iter().map(failure).collect(),
            elicitations: report
                .exchanges
                .into_iter()
                .map(|exchange| Asked { request: exchange.asked.request, response: exchange.answer })
                .collect(),
            answer: report.reply.map(|reply| AnswerText { is_error: reply.is_error, text: reply.text }),
        }
    }
}

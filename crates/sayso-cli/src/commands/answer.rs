//! `sayso answer`: with flags, with JSON, or in a form on the terminal. All three end in the same `People::answer`.

use clap::Args as ClapArgs;
use sayso::{Answer, Digest, Error, Json, People as _, wire};
use sayso_core::request::Requests;

use crate::answering::{Given, idempotency_key, read_json, read_object, responses_of_flags};
use crate::args::Place;
use crate::credential::{Stdin, Terminals};
use crate::data_folder::Missing;
use crate::error::CommandError;
use crate::session::Session;
use crate::{exit, output, render, terminal_form};

/// Answer a round, with flags or in a form on the terminal
#[derive(Debug, ClapArgs)]
#[command(after_help = exit::help(&[
    "sayso answer 7Q2M4K                                   a form on the terminal, field by field",
    "sayso answer 7Q2M4K --field street='1 Main Street' --field city=Pune",
    "sayso answer 7Q2M4K --field shipping.street=…         one of several requests: KEY.NAME",
    "sayso answer 7Q2M4K --text staging                    a choice or a question",
    "sayso answer 7Q2M4K --field address.street=…          in a group; in a list parcels.0.weight=…",
    "sayso answer 7Q2M4K --approve --digest sha256:…       approve exactly what was shown",
    "sayso answer 7Q2M4K --approve --arguments @edited.json --digest sha256:…",
    "sayso answer 7Q2M4K --deny --reason 'not on a Friday'",
    "sayso answer 7Q2M4K --decline --reason 'not this week'",
    "echo '{\"address\":{\"action\":\"accept\",\"content\":{\"street\":\"…\"}}}' | sayso answer 7Q2M4K --json -",
]))]
pub struct AnswerArgs {
    /// The round: its id, or six characters or more that it begins or ends with
    id: String,
    /// A field of a form, or of a call's input; KEY.NAME=VALUE where there are several requests. Repeat it, also for a list
    #[arg(long = "field", value_name = "NAME=VALUE", value_parser = name_and_value, allow_hyphen_values = true)]
    fields: Vec<(String, String)>,
    /// The answer to a choice or a question: an option's number or label, or any text
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    text: Option<String>,
    /// Which request --field, --text, --approve and --deny are for, where there are several
    #[arg(long, value_name = "KEY")]
    request: Option<String>,
    /// Accept: approve, agree to a URL, send a form's defaults. Goes with --field and --text for the rest
    #[arg(long, conflicts_with_all = ["decline", "cancel"])]
    accept: bool,
    /// Approve the round's calls. Goes with --field and --text for the rest
    #[arg(long, conflicts_with_all = ["accept", "decline", "deny", "cancel"])]
    approve: bool,
    /// Run the call with these arguments instead, where it allows that: a JSON object, or @FILE
    #[arg(long, value_name = "JSON")]
    arguments: Option<String>,
    /// What you add to the call, where it asks for that: a JSON object, or @FILE. --field does the same by name
    #[arg(long, value_name = "JSON")]
    input: Option<String>,
    /// Deny the round's calls; nothing runs
    #[arg(long, conflicts_with_all = ["accept", "decline", "cancel"])]
    deny: bool,
    /// Decline every request of the round
    #[arg(long, conflicts_with_all = ["cancel", "fields", "text", "request"])]
    decline: bool,
    /// Why, for the agent to read
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    reason: Option<String>,
    /// Dismiss the round without a decision: nothing runs, and the agent reads that nobody refused
    #[arg(long, conflicts_with_all = ["fields", "text", "request"])]
    cancel: bool,
    /// The digest of what you saw, as `show` prints it; needed to approve a call
    #[arg(long, value_name = "DIGEST", value_parser = digest)]
    digest: Option<Digest>,
    /// The idempotency key [default: one made from the round and the answer]
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Print the round as JSON. With a FILE, or - for standard input, also read the answer from there: {KEY: {action,
    /// content}}, or an object with `responses` and `digest`. Stands after the id
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    json: Option<Option<String>>,
}

fn name_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("must be NAME=VALUE".to_owned()),
    }
}

fn digest(text: &str) -> Result<Digest, String> {
    Digest::parse(text).ok_or_else(|| "must be sha256: and 64 hexadecimal digits".to_owned())
}

impl AnswerArgs {
    /// Whether results and errors are to be JSON.
    pub fn is_json(&self) -> bool {
        self.json.is_some()
    }

    fn has_flags(&self) -> bool {
        let is_decided = self.accept || self.approve || self.deny || self.decline || self.cancel;
        is_decided || !self.fields.is_empty() || self.text.is_some()
    }

    fn given<'g>(&'g self, arguments: Option<&'g Json>, input: Option<&'g Json>) -> Given<'g> {
        Given {
            approve: self.approve,
            arguments,
            input,
            deny: self.deny.then_some(self.reason.as_deref()),
            fields: &self.fields,
            text: self.text.as_deref(),
            request: self.request.as_deref(),
            accept: self.accept,
            decline: self.decline.then_some(self.reason.as_deref()),
            cancel: self.cancel,
        }
    }
}

/// Answers and prints the round.
pub async fn run(place: &Place, args: AnswerArgs) -> Result<(), CommandError> {
    let source = args.json.as_ref().and_then(Option::as_deref);
    let terminals = Terminals::of_process();
    if source.is_some() && args.has_flags() {
        return Err(CommandError::Usage {
            message: "the answer is given twice: by flags and by --json".to_owned(),
            help: "use --json without a file to print JSON only, and put it last".to_owned(),
        });
    }
    if args.reason.is_some() && !args.decline && !args.deny {
        return Err(CommandError::Usage {
            message: "--reason says why not".to_owned(),
            help: "use it with --deny or --decline".to_owned(),
        });
    }
    if (args.arguments.is_some() || args.input.is_some()) && !args.approve {
        return Err(CommandError::Usage {
            message: "--arguments and --input are for a call that is approved".to_owned(),
            help: "use them with --approve".to_owned(),
        });
    }
    if source.is_none() && !args.has_flags() && !terminals.can_ask() && place.token_file.is_some() {
        return Err(CommandError::Usage {
            message: "there is no terminal to ask on".to_owned(),
            help: "say how to answer: --field, --text, --accept, --approve, --deny, --decline, --cancel or --json -"
                .to_owned(),
        });
    }
    let stdin = if source == Some("-") { Stdin::Data } else { Stdin::Keys };
    let session = Session::open(place, stdin, Missing::Refuse).await?;
    let round = session.round(&args.id).await?;
    let id = round.round_id;
    let requests = round.requests.check().map_err(CommandError::about(id))?;
    let mut answer = match source {
        Some(source) => read_json(source)?,
        None if args.has_flags() => {
            let read = |flag, text: &Option<String>| text.as_deref().map(|text| read_object(flag, text)).transpose();
            let (arguments, input) = (read("--arguments", &args.arguments)?, read("--input", &args.input)?);
            let given = args.given(arguments.as_ref(), input.as_ref());
            let responses = responses_of_flags(&requests, &given).map_err(CommandError::about(id))?;
            Answer { digest: None, responses }
        }
        None => ask(&session, &round, &requests).await?,
    };
    answer.digest = args.digest.or(answer.digest);
    let key = args.key.unwrap_or_else(|| idempotency_key(id, &session.caller, &requests, &answer));
    let answered = session.people().answer(id, answer, &key).await.map_err(CommandError::about(id))?;
    if args.json.is_some() { output::json(&answered) } else { output::text(&render::accepted(&answered)) }
}

/// A form on the terminal. It binds to what it shows: the digest goes with the answer.
async fn ask(session: &Session, round: &wire::Round, requests: &Requests) -> Result<Answer, CommandError> {
    // An ended round, and a caller who may not answer, are told before anything is typed.
    if !session.caller.may_answer() {
        return Err(Error::Forbidden("an agent's credential cannot answer; a person does").into());
    }
    if round.status != sayso::Status::Pending {
        return Err(ended(round));
    }
    output::note(&render::heading(round, render::now()));
    let (round, requests) = (round.clone(), requests.clone());
    let digest = round.digest;
    let filled = tokio::task::spawn_blocking(move || terminal_form::fill(&round, &requests));
    let responses = filled.await.map_err(|_| CommandError::Terminal("the form stopped".to_owned()))??;
    Ok(Answer { digest: Some(digest), responses })
}

fn ended(round: &wire::Round) -> CommandError {
    let about = CommandError::about(round.round_id);
    let winner = round.answered.as_ref().map(|won| sayso_core::round::Answered {
        principal: won.principal.clone(),
        channel: won.channel,
        at: won.at,
        action: won.action,
    });
    match (&round.failure, winner) {
        (Some(failure), _) => about(Error::State {
            detail: format!("not answered: the round ended as {}: {}", failure.code, failure.message),
            status: round.status,
            failure: Some(failure.clone()),
        }),
        (None, winner) => about(Error::Conflict { detail: "somebody else has answered already".to_owned(), winner }),
    }
}

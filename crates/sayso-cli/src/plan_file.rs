//! The TOML form of plans and operations, read strictly: what is unknown or contradicts itself is refused with its line.

use std::ops::Range;
use std::time::Duration;

use sayso::kit::{HttpHeader, HttpServer, Server as Binding, StdioServer};
use sayso::plan::{self, DEFAULT_KEY, Expectation, Plan, Run};
use sayso::{Json, OperationKind, limits};
use sayso_agents::operate::{Operation, reach};
use serde::Deserialize;
use serde_json::Value;
use toml::Spanned;

/// A plan file, read and checked.
#[derive(Debug)]
pub struct PlanFile {
    /// The name that the file gives to its server.
    pub name: String,
    /// The server; none where the file leaves it to the command line.
    pub server: Option<Binding>,
    /// What is to be done, in order.
    pub operations: Vec<(Operation, Run)>,
}

/// The longest an operation may take: longer than any test.
pub const TIME_LIMIT_MAX: Duration = Duration::from_secs(86_400);

/// What a server is called that has no name.
const SERVER_NAME: &str = "server";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    server: Option<Spanned<Server>>,
    #[serde(default)]
    operation: Vec<Spanned<OperationTable>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Server {
    name: Option<String>,
    command: Option<Spanned<Vec<String>>>,
    url: Option<Spanned<String>>,
    headers: Option<Spanned<toml::Table>>,
    allow_plain_http: Option<Spanned<bool>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OperationTable {
    tool: Option<String>,
    prompt: Option<String>,
    resource: Option<String>,
    arguments: Option<Spanned<toml::Table>>,
    expect_text: Option<String>,
    #[serde(default)]
    expect_error: bool,
    round_limit: Option<u32>,
    #[serde(default)]
    plan: Vec<Spanned<Step>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    expect: Option<Mode>,
    maybe: Option<Mode>,
    key: Option<String>,
    message: Option<String>,
    message_is: Option<String>,
    schema: Option<Spanned<toml::Table>>,
    schema_is: Option<Spanned<toml::Table>>,
    url: Option<String>,
    accept: Option<Spanned<toml::Value>>,
    decline: Option<Spanned<toml::Value>>,
    cancel: Option<bool>,
    sequence: Option<Vec<Spanned<Step>>>,
    optional: Option<Vec<Spanned<Step>>>,
    one_of: Option<Vec<Spanned<Step>>>,
    round_of: Option<Vec<Spanned<Step>>>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    Form,
    Url,
}

/// A problem at a place of the file.
type Fault = (Range<usize>, String);

/// Reads a file's text. The error is a sentence that begins with the line.
pub fn read(text: &str) -> Result<PlanFile, String> {
    let file: File = toml::from_str(text).map_err(|error| {
        let message = error.message().to_owned();
        error.span().map_or(message.clone(), |span| located(text, &(span, message)))
    })?;
    checked(file).map_err(|fault| located(text, &fault))
}

fn located(text: &str, (place, problem): &Fault) -> String {
    let before = text.get(..place.start).unwrap_or(text);
    format!("line {}: {problem}", before.matches('\n').count() + 1)
}

fn checked(file: File) -> Result<PlanFile, Fault> {
    let (name, server) = match file.server {
        Some(table) => server(table)?,
        None => (SERVER_NAME.to_owned(), None),
    };
    if file.operation.is_empty() {
        return Err((0..0, "the file has no [[operation]]".to_owned()));
    }
    let operations = file.operation.into_iter().map(operation).collect::<Result<_, _>>()?;
    Ok(PlanFile { name, server, operations })
}

/// The server's name, and the server where the table has more than that.
fn server(table: Spanned<Server>) -> Result<(String, Option<Binding>), Fault> {
    let place = table.span();
    let Server { name, command, url, headers, allow_plain_http } = table.into_inner();
    let name = name.unwrap_or_else(|| SERVER_NAME.to_owned());
    let Some(url) = url else {
        let stray = headers.map(|headers| headers.span()).or_else(|| allow_plain_http.map(|allowed| allowed.span()));
        if let Some(place) = stray {
            return Err((place, "headers and allow_plain_http belong to a url".to_owned()));
        }
        return match command {
            Some(command) if command.get_ref().is_empty() => {
                Err((command.span(), "command names the server's program and its arguments".to_owned()))
            }
            Some(command) => Ok((name.clone(), Some(StdioServer::new(name, command.into_inner()).into()))),
            None => Ok((name, None)),
        };
    };
    if command.is_some() {
        return Err((place, "a server is a command or a url".to_owned()));
    }
    let url_place = url.span();
    let headers = headers.map(read_headers).transpose()?.unwrap_or_default();
    let allow_plain_http = allow_plain_http.is_some_and(Spanned::into_inner);
    let server = HttpServer { name: name.clone(), url: url.into_inner(), headers, allow_plain_http }.into();
    // Said here, where the line is known; whoever runs it would say the same.
    reach(&server).map_err(|error| (url_place, error.to_string()))?;
    Ok((name, Some(server)))
}

/// Read by hand: an error must not repeat a value.
fn read_headers(table: Spanned<toml::Table>) -> Result<Vec<HttpHeader>, Fault> {
    let place = table.span();
    let header = |(name, value)| match value {
        toml::Value::String(value) => Ok(HttpHeader { name, value }),
        _ => Err((place.clone(), "a header is a text: headers = { Authorization = \"Bearer …\" }".to_owned())),
    };
    table.into_inner().into_iter().map(header).collect()
}

fn operation(table: Spanned<OperationTable>) -> Result<(Operation, Run), Fault> {
    let place = table.span();
    let table = table.into_inner();
    let named = [
        (OperationKind::Tool, table.tool),
        (OperationKind::Prompt, table.prompt),
        (OperationKind::Resource, table.resource),
    ];
    let mut named = named.into_iter().filter_map(|(kind, name)| Some((kind, name?)));
    let (Some((kind, name)), None) = (named.next(), named.next()) else {
        return Err((place, "an operation has one of tool, prompt and resource".to_owned()));
    };
    if let (OperationKind::Resource, Some(arguments)) = (kind, &table.arguments) {
        return Err((arguments.span(), "a resource takes no arguments".to_owned()));
    }
    let arguments = table.arguments.map(json_object).transpose()?;
    let round_limit = table.round_limit.unwrap_or(limits::ROUND_LIMIT_DEFAULT);
    let plan = steps(table.plan)?;
    let run = plan.begin().map_err(|error| (place, error.to_string()))?.with_round_limit(round_limit);
    let (expect_text, expect_error) = (table.expect_text, table.expect_error);
    Ok((Operation { kind, name, arguments, expect_text, expect_error }, run))
}

/// A list of steps: nothing, the one, or all of them in order.
fn steps(steps: Vec<Spanned<Step>>) -> Result<Plan, Fault> {
    let mut plans = steps.into_iter().map(step).collect::<Result<Vec<_>, _>>()?;
    Ok(match plans.len() {
        0 | 1 => plans.pop().unwrap_or_else(Plan::nothing),
        _ => plan::sequence(plans),
    })
}

fn each(parts: Vec<Spanned<Step>>) -> Result<Vec<Plan>, Fault> {
    parts.into_iter().map(step).collect()
}

fn step(step: Spanned<Step>) -> Result<Plan, Fault> {
    let place = step.span();
    let mut step = step.into_inner();
    let combined = [step.sequence.take(), step.optional.take(), step.one_of.take(), step.round_of.take()];
    let given = combined.iter().flatten().count();
    let mode = match (step.expect, step.maybe) {
        (Some(mode), None) => Some((mode, true)),
        (None, Some(mode)) => Some((mode, false)),
        (None, None) => None,
        (Some(_), Some(_)) => return Err((place, "a step is either expect or maybe".to_owned())),
    };
    match (mode, given, combined) {
        (Some((mode, is_required)), 0, _) => single(step, place, mode, is_required),
        (None, 1, _) if step.is_more() => Err((
            place,
            "sequence, optional, one_of and round_of stand alone; matchers and answers go inside".to_owned(),
        )),
        (None, 1, [Some(parts), ..]) => steps(parts),
        (None, 1, [_, Some(parts), ..]) => Ok(plan::optional(steps(parts)?)),
        (None, 1, [_, _, Some(parts), _]) => Ok(plan::one_of(each(parts)?)),
        (None, 1, [.., Some(parts)]) => Ok(plan::round_of(each(parts)?)),
        _ => Err((place, "a step is one of expect, maybe, sequence, optional, one_of and round_of".to_owned())),
    }
}

impl Step {
    /// Whether there is anything that belongs to a single expectation.
    fn is_more(&self) -> bool {
        let texts = [&self.key, &self.message, &self.message_is, &self.url];
        texts.iter().any(|text| text.is_some())
            || self.schema.is_some()
            || self.schema_is.is_some()
            || self.accept.is_some()
            || self.decline.is_some()
            || self.cancel.is_some()
    }
}

/// A step's answer.
enum Answer {
    Accept(Spanned<toml::Value>),
    Decline(Option<String>),
    Cancel,
}

fn answer(step: &mut Step, place: &Range<usize>) -> Result<Answer, Fault> {
    let cancel = step.cancel.filter(|cancel| *cancel);
    let refuse = |words: &str| Err((place.clone(), words.to_owned()));
    match (step.accept.take(), step.decline.take(), cancel) {
        (Some(content), None, None) => Ok(Answer::Accept(content)),
        (None, Some(reason), None) => match reason.get_ref() {
            toml::Value::Boolean(true) => Ok(Answer::Decline(None)),
            toml::Value::String(text) => Ok(Answer::Decline(Some(text.clone()))),
            _ => Err((reason.span(), "decline is true or a reason".to_owned())),
        },
        (None, None, Some(_)) => Ok(Answer::Cancel),
        _ => refuse("a step answers with one of accept, decline and cancel = true"),
    }
}

fn single(mut step: Step, place: Range<usize>, mode: Mode, is_required: bool) -> Result<Plan, Fault> {
    let answer = answer(&mut step, &place)?;
    let key = step.key.take().unwrap_or_else(|| DEFAULT_KEY.to_owned());
    match mode {
        Mode::Form => {
            if step.url.is_some() {
                return Err((place, "url belongs to a step that expects a URL".to_owned()));
            }
            let mut expected = if is_required { plan::expect_form(key) } else { plan::maybe_form(key) };
            expected = with_message(expected, &mut step, &place)?;
            expected = match (step.schema, step.schema_is) {
                (Some(part), None) => expected.schema(json_object(part)?),
                (None, Some(whole)) => expected.schema_is(json_object(whole)?),
                (None, None) => expected,
                (Some(_), Some(_)) => return Err((place, "a step has schema or schema_is".to_owned())),
            };
            Ok(match answer {
                Answer::Accept(content) => expected.accept(form_content(content)?),
                Answer::Decline(reason) => expected.decline(reason.as_deref()),
                Answer::Cancel => expected.cancel(),
            })
        }
        Mode::Url => {
            if step.schema.is_some() || step.schema_is.is_some() {
                return Err((place, "a schema belongs to a step that expects a form".to_owned()));
            }
            let mut expected = if is_required { plan::expect_url(key) } else { plan::maybe_url(key) };
            expected = with_message(expected, &mut step, &place)?;
            if let Some(url) = step.url {
                expected = expected.url(url);
            }
            match answer {
                Answer::Accept(yes) if *yes.get_ref() == toml::Value::Boolean(true) => Ok(expected.accept()),
                Answer::Accept(other) => Err((other.span(), "consent to a URL is accept = true".to_owned())),
                Answer::Decline(reason) => Ok(expected.decline(reason.as_deref())),
                Answer::Cancel => Ok(expected.cancel()),
            }
        }
    }
}

fn with_message<M>(expected: Expectation<M>, step: &mut Step, place: &Range<usize>) -> Result<Expectation<M>, Fault> {
    match (step.message.take(), step.message_is.take()) {
        (Some(part), None) => Ok(expected.message(part)),
        (None, Some(whole)) => Ok(expected.message_is(whole)),
        (None, None) => Ok(expected),
        (Some(_), Some(_)) => Err((place.clone(), "a step has message or message_is".to_owned())),
    }
}

fn form_content(content: Spanned<toml::Value>) -> Result<Json, Fault> {
    let place = content.span();
    match content.into_inner() {
        toml::Value::Table(table) => json_object(Spanned::new(place, table)),
        _ => Err((place, "a form is accepted with a table: accept = { field = \"value\" }".to_owned())),
    }
}

fn json_object(table: Spanned<toml::Table>) -> Result<Json, Fault> {
    let place = table.span();
    let value = json(toml::Value::Table(table.into_inner()));
    value.map(|value| Json::from_value(&value)).map_err(|problem| (place, problem))
}

/// The JSON value of a TOML value. Dates and times become the texts that `format` knows.
fn json(value: toml::Value) -> Result<Value, String> {
    Ok(match value {
        toml::Value::String(text) => Value::from(text),
        toml::Value::Integer(number) => Value::from(number),
        toml::Value::Boolean(yes) => Value::from(yes),
        toml::Value::Datetime(time) => Value::from(time.to_string()),
        toml::Value::Float(number) if number.is_finite() => Value::from(number),
        toml::Value::Float(number) => return Err(format!("{number} is no JSON number")),
        toml::Value::Array(items) => Value::Array(items.into_iter().map(json).collect::<Result<_, _>>()?),
        toml::Value::Table(members) => {
            let member = |(name, value)| Ok::<_, String>((name, json(value)?));
            Value::Object(members.into_iter().map(member).collect::<Result<_, _>>()?)
        }
    })
}

#[cfg(test)]
mod tests;

//! The TOML form of one layer of a policy (`docs/policy.md`).

use sayso_core::json::Json;
use sayso_core::policy::{
    Condition, ConditionText, Decision, Effect, Layer, LayerText, Mode, Policy, PolicyError, RuleText, ToolText,
};
use serde::Deserialize;
use toml::Spanned;

/// A file, before it is known whether it makes sense.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default = "operator")]
    layer: Layer,
    mode: Option<Mode>,
    #[serde(default)]
    server: Vec<Spanned<Server>>,
    #[serde(default)]
    tool: Vec<Spanned<Tool>>,
    #[serde(default)]
    rule: Vec<Spanned<RuleTable>>,
}

fn operator() -> Layer {
    Layer::Operator
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Server {
    name: String,
    trusted: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tool {
    tools: Vec<String>,
    effects: Option<Vec<Effect>>,
    command: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleTable {
    id: String,
    allow: Option<Vec<String>>,
    ask: Option<Vec<String>>,
    deny: Option<Vec<String>>,
    effects: Option<Vec<Effect>>,
    #[serde(default)]
    when: Vec<Spanned<ConditionTable>>,
    #[serde(default)]
    require_second_person: bool,
    deadline_seconds: Option<i64>,
    reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConditionTable {
    at: String,
    equals: Option<toml::Value>,
    r#in: Option<Vec<toml::Value>>,
    glob: Option<String>,
    within: Option<String>,
    command: Option<Vec<String>>,
    exists: Option<bool>,
    only: Option<Vec<String>>,
    min: Option<toml::Value>,
    max: Option<toml::Value>,
}

/// Why a file is no layer of a policy: the line, counted from 1, and what is wrong there. It names the key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct FileError {
    /// The line.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

/// Reads one layer from a file's text. The layer is checked: [`Policy::with_layer`] takes it.
pub fn read_layer(text: &str) -> Result<LayerText, FileError> {
    let file: File = toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        FileError { line: line_at(text, start), message: error.message().to_owned() }
    })?;
    let starts = |tables: Vec<usize>| tables.into_iter().map(|start| line_at(text, start)).collect::<Vec<_>>();
    let rules_at = starts(file.rule.iter().map(|rule| rule.span().start).collect());
    let tools_at = starts(file.tool.iter().map(|tool| tool.span().start).collect());
    let mut rules = Vec::with_capacity(file.rule.len());
    for rule in file.rule {
        let place = line_at(text, rule.span().start);
        rules.push(self::rule(text, place, rule.into_inner())?);
    }
    let tool = |tool: Spanned<Tool>| {
        let Tool { tools, effects, command } = tool.into_inner();
        ToolText { tools, effects: effects.map(|effects| effects.into_iter().collect()), command }
    };
    let servers = file.server.into_iter().map(Spanned::into_inner);
    let layer = LayerText {
        layer: file.layer,
        mode: file.mode,
        trusted: servers.filter(|server| server.trusted).map(|server| server.name).collect(),
        tools: file.tool.into_iter().map(tool).collect(),
        rules,
    };
    match Policy::default().with_layer(layer.clone()) {
        Ok(_) => Ok(layer),
        Err(error) => Err(located(text, &error, &layer, &rules_at, &tools_at)),
    }
}

fn rule(text: &str, place: usize, table: RuleTable) -> Result<RuleText, FileError> {
    let fault = |line, message: String| FileError { line, message: format!("rule `{}`: {message}", table.id) };
    let decisions = [(Decision::Allow, table.allow), (Decision::Ask, table.ask), (Decision::Deny, table.deny)];
    let mut decisions = decisions.into_iter().filter_map(|(decision, tools)| Some((decision, tools?)));
    let (Some((decision, tools)), None) = (decisions.next(), decisions.next()) else {
        return Err(fault(place, "a rule has one of allow, ask and deny".to_owned()));
    };
    let mut when = Vec::with_capacity(table.when.len());
    for condition in table.when {
        let line = line_at(text, condition.span().start);
        let condition = condition_text(condition.into_inner()).and_then(Condition::try_from);
        when.push(condition.map_err(|error| fault(line, format!("when: {error}")))?);
    }
    let deadline_ms = table.deadline_seconds.map(|seconds| seconds.saturating_mul(1000));
    let effects = table.effects.map(|effects| effects.into_iter().collect());
    let (id, reason, require_second_person) = (table.id, table.reason, table.require_second_person);
    Ok(RuleText { id, decision, tools, effects, when, require_second_person, deadline_ms, reason })
}

fn condition_text(table: ConditionTable) -> Result<ConditionText, PolicyError> {
    let value = |key: &'static str| move |value: toml::Value| scalar(key, value);
    Ok(ConditionText {
        at: table.at,
        equals: table.equals.map(value("equals")).transpose()?,
        one_of: table.r#in.map(|values| values.into_iter().map(value("in")).collect()).transpose()?,
        glob: table.glob,
        within: table.within,
        command: table.command,
        exists: table.exists,
        only: table.only,
        min: table.min.map(value("min")).transpose()?,
        max: table.max.map(value("max")).transpose()?,
    })
}

fn scalar(key: &str, value: toml::Value) -> Result<Json, PolicyError> {
    let value = match value {
        toml::Value::String(text) => serde_json::Value::from(text),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) if number.is_finite() => number.into(),
        toml::Value::Boolean(truth) => truth.into(),
        _ => return Err(PolicyError::new(key, "is a text, a number, true or false")),
    };
    Ok(Json::from_value(&value))
}

/// Where in the file a checked layer's error is: `rule.3.id` is the key `id` of the fourth rule.
fn located(text: &str, error: &PolicyError, layer: &LayerText, rules: &[usize], tools: &[usize]) -> FileError {
    let mut parts = error.key.splitn(3, '.');
    let (list, at, key) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
    let index = at.and_then(|at| at.parse::<usize>().ok());
    let place = |lines: &[usize]| index.and_then(|index| lines.get(index)).copied();
    let (start, owner) = match list {
        "rule" => {
            let id = index.and_then(|index| layer.rules.get(index)).map(|rule| format!("rule `{}`: ", rule.id));
            (place(rules), id.unwrap_or_default())
        }
        "tool" => (place(tools), "tool: ".to_owned()),
        _ => (None, String::new()),
    };
    let key = key.unwrap_or(list);
    let line = line_of_key(text, start, key).or(start).unwrap_or(1);
    FileError { line, message: format!("{owner}{key}: {}", error.message) }
}

/// The line of a key: in the table that starts at the line `start`, else the first in the file.
fn line_of_key(text: &str, start: Option<usize>, key: &str) -> Option<usize> {
    let from = start.unwrap_or(1);
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim_start())).skip(from - 1);
    let in_table = |(at, line): &(usize, &str)| start.is_none() || *at == from || !line.starts_with("[[");
    let is_key = |line: &str| {
        let header = line.trim_start_matches('[');
        let after = header.strip_prefix(key).map(str::trim_start);
        after.is_some_and(|after| after.starts_with('=') || (line.starts_with('[') && after.starts_with(']')))
    };
    lines.take_while(in_table).find(|(_, line)| is_key(line)).map(|(at, _)| at)
}

fn line_at(text: &str, byte: usize) -> usize {
    text.get(..byte).unwrap_or(text).matches('\n').count() + 1
}

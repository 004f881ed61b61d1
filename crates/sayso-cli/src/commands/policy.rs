//! `sayso policy`: whether policy files can be used, and what they make of a call. Nothing is run and nobody is asked.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args as ClapArgs, Subcommand};
use sayso::policy::{
    Annotations, Basis, Considered, Context, Decision, Explanation, Layer, Mode, Outcome, Policy, PolicyFiles, ToolName,
};
use sayso::{Digest, Error, Json};
use sayso_core::json::{visible, visible_multiline};
use serde::Serialize;

use crate::error::CommandError;
use crate::render::table;
use crate::{exit, output};

/// Check policy files, and see what they make of a call
///
/// A policy says which calls run, which wait for a person, and which never run. docs/policy.md has the form of the files.
#[derive(Debug, ClapArgs)]
#[command(after_help = exit::help(EXAMPLES))]
pub struct PolicyArgs {
    #[command(subcommand)]
    command: PolicyCommand,
}

const EXAMPLES: &[&str] = &[
    "sayso policy check policy.toml",
    "sayso policy explain --policy policy.toml --tool files:write_file --args '{\"path\":\"/etc/hosts\"}'",
];

#[derive(Debug, Subcommand)]
enum PolicyCommand {
    /// Check that files are layers of one policy, and print its version
    #[command(after_help = exit::help(&[
        "sayso policy check policy.toml",
        "sayso policy check operator.toml project.toml --json",
    ]))]
    Check {
        /// The files, each one layer
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Print the outcome as one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Say what a policy makes of a call, and why; exit code 0 if it is allowed, else 11 or 12
    #[command(after_help = exit::help(&[
        "sayso policy explain --policy policy.toml --tool files:read_file",
        "sayso policy explain --policy policy.toml --tool shell:run --args '{\"command\":\"npm test && rm x\"}'",
        "sayso policy explain --policy a.toml --policy b.toml --tool web:get --annotations '{\"readOnlyHint\":true}' --json",
    ]))]
    Explain(ExplainArgs),
}

#[derive(Debug, ClapArgs)]
struct ExplainArgs {
    /// A file with one layer; may be given for each layer
    #[arg(long, value_name = "FILE")]
    policy: Vec<PathBuf>,
    /// The tool, server:name
    #[arg(long, value_parser = ToolName::parse, value_name = "TOOL")]
    tool: ToolName,
    /// Its arguments, a JSON object
    #[arg(long, default_value = "{}", value_parser = Json::parse, value_name = "JSON")]
    args: Json,
    /// The hints that its server gives: readOnlyHint, destructiveHint, idempotentHint, openWorldHint
    #[arg(long, default_value = "{}", value_parser = Json::parse, value_name = "JSON")]
    annotations: Json,
    /// The session's mode, instead of the policy's: approval, autonomous or guarded
    #[arg(long, value_parser = mode, value_name = "MODE")]
    mode: Option<Mode>,
    /// Print the explanation as one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn mode(word: &str) -> Result<Mode, String> {
    let modes = [Mode::Approval, Mode::Autonomous, Mode::Guarded];
    let found = modes.into_iter().find(|mode| mode.as_str() == word);
    found.ok_or_else(|| "must be one of approval, autonomous, guarded".to_owned())
}

/// Whether what decides without a rule can: `guarded` denies what no rule allows, so without a policy it is a mistake.
pub(super) fn check_mode(policy: &[PathBuf], mode: Option<Mode>) -> Result<(), CommandError> {
    if policy.is_empty() && mode == Some(Mode::Guarded) {
        return Err(CommandError::Usage {
            message: "--mode guarded needs a policy, since it denies what no rule allows".to_owned(),
            help: "pass --policy FILE".to_owned(),
        });
    }
    Ok(())
}

impl PolicyArgs {
    /// Whether results and errors are to be JSON.
    pub fn is_json(&self) -> bool {
        match &self.command {
            PolicyCommand::Check { json, .. } => *json,
            PolicyCommand::Explain(args) => args.json,
        }
    }
}

/// Does what the command line says.
pub fn run(args: PolicyArgs) -> Result<(), CommandError> {
    match args.command {
        PolicyCommand::Check { files, json } => check(files, json),
        PolicyCommand::Explain(args) => explain(args),
    }
}

/// The policy in the files; what is wrong with one of them is an error here, where nothing waits to be denied.
fn read(files: Vec<PathBuf>) -> Result<Arc<Policy>, CommandError> {
    let policy = PolicyFiles::open(files).current();
    if policy.faults().is_empty() {
        return Ok(policy);
    }
    Err(CommandError::Advised {
        error: Error::Validation { detail: policy.faults().join("; "), fields: Vec::new() },
        help: "as it is, this policy denies every call; docs/policy.md has the form of the files".to_owned(),
    })
}

/// `check --json`.
#[derive(Serialize)]
struct Checked {
    version: Digest,
    layers: Vec<CheckedLayer>,
}

#[derive(Serialize)]
struct CheckedLayer {
    layer: Layer,
    rules: usize,
}

fn check(files: Vec<PathBuf>, json: bool) -> Result<(), CommandError> {
    let policy = read(files)?;
    let layers = policy.layers().iter().map(|text| CheckedLayer { layer: text.layer, rules: text.rules.len() });
    let checked = Checked { version: policy.version(), layers: layers.collect() };
    if json {
        return output::json(&checked);
    }
    let line = |layer: &CheckedLayer| match layer.rules {
        1 => format!("{}: 1 rule", layer.layer.as_str()),
        rules => format!("{}: {rules} rules", layer.layer.as_str()),
    };
    let mut lines: Vec<_> = checked.layers.iter().map(line).collect();
    lines.push(format!("version {}", checked.version));
    output::text(&lines.join("\n"))
}

fn explain(args: ExplainArgs) -> Result<(), CommandError> {
    let policy = read(args.policy)?;
    let annotations = Annotations::read(&args.annotations);
    let context = Context { annotations, mode: args.mode, ..Context::default() };
    let explanation = policy.explain(&args.tool, &args.args, &context);
    if args.json {
        output::json(&explanation)?;
    } else {
        output::text(&page(&args.tool, &explanation))?;
    }
    match explanation.verdict.decision {
        Decision::Allow => Ok(()),
        decision => Err(CommandError::NotAllowed { asks: decision == Decision::Ask }),
    }
}

fn page(tool: &ToolName, explanation: &Explanation) -> String {
    let verdict = &explanation.verdict;
    let rules: Vec<_> = verdict.rules.iter().map(|rule| format!("{} {}", rule.layer.as_str(), rule.id)).collect();
    let because = match &verdict.basis {
        Basis::Rules => rules.join(", "),
        Basis::Mode => format!("the mode autonomous, where {} would ask", rules.join(", ")),
        Basis::Grant(_) => "a grant".to_owned(),
        Basis::Error(reason) => visible(reason).into_owned(),
    };
    let mut lines = vec![format!("{} {}", verdict.decision.as_str(), visible(&tool.to_string()))];
    let mut add = |name: &str, text: &str| lines.push(format!("  {name:<9} {text}"));
    add("because", &because);
    if let Some(reason) = &verdict.reason {
        add("reason", &visible_multiline(reason));
    }
    if verdict.require_second_person {
        add("by", "a second person: not by whoever started it");
    }
    if let Some(ms) = verdict.deadline_ms {
        add("within", &format!("{} s", ms / 1000));
    }
    add("mode", explanation.mode.as_str());
    add("tool", &facts(explanation));
    lines.push(String::new());
    let rows: Vec<Vec<String>> = explanation.considered.iter().map(row).collect();
    lines.push(table(&["layer", "rule", "says", "here"], &rows));
    lines.join("\n")
}

fn facts(explanation: &Explanation) -> String {
    let facts = &explanation.facts;
    let effects: Vec<_> = facts.effects.iter().map(|effect| effect.as_str()).collect();
    let server = if facts.trusted { "of a trusted server" } else { "of a server that is not trusted" };
    let risk = if facts.destructive { ", may destroy" } else { "" };
    format!("{server}; effects: {}{risk}", effects.join(", "))
}

fn row(considered: &Considered) -> Vec<String> {
    let place = |at: &str| if at.is_empty() { "the arguments".to_owned() } else { visible(at).into_owned() };
    let outcome = match &considered.outcome {
        Outcome::Matched => "decides for its layer".to_owned(),
        Outcome::CannotBeRuledOut { at, why } => {
            format!("cannot be ruled out, so a person is asked: {} {why}", place(at))
        }
        Outcome::OtherTool => "is about other tools".to_owned(),
        Outcome::OtherEffects => "is about other effects".to_owned(),
        Outcome::OtherArguments { at, why } => format!("does not hold: {} {why}", place(at)),
        Outcome::NotReached => "an earlier rule decides".to_owned(),
    };
    vec![
        considered.layer.as_str().to_owned(),
        considered.rule.clone(),
        considered.decision.as_str().to_owned(),
        outcome,
    ]
}

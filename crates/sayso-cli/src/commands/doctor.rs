//! `sayso doctor`: how the store is, what will happen by itself, and what to do.

use clap::Args as ClapArgs;
use sayso::doctor::{self, Finding, Severity};
use sayso_core::json::visible;
use serde::Serialize;

use crate::args::Place;
use crate::data_folder::Missing;
use crate::error::CommandError;
use crate::{exit, output, store};

/// Explain the state of the data folder or database; repairs nothing
///
/// Reads the store without opening it as one: it works beside everything that uses it, where nothing may be written, and
/// on a store that is damaged. It prints no question and no answer, and so needs no credential beyond being able to read
/// the store.
#[derive(Debug, ClapArgs)]
#[command(after_help = exit::help(&[
    "sayso doctor",
    "sayso doctor --data /srv/sayso",
    "sayso doctor --store postgres://sayso@db/sayso",
    "sayso doctor --json | jq '.findings[] | select(.severity != \"ok\")'",
]))]
pub struct DoctorArgs {
    /// Print {"store": …, "severity": …, "findings": […]} as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Serialize)]
struct Report {
    store: String,
    severity: Severity,
    findings: Vec<Finding>,
}

/// Looks, and says what it saw.
pub async fn run(place: &Place, args: DoctorArgs) -> Result<(), CommandError> {
    let store = store::resolve(place)?;
    store.check(Missing::Refuse)?;
    let uid = rustix::process::getuid().as_raw();
    let findings = doctor::examine(&store.options(), uid).await?;
    let severity = findings.iter().map(|finding| finding.severity).max().unwrap_or(Severity::Ok);
    let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let (warnings, problems) = (count(Severity::Warning), count(Severity::Problem));
    if args.json {
        output::json(&Report { store: store.to_string(), severity, findings })?;
    } else {
        let mut lines = vec![visible(&store.to_string()).into_owned()];
        findings.iter().for_each(|finding| lines.extend(lines_of(finding)));
        output::text(&lines.join("\n"))?;
    }
    if severity == Severity::Ok { Ok(()) } else { Err(CommandError::Found { warnings, problems }) }
}

fn lines_of(finding: &Finding) -> Vec<String> {
    let word = match finding.severity {
        Severity::Ok => "ok",
        Severity::Warning => "warning",
        Severity::Problem => "PROBLEM",
    };
    let help = finding.help.as_ref().map(|help| format!("{:23}{}", "", visible(help)));
    let found = format!("  {word:<8} {:<11} {}", finding.check, visible(&finding.detail));
    std::iter::once(found).chain(help).collect()
}

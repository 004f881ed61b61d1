//! `sayso bench`: what this version reaches on this machine, beside what the disk and the database can do.

mod connection;
mod http;
mod many;
mod plot;
mod report;
mod serving;

use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use sayso::Error;
use sayso::measure::{self, Effort, Measured, Name};
use sayso_store::limit::ScratchSchema;

use crate::args::{Place, StoreUrl};
use crate::error::CommandError;
use crate::{data_folder, exit, output, stop};

/// Measure what this version reaches on this machine
///
/// Each figure is measured beside a raw limit of the same disk or database in the same run; docs/performance.md says what
/// each means. It works in a folder of its own inside the data folder, and in a schema of its own in the database that
/// --store names; both are gone afterwards, and nothing else is touched. Without --store the figures of PostgreSQL are left
/// out. The whole takes some ten minutes and 3 GB of disk and memory.
#[derive(Debug, ClapArgs)]
#[command(after_help = exit::help(&[
    "sayso bench --data DIR                               the figures of SQLite, on the disk of DIR",
    "sayso bench --store postgres://sayso:…@db/sayso      those of PostgreSQL, too",
    "sayso bench --figure in_process_64,in_process_512    these alone",
    "sayso bench --quick --json                           rough figures, {\"figures\": {NAME: {value, unit, limit, ratio}}}",
    "sayso bench --markdown --svg docs/images/performance.svg    the table and the plot of docs/performance.md",
]))]
pub struct BenchArgs {
    /// Measure these figures alone: names as in docs/performance.md
    #[arg(long, value_name = "NAME", value_delimiter = ',', num_args = 1.., value_parser = figure)]
    figure: Vec<Name>,
    /// Measure briefly, among fewer pending rounds: the figures are rough
    #[arg(long)]
    quick: bool,
    /// Print the figures as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Print the figures as a Markdown table
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Also draw how much of each target is reached into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

fn figure(word: &str) -> Result<Name, String> {
    Name::parse(word).ok_or_else(|| {
        let names: Vec<_> = Name::ALL.iter().map(|name| name.as_str()).collect();
        format!("expected one of {}", names.join(", "))
    })
}

const ON_POSTGRES: [Name; 2] = [Name::Postgres64, Name::PostgresWake];

/// Measures and prints.
pub async fn run(place: &Place, args: BenchArgs) -> Result<(), CommandError> {
    let database = place.store.as_ref().map(|StoreUrl(url)| url.as_str()).filter(|url| !url.is_empty());
    let wanted = wanted(&args.figure, database.is_some())?;
    let effort = if args.quick { Effort::QUICK } else { Effort::FULL };
    let told = stop::signal()?;
    let folder = Scratch::create(&data_folder::resolve(place.data.as_deref())?)?;
    let schema = match database.filter(|_| ON_POSTGRES.iter().any(|name| wanted.contains(name))) {
        Some(url) => Some(ScratchSchema::create(url).await?),
        None => None,
    };
    let measured = tokio::select! {
        measured = measure_all(folder.path(), schema.as_ref(), &wanted, effort) => measured,
        () = told => Err(CommandError::Stopped),
    };
    drop(folder);
    let removed = match schema {
        Some(schema) => schema.remove().await,
        None => Ok(()),
    };
    // Why nothing could be measured says more than that cleaning up failed, too.
    let measured = measured?;
    removed?;
    if let Some(file) = &args.svg {
        std::fs::write(file, plot::draw(&measured)).map_err(|error| unwritable(file, &error))?;
    }
    if args.json {
        return output::json(&report::json(&measured, args.quick));
    }
    output::text(&if args.markdown { report::markdown(&measured) } else { report::text(&measured) })
}

/// The figures to measure. One that is asked for by name and cannot be measured is refused; the others are left out.
fn wanted(named: &[Name], has_database: bool) -> Result<Vec<Name>, CommandError> {
    let needs_database = |name: &Name| ON_POSTGRES.contains(name);
    if !has_database && let Some(name) = named.iter().find(|name| needs_database(name)) {
        return Err(CommandError::Usage {
            message: format!("{} is measured in a database, and none is named", name.as_str()),
            help: "name one: --store postgres://USER:PASSWORD@HOST/DATABASE".to_owned(),
        });
    }
    if !named.is_empty() {
        return Ok(named.to_vec());
    }
    if !has_database {
        output::note("no --store: the figures of PostgreSQL are left out");
    }
    Ok(Name::ALL.into_iter().filter(|name| has_database || !needs_database(name)).collect())
}

async fn measure_all(
    folder: &Path,
    schema: Option<&ScratchSchema>,
    wanted: &[Name],
    effort: Effort,
) -> Result<Measured, CommandError> {
    let watch = measure::Stopwatch::start();
    let progress = |line: &str| output::note(&format!("[{:4} s] {line}", watch.elapsed().as_secs()));
    let mut measured = measure::in_process(folder, wanted, effort, &progress).await?;
    measured.extend(http::measure(folder, wanted, effort, &progress).await?);
    if let Some(schema) = schema {
        measured.extend(measure::postgres(schema, wanted, effort, &progress).await?);
    }
    measured.extend(many::measure(folder, wanted, effort, &progress).await?);
    Ok(measured)
}

fn unwritable(file: &Path, error: &std::io::Error) -> CommandError {
    let error = Error::Unavailable(format!("{} cannot be written: {}", file.display(), error.kind()));
    CommandError::Advised { error, help: "name a file in a folder that exists and is yours: --svg FILE".to_owned() }
}

/// A folder of this run alone, on the disk to be measured; removed when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn create(data: &Path) -> Result<Self, CommandError> {
        use std::os::unix::fs::DirBuilderExt as _;
        let folder = data.join(format!("bench-{}", std::process::id()));
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)
            .map_err(|error| Error::Unavailable(format!("{} cannot be created: {}", folder.display(), error.kind())))?;
        Ok(Self(folder))
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is in the way of nothing.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_of_a_database_is_refused_without_one_and_else_left_out() {
        assert!(matches!(wanted(&[Name::PostgresWake], false), Err(CommandError::Usage { .. })));
        assert_eq!(wanted(&[], false).unwrap().len(), Name::ALL.len() - ON_POSTGRES.len());
        assert_eq!(wanted(&[], true).unwrap(), Name::ALL);
        assert_eq!(wanted(&[Name::PostgresWake], true).unwrap(), [Name::PostgresWake]);
    }

    #[test]
    fn the_documentation_has_every_figure_and_no_other() {
        let page = include_str!("../../../../../docs/performance.md");
        let table = page.split("<!-- figures -->").nth(1).expect("a table of figures between two marks");
        let named: Vec<_> = table.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
        assert_eq!(named, Name::ALL.map(Name::as_str));
    }

    #[test]
    fn a_figure_that_the_documentation_calls_missed_says_there_what_holds_it_back() {
        let page = include_str!("../../../../../docs/performance.md");
        let table = page.split("<!-- figures -->").nth(1).expect("a table of figures between two marks");
        for name in Name::ALL {
            let beginning = format!("| `{}` |", name.as_str());
            let row = table.lines().find(|line| line.starts_with(&beginning)).expect("a row");
            let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
            let [_, _, _, ratio, target, mark, reason] = cells.as_slice() else { panic!("seven columns: {row}") };
            assert_eq!(*target, report::target(name), "{row}");
            let is_reached = name.target().is_reached(ratio.parse().expect("a number"));
            assert_eq!(*mark, if is_reached { "reached" } else { "missed" }, "{row}");
            assert!(is_reached || reason.chars().any(char::is_alphabetic), "it does not say why: {row}");
        }
    }
}

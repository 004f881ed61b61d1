//! `cargo bench -p sayso -- [FIGURE…] [--quick] [postgres://…]`: what the library reaches in process beside what this disk
//! can do, and the database where one is named. The files are on the target folder's disk. `sayso bench` measures these and
//! the figures of the server.
#![allow(missing_docs, clippy::print_stdout, reason = "a bench prints its results")]

use std::path::Path;

use sayso::measure::{self, Effort, Measured, Name};
use sayso_store::limit::ScratchSchema;

/// What needs a server.
const SERVED: [Name; 8] = [
    Name::Http64,
    Name::SequentialHttp,
    Name::WakeHttp,
    Name::CpuHttp,
    Name::PendingBytes,
    Name::IdleCpu,
    Name::FirstAnswerAfterKill,
    Name::DeadlinesAfterKill,
];
/// What needs a database.
const ON_POSTGRES: [Name; 2] = [Name::Postgres64, Name::PostgresWake];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (options, words): (Vec<_>, Vec<_>) = std::env::args().skip(1).partition(|argument| argument.starts_with('-'));
    let effort = if options.iter().any(|option| option == "--quick") { Effort::QUICK } else { Effort::FULL };
    let (databases, words): (Vec<_>, Vec<_>) = words.into_iter().partition(|word| word.contains("://"));
    let database = databases.into_iter().next();
    let mut wanted = Vec::new();
    for word in words {
        let name = Name::parse(&word).ok_or_else(|| format!("{word} is no figure"))?;
        if SERVED.contains(&name) {
            return Err(format!("{word} needs a server: sayso bench --figure {word}").into());
        }
        if ON_POSTGRES.contains(&name) && database.is_none() {
            return Err(format!("{word} needs a database: name it as postgres://USER@HOST/DATABASE").into());
        }
        wanted.push(name);
    }
    if wanted.is_empty() {
        wanted = Name::ALL.into_iter().filter(|name| !SERVED.contains(name)).collect();
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let runtime = tokio::runtime::Runtime::new()?;
    let measured = runtime.block_on(measure_all(&folder, database.as_deref(), &wanted, effort));
    std::fs::remove_dir_all(&folder)?;
    print(&measured?);
    Ok(())
}

async fn measure_all(
    folder: &Path,
    database: Option<&str>,
    wanted: &[Name],
    effort: Effort,
) -> Result<Measured, sayso::Error> {
    let progress = |line: &str| println!("{line}");
    let mut measured = measure::in_process(folder, wanted, effort, &progress).await?;
    if let Some(url) = database
        && ON_POSTGRES.iter().any(|name| wanted.contains(name))
    {
        let schema = ScratchSchema::create(url).await?;
        let on_postgres = measure::postgres(&schema, wanted, effort, &progress).await;
        schema.remove().await?;
        measured.extend(on_postgres?);
    }
    measured.extend(measure::many(folder, wanted, effort, &progress).await?);
    Ok(measured)
}

fn print(measured: &Measured) {
    for (name, (value, unit)) in measured.limits.iter().chain(&measured.also) {
        println!("{name:24} {value:12.3} {unit}");
    }
    for (name, figure) in &measured.figures {
        let mark = if name.target().is_reached(figure.ratio) { "reached" } else { "missed" };
        let (name, unit) = (name.as_str(), figure.unit);
        println!(
            "{name:24} {:12.3} {unit:10} limit {:12.3}  ratio {:.3} {mark}",
            figure.value, figure.limit, figure.ratio
        );
    }
}

//! `cargo bench -p sayso [-- FIGURE…] [-- --quick]`: what the library reaches in process beside what this disk can do.
//! The files are in the target folder's disk. `sayso bench` measures these and the others.
#![allow(missing_docs, clippy::print_stdout, reason = "a bench prints its results")]

use std::path::Path;

use sayso::measure::{self, Effort, Name};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let effort = if arguments.iter().any(|argument| argument == "--quick") { Effort::QUICK } else { Effort::FULL };
    let named: Vec<Name> = arguments.iter().filter_map(|argument| Name::parse(argument)).collect();
    let wanted = if named.is_empty() { Name::ALL.to_vec() } else { named };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let runtime = tokio::runtime::Runtime::new()?;
    let measured = runtime.block_on(measure::in_process(&folder, &wanted, effort, &|line| println!("{line}")));
    std::fs::remove_dir_all(&folder)?;
    let measured = measured?;
    for (name, (value, unit)) in &measured.limits {
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
    Ok(())
}

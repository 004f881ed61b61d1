//! The figures as text, as a Markdown table and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use sayso::measure::{Figure, Measured, Name, Target};
use serde::Serialize;

/// What `--json` prints.
#[derive(Serialize)]
pub struct Report {
    figures: BTreeMap<&'static str, Figure>,
    limits: BTreeMap<&'static str, Quantity>,
    /// What the runs show that has no target.
    also: BTreeMap<&'static str, Quantity>,
    quick: bool,
}

#[derive(Serialize)]
struct Quantity {
    value: f64,
    unit: &'static str,
}

/// The figures under their names.
pub fn json(measured: &Measured, quick: bool) -> Report {
    Report {
        figures: measured.figures.iter().map(|(name, figure)| (name.as_str(), *figure)).collect(),
        limits: quantities(&measured.limits),
        also: quantities(&measured.also),
        quick,
    }
}

fn quantities(of: &BTreeMap<&'static str, (f64, &'static str)>) -> BTreeMap<&'static str, Quantity> {
    of.iter().map(|(name, (value, unit))| (*name, Quantity { value: *value, unit })).collect()
}

/// A line a figure, for a terminal.
pub fn text(measured: &Measured) -> String {
    let mut text = String::new();
    for (name, (value, unit)) in measured.limits.iter().chain(&measured.also) {
        let _ = writeln!(text, "{name:<24}{:>14} {unit}", shown(*value));
    }
    for (name, figure) in &measured.figures {
        let (word, target, mark) = (name.as_str(), target(*name), mark(*name, figure));
        let (value, limit) = (shown(figure.value), shown(figure.limit));
        let ratio = format!("{:.2}", figure.ratio);
        let _ = writeln!(
            text,
            "{word:<24}{value:>14} {:<10} limit {limit:>10}  ratio {ratio:>6} ({target}) {mark}",
            figure.unit
        );
    }
    text
}

/// The table of docs/performance.md.
pub fn markdown(measured: &Measured) -> String {
    let mut text = String::from("| figure | measured | limit | ratio | target | |\n|---|---:|---:|---:|---|---|\n");
    for (name, figure) in &measured.figures {
        let (word, unit) = (name.as_str(), figure.unit);
        let (value, limit) = (shown(figure.value), shown(figure.limit));
        let (target, mark) = (target(*name), mark(*name, figure));
        let _ =
            writeln!(text, "| `{word}` | {value} {unit} | {limit} {unit} | {:.2} | {target} | {mark} |", figure.ratio);
    }
    for (title, of) in [("Raw limits of this run", &measured.limits), ("Beside the figures", &measured.also)] {
        let all: Vec<_> = of.iter().map(|(name, (value, unit))| format!("{name} {} {unit}", shown(*value))).collect();
        if !all.is_empty() {
            let _ = writeln!(text, "\n{title}: {}.", all.join(", "));
        }
    }
    text
}

/// What a figure is to reach, as the table says it.
pub fn target(name: Name) -> String {
    match name.target() {
        Target::AtLeast(least) => format!("≥ {least}"),
        Target::AtMost(most) => format!("≤ {most}"),
    }
}

fn mark(name: Name, figure: &Figure) -> &'static str {
    if name.target().is_reached(figure.ratio) { "reached" } else { "missed" }
}

/// Three digits that count, and no more.
fn shown(value: f64) -> String {
    match value.abs() {
        large if large >= 100.0 => format!("{value:.0}"),
        middle if middle >= 10.0 => format!("{value:.1}"),
        middle if middle >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured() -> Measured {
        let mut measured = Measured::default();
        measured.limit("S64", 40_000.0, "cycles/s");
        measured.against(Name::InProcess64, 20_000.0, 40_000.0);
        measured.figure(Name::IdleCpu, 0.75);
        measured.also("wake_64_p50", 1.25, "ms");
        measured
    }

    #[test]
    fn a_table_says_whether_each_target_is_reached() {
        let table = markdown(&measured());
        assert!(
            table.contains("| `in_process_64` | 20000 cycles/s | 40000 cycles/s | 0.50 | ≥ 0.45 | reached |"),
            "{table}"
        );
        assert!(table.contains("| `idle_cpu` | 0.750 % | 0.500 % | 1.50 | ≤ 1 | missed |"), "{table}");
        assert!(table.contains("Beside the figures: wake_64_p50 1.25 ms."), "{table}");
        assert!(text(&measured()).contains("missed") && text(&measured()).contains("1.25 ms"));
    }

    #[test]
    fn the_object_has_each_figure_under_its_name() {
        let object = serde_json::to_value(json(&measured(), true)).unwrap();
        let expected = serde_json::json!({"value": 20_000.0, "unit": "cycles/s", "limit": 40_000.0, "ratio": 0.5});
        assert_eq!(object["figures"]["in_process_64"], expected);
        assert_eq!(object["limits"]["S64"]["value"], 40_000.0);
        assert_eq!(object["also"]["wake_64_p50"], serde_json::json!({"value": 1.25, "unit": "ms"}));
        assert_eq!(object["quick"], true);
    }
}

//! A bar a figure: how much of its target is reached. The line is the target; a bar that crosses it is better.

use std::fmt::Write as _;

use sayso::measure::Measured;

const ROW: usize = 24;
const LABELS: usize = 190;
const BARS: usize = 480;
/// What the whole width stands for.
const PARTS_MAX: f64 = 2.0;

/// The plot as SVG; it is readable on light and dark pages.
pub fn draw(measured: &Measured) -> String {
    let height = ROW * (measured.figures.len() + 2);
    let (width, target) = (LABELS + BARS + 80, LABELS + BARS / 2);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" \
         font-size=\"12\" role=\"img\" aria-label=\"How much of each target is reached\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    for (row, (name, figure)) in measured.figures.iter().enumerate() {
        let top = ROW * (row + 1);
        let part = name.target().part_reached(figure.ratio);
        let length = length_of(part);
        // A cost of nothing reaches more of its target than a number says.
        let reached = if part.is_finite() { format!("{:.0} %", part * 100.0) } else { "all".to_owned() };
        let fill = if name.target().is_reached(figure.ratio) { "#2f7d4f" } else { "#b5542a" };
        let (text, bar, word) = (top + 15, top + 4, name.as_str());
        let (label, after) = (LABELS - 8, LABELS + length + 6);
        let _ = writeln!(
            svg,
            "<text x=\"{label}\" y=\"{text}\" text-anchor=\"end\" fill=\"#222222\">{word}</text>\
             <rect x=\"{LABELS}\" y=\"{bar}\" width=\"{length}\" height=\"16\" fill=\"{fill}\"/>\
             <text x=\"{after}\" y=\"{text}\" fill=\"#222222\">{reached}</text>"
        );
    }
    let (bottom, caption) = (height - ROW, height - 8);
    let _ = writeln!(
        svg,
        "<line x1=\"{target}\" y1=\"{ROW}\" x2=\"{target}\" y2=\"{bottom}\" stroke=\"#222222\" stroke-dasharray=\"4 3\"/>\
         <text x=\"{target}\" y=\"{caption}\" text-anchor=\"middle\" fill=\"#222222\">target</text>"
    );
    svg.push_str("</svg>\n");
    svg
}

/// In whole pixels; a bar that would leave the page ends with it.
fn length_of(part: f64) -> usize {
    let per_mille = (part.clamp(0.0, PARTS_MAX) / PARTS_MAX * 1000.0).round();
    (0..=1000_usize).rev().find(|step| f64::from(u16::try_from(*step).unwrap_or_default()) <= per_mille).unwrap_or(0)
        * BARS
        / 1000
}

#[cfg(test)]
mod tests {
    use super::*;
    use sayso::measure::Name;

    #[test]
    fn a_bar_reaches_the_line_exactly_where_the_target_is_reached() {
        assert_eq!(length_of(1.0), BARS / 2);
        assert_eq!(length_of(0.0), 0);
        assert_eq!(length_of(50.0), BARS);
        assert_eq!(length_of(f64::NAN), 0);
    }

    #[test]
    fn every_measured_figure_has_a_bar() {
        let mut measured = Measured::default();
        measured.against(Name::InProcess64, 20_000.0, 40_000.0);
        measured.figure(Name::IdleCpu, 0.75);
        let svg = draw(&measured);
        assert!(svg.contains(">in_process_64<") && svg.contains(">111 %<"), "{svg}");
        assert!(svg.contains(">idle_cpu<") && svg.contains(">67 %<"), "{svg}");
    }
}

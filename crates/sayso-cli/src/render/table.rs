/// Columns under their names, two spaces apart. The last column is not padded.
pub fn table(names: &[&str], rows: &[Vec<String>]) -> String {
    let all = || std::iter::once(names.iter().map(|name| (*name).to_owned()).collect()).chain(rows.iter().cloned());
    let width = |at: usize| all().filter_map(|row: Vec<String>| row.get(at).map(|cell| cell.chars().count())).max();
    let widths: Vec<usize> = (0..names.len()).map(|at| width(at).unwrap_or_default()).collect();
    let line = |row: Vec<String>| {
        let cells: Vec<_> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        cells.join("  ").trim_end().to_owned()
    };
    all().map(line).collect::<Vec<_>>().join("\n")
}

/// The beginning of a text, with an ellipsis where something is cut off.
pub(super) fn start(text: &str, chars_max: usize) -> String {
    if text.chars().count() <= chars_max {
        return text.to_owned();
    }
    let kept: String = text.chars().take(chars_max.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = vec![vec!["a".to_owned(), "x".to_owned()], vec!["long".to_owned(), "y".to_owned()]];
        assert_eq!(table(&["id", "n"], &rows), "id    n\na     x\nlong  y");
        assert_eq!(start("abcdef", 4), "abc…");
        assert_eq!(start("abcd", 4), "abcd");
    }
}

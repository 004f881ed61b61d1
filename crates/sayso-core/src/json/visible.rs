//! Characters that change how a text looks without being seen, made visible.

use std::borrow::Cow;

/// The text for one line: control, bidirectional, zero-width and tag characters as `⟦U+202E⟧`. Everything a person
/// is shown goes through here (`docs/rounds.md`, "Audit and redaction"), so that no text can pose as another.
pub fn visible(text: &str) -> Cow<'_, str> {
    replaced(text, is_deceptive)
}

/// As [`visible`], with line breaks (`\n`) and tabs kept.
pub fn visible_multiline(text: &str) -> Cow<'_, str> {
    replaced(text, |next| !matches!(next, '\n' | '\t') && is_deceptive(next))
}

fn replaced(text: &str, hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for next in text.chars() {
        if hidden(next) {
            out.push_str(&format!("⟦U+{:04X}⟧", u32::from(next)));
        } else {
            out.push(next);
        }
    }
    Cow::Owned(out)
}

fn is_deceptive(next: char) -> bool {
    next.is_control()
        || matches!(next,
            // Direction: marks, embeddings, overrides, isolates.
            '\u{61C}' | '\u{200E}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}'
            // Without width.
            | '\u{AD}' | '\u{180E}' | '\u{200B}'..='\u{200D}' | '\u{2060}'..='\u{2064}' | '\u{FEFF}'
            // Line and paragraph separators, deprecated format characters, interlinear annotation.
            | '\u{2028}'..='\u{2029}' | '\u{206A}'..='\u{206F}' | '\u{FFF9}'..='\u{FFFB}'
            // Tags, which can carry a whole hidden text.
            | '\u{E0000}'..='\u{E007F}')
}

//! Plain text to an answer: a number, a label, or the text itself. Total: no input panics, and unknown text is kept as typed.

use crate::request::Choice;

/// The zeros of every run of Unicode decimal digits (general category Nd).
const ZEROS: [u32; 66] = [
    0x30, 0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66, 0xDE6, 0xE50, 0xED0,
    0xF20, 0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0x1A80, 0x1A90, 0x1B50, 0x1BB0, 0x1C40, 0x1C50, 0xA620,
    0xA8D0, 0xA900, 0xA9D0, 0xA9F0, 0xAA50, 0xABF0, 0xFF10, 0x104A0, 0x10D30, 0x11066, 0x110F0, 0x11136, 0x111D0,
    0x112F0, 0x11450, 0x114D0, 0x11650, 0x116C0, 0x11730, 0x118E0, 0x11950, 0x11C50, 0x11D50, 0x11DA0, 0x16A60,
    0x16AC0, 0x16B50, 0x1D7CE, 0x1D7D8, 0x1D7E2, 0x1D7EC, 0x1D7F6, 0x1E140, 0x1E2F0, 0x1E950, 0x1FBF0,
];

fn digit(c: char) -> Option<usize> {
    let code = u32::from(c);
    let zero = ZEROS.iter().rev().find(|zero| **zero <= code)?;
    usize::try_from(code - zero).ok().filter(|digit| *digit < 10)
}

fn number(text: &str) -> Option<usize> {
    let mut digits = text.chars().map(digit);
    let first = digits.next()??;
    digits.try_fold(first, |number, digit| number.checked_mul(10)?.checked_add(digit?))
}

/// Full case folding, near enough for labels: `ß` meets `SS`.
fn folded(text: &str) -> String {
    text.to_uppercase().to_lowercase()
}

/// The label that `text` stands for: a number in range first, also where labels are numbers; then the label exactly,
/// then ignoring case if only one fits.
fn label<'a>(choice: &'a Choice, text: &str) -> Option<&'a str> {
    let text = text.trim();
    let numbered = number(text).and_then(|n| n.checked_sub(1)).and_then(|at| choice.options.get(at));
    if let Some(option) = numbered {
        return Some(&option.label);
    }
    if let Some(option) = choice.options.iter().find(|option| option.label.trim() == text) {
        return Some(&option.label);
    }
    let wanted = folded(text);
    let mut fitting = choice.options.iter().filter(|option| folded(option.label.trim()) == wanted);
    let only = fitting.next()?;
    fitting.next().is_none().then_some(only.label.as_str())
}

/// The answer that a typed `text` gives to a choice; `None` where it answers nothing because it is empty.
pub fn text_answer(choice: &Choice, text: &str) -> Option<Vec<String>> {
    if text.trim().is_empty() {
        return None;
    }
    let as_typed = |part: &str| label(choice, part).map_or_else(|| part.to_owned(), str::to_owned);
    if !choice.multi_select || label(choice, text).is_some() {
        return Some(vec![as_typed(text)]);
    }
    let by_spaces: Vec<&str> = text.split_whitespace().collect();
    let parts: Vec<&str> = if text.contains(',') {
        text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect()
    } else if by_spaces.iter().all(|part| label(choice, part).is_some()) {
        by_spaces
    } else {
        vec![text]
    };
    let mut answer: Vec<String> = Vec::new();
    for part in parts.into_iter().map(as_typed) {
        if !answer.contains(&part) {
            answer.push(part);
        }
    }
    // Commas alone name nothing, but they were typed.
    Some(if answer.is_empty() { vec![text.to_owned()] } else { answer })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::ChoiceOption;
    use proptest::prelude::*;

    fn choice(multi_select: bool, labels: &[&str]) -> Choice {
        let option = |label: &&str| ChoiceOption { label: (*label).to_owned(), description: None };
        Choice::new("", "?".to_owned(), multi_select, labels.iter().map(option).collect()).unwrap()
    }

    #[test]
    fn a_number_a_label_or_the_text_itself_answers_a_single_choice() {
        let targets = choice(false, &["staging", "production", "3"]);
        for (text, expected) in [
            ("2", "production"),
            (" 1\n", "staging"),
            ("٢", "production"),
            ("3", "3"),
            ("PRODUCTION", "production"),
            ("4", "4"),
            (" only on monday ", " only on monday "),
            ("99999999999999999999999", "99999999999999999999999"),
        ] {
            assert_eq!(text_answer(&targets, text), Some(vec![expected.to_owned()]), "{text:?}");
        }
        assert_eq!(text_answer(&targets, " \t"), None);
    }

    #[test]
    fn a_label_that_fits_twice_without_case_is_kept_as_typed() {
        let labels = choice(false, &["Go", "GO"]);
        assert_eq!(text_answer(&labels, "go"), Some(vec!["go".to_owned()]));
        assert_eq!(text_answer(&labels, "GO"), Some(vec!["GO".to_owned()]));
    }

    #[test]
    fn several_labels_are_split_by_commas_or_by_spaces_when_every_part_is_known() {
        let checks = choice(true, &["unit", "lint", "red, green"]);
        for (text, expected) in [
            ("1,2", vec!["unit", "lint"]),
            ("1 lint 1", vec!["unit", "lint"]),
            ("red, green", vec!["red, green"]),
            ("unit and more", vec!["unit and more"]),
            ("unit, e2e", vec!["unit", "e2e"]),
        ] {
            assert_eq!(text_answer(&checks, text).unwrap(), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn text_never_panics_and_always_answers_unless_empty(text in "\\PC*", multi: bool, labels in prop::collection::hash_set("\\PC{1,6}", 1..5)) {
            let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
            let answer = text_answer(&choice(multi, &labels), &text);
            prop_assert_eq!(answer.is_none(), text.trim().is_empty());
            prop_assert!(answer.is_none_or(|answer| !answer.is_empty() && (multi || answer.len() == 1)));
        }
    }
}

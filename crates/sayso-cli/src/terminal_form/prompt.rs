//! The prompts themselves, with the two ways of leaving one told apart.

use inquire::validator::Validation;
use inquire::{InquireError, MultiSelect, Password, PasswordDisplayMode, Select, Text};

use crate::error::CommandError;
use crate::output;

/// Lines of a list shown at once.
const PAGE_LINES: usize = 12;

/// What came of a prompt.
pub enum Prompted<T> {
    /// The person answered it.
    Given(T),
    /// The person pressed Esc: back to where the request begins.
    Back,
}

impl<T> Prompted<T> {
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Prompted<U> {
        match self {
            Self::Given(given) => Prompted::Given(f(given)),
            Self::Back => Prompted::Back,
        }
    }

    pub fn into_option(self) -> Option<T> {
        match self {
            Self::Given(given) => Some(given),
            Self::Back => None,
        }
    }
}

/// Says what is wrong with an input, if anything.
pub type Check<'a, T> = &'a dyn Fn(&T) -> Option<String>;

fn settled<T>(result: Result<T, InquireError>) -> Result<Prompted<T>, CommandError> {
    match result {
        Ok(given) => Ok(Prompted::Given(given)),
        Err(InquireError::OperationCanceled) => Ok(Prompted::Back),
        Err(InquireError::OperationInterrupted) => Err(CommandError::Interrupted),
        Err(error) => Err(CommandError::Terminal(error.to_string())),
    }
}

fn validation(fault: Option<String>) -> Validation {
    fault.map_or(Validation::Valid, |fault| Validation::Invalid(fault.into()))
}

/// One line of text; asked again, with the message, until `check` has nothing to say.
pub fn line(message: &str, help: &str, initial: &str, check: Check<'_, str>) -> Result<Prompted<String>, CommandError> {
    let mut prompt = Text::new(message).with_validator(|text: &str| Ok(validation(check(text))));
    if !help.is_empty() {
        prompt = prompt.with_help_message(help);
    }
    if !initial.is_empty() {
        prompt = prompt.with_initial_value(initial);
    }
    settled(prompt.prompt())
}

/// As [`line()`], without showing what is typed.
pub fn secret(message: &str, help: &str, check: Check<'_, str>) -> Result<Prompted<String>, CommandError> {
    loop {
        let mut prompt = Password::new(message).without_confirmation().with_display_mode(PasswordDisplayMode::Masked);
        if !help.is_empty() {
            prompt = prompt.with_help_message(help);
        }
        let given = settled(prompt.prompt())?;
        match &given {
            Prompted::Given(text) => match check(text) {
                Some(fault) => output::note(&format!("# {fault}")),
                None => return Ok(given),
            },
            Prompted::Back => return Ok(Prompted::Back),
        }
    }
}

/// One of a few things to do, by its place.
pub fn menu(message: &str, options: &[&str], start: usize) -> Result<Prompted<usize>, CommandError> {
    pick(message, options.iter().map(|option| (*option).to_owned()).collect(), start, "")
}

/// One of a list, by its place; typing filters.
pub fn pick(message: &str, options: Vec<String>, start: usize, help: &str) -> Result<Prompted<usize>, CommandError> {
    let mut prompt = Select::new(message, options).with_page_size(PAGE_LINES).with_starting_cursor(start);
    if !help.is_empty() {
        prompt = prompt.with_help_message(help);
    }
    Ok(settled(prompt.raw_prompt())?.map(|chosen| chosen.index))
}

/// Any of a list, by their places.
pub fn pick_many(
    message: &str,
    options: Vec<String>,
    chosen: &[usize],
    help: &str,
    check: Check<'_, [usize]>,
) -> Result<Prompted<Vec<usize>>, CommandError> {
    let help = format!("space chooses, enter goes on{}{help}", if help.is_empty() { "" } else { "; " });
    let mut chosen = chosen.to_vec();
    loop {
        let prompt = MultiSelect::new(message, options.clone())
            .with_page_size(PAGE_LINES)
            .with_default(&chosen)
            .with_help_message(&help);
        let picked = settled(prompt.raw_prompt())?;
        let Prompted::Given(picked) = picked else { return Ok(Prompted::Back) };
        let places: Vec<usize> = picked.into_iter().map(|option| option.index).collect();
        match check(&places) {
            Some(fault) => output::note(&format!("# {fault}")),
            None => return Ok(Prompted::Given(places)),
        }
        chosen = places;
    }
}

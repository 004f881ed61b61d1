//! Conditions on a call's arguments: a place, by JSON pointer, and a test for the value there.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::error::PolicyError;
use super::glob::{Glob, is_too_long};
use super::number;
use super::path::Folder;
use super::shell::{self, CommandPattern, WorkFolder};
use crate::json::{Json, Kind, Tree, pointer_segments};
use crate::limits::{CONDITION_VALUES_MAX, NAME_BYTES_MAX};

/// A condition as it is written and stored: `at` and one test (`min` and `max` may stand together).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConditionText {
    /// JSON pointer into the arguments; empty for the arguments themselves.
    pub at: String,
    /// The value is this one. Numbers by value, everything else exactly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equals: Option<Json>,
    /// The value is one of these.
    #[serde(default, rename = "in", skip_serializing_if = "Option::is_none")]
    pub one_of: Option<Vec<Json>>,
    /// The value is a text like this [`Glob`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub glob: Option<String>,
    /// The value is an absolute path of this folder or below it, by its text alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<String>,
    /// The value is a shell command of these [`CommandPattern`]s: every part of it to permit, any part to restrict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// Whether there is a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exists: Option<bool>,
    /// The value is an object with no members but these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<Vec<String>>,
    /// The value is a number of at least this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<Json>,
    /// The value is a number of at most this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<Json>,
}

/// A condition that can be tried. Written and stored as its [`ConditionText`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "ConditionText", into = "ConditionText")]
pub struct Condition {
    text: ConditionText,
    at: Vec<String>,
    test: Test,
}

#[derive(Debug, Clone, PartialEq)]
enum Test {
    OneOf(Vec<Json>),
    Glob(Glob),
    Within(Folder),
    Command(Vec<CommandPattern>),
    Exists(bool),
    Only(Vec<String>),
    Bounds { min: Option<Json>, max: Option<Json> },
}

/// What a rule or grant does with what fits: it decides what cannot be told for sure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// It takes something away (ask, deny).
    Restricts,
    /// It gives something (allow, a grant).
    Permits,
}

/// Whether a value is as a condition says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fit {
    Yes,
    No,
    /// It cannot be said, for this reason.
    Unknown(String),
}

impl From<bool> for Fit {
    fn from(fits: bool) -> Self {
        if fits { Self::Yes } else { Self::No }
    }
}

impl Condition {
    /// The pointer to the place.
    pub fn at(&self) -> &str {
        &self.text.at
    }

    /// The condition as it is written.
    pub fn text(&self) -> &ConditionText {
        &self.text
    }

    /// Tries the condition on a call's arguments. A value that is not there fits only `exists = false`; one of another
    /// type than the test is for cannot be judged.
    pub(super) fn fit(&self, arguments: &Tree<'_>, side: Side, folder: Option<&WorkFolder<'_>>) -> Fit {
        let found = arguments.at(&self.at);
        let value = match (&self.test, found) {
            (Test::Exists(wanted), found) => return (*wanted == found.is_some()).into(),
            (_, None) => return Fit::No,
            (_, Some(value)) => value,
        };
        match &self.test {
            Test::OneOf(known) => known.iter().any(|known| is_same(&known.tree(), value)).into(),
            Test::Exists(_) => Fit::Yes,
            Test::Only(names) => match &value.kind {
                Kind::Object(members) => members.iter().all(|(name, _)| names.iter().any(|known| known == name)).into(),
                _ => unknown("is no object"),
            },
            Test::Bounds { min, max } => match value.number() {
                Some(number) => {
                    let is = |bound: &Option<Json>, beyond| {
                        bound.as_ref().is_none_or(|bound| number::compare(number, bound.as_str()) != beyond)
                    };
                    (is(min, Ordering::Less) && is(max, Ordering::Greater)).into()
                }
                None => unknown("is no number"),
            },
            text_test => match value.text() {
                Some(text) if is_too_long(text) => unknown("is too long to be judged"),
                Some(text) => text_test.fit_text(text, side, folder),
                None => unknown("is no text"),
            },
        }
    }
}

impl Test {
    fn fit_text(&self, text: &str, side: Side, folder: Option<&WorkFolder<'_>>) -> Fit {
        match (self, side) {
            (Self::Glob(glob), Side::Permits) => glob.covers(text).into(),
            (Self::Glob(glob), Side::Restricts) => glob.matches(text).into(),
            (Self::Within(within), _) => {
                within.holds(text).map_or_else(|| unknown("is no plain absolute path"), Fit::from)
            }
            (Self::Command(patterns), Side::Permits) => match shell::covers(patterns, text, folder) {
                Ok(covers) => covers.into(),
                Err(why) => Fit::Unknown(format!("is a command that cannot be split: {why}")),
            },
            (Self::Command(patterns), Side::Restricts) => match (shell::finds(patterns, text), shell::split(text)) {
                (Some(found), _) => found.into(),
                (None, Err(why)) => Fit::Unknown(format!("is a command that cannot be split: {why}")),
                (None, Ok(_)) => unknown("is a command that runs another shell"),
            },
            _ => Fit::No,
        }
    }
}

fn unknown(why: &str) -> Fit {
    Fit::Unknown(why.to_owned())
}

/// Whether two values are the same: numbers by value, members in any order, everything else as it is.
fn is_same(left: &Tree<'_>, right: &Tree<'_>) -> bool {
    match (&left.kind, &right.kind) {
        (Kind::Null, Kind::Null) => true,
        (Kind::Bool(left), Kind::Bool(right)) => left == right,
        (Kind::Number, Kind::Number) => number::compare(left.raw, right.raw) == Ordering::Equal,
        (Kind::Text(left), Kind::Text(right)) => left == right,
        (Kind::Array(left), Kind::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| is_same(left, right))
        }
        (Kind::Object(members), Kind::Object(others)) => {
            members.len() == others.len()
                && members.iter().all(|(name, value)| right.get(name).is_some_and(|other| is_same(value, other)))
        }
        _ => false,
    }
}

impl TryFrom<ConditionText> for Condition {
    type Error = PolicyError;

    fn try_from(text: ConditionText) -> Result<Self, PolicyError> {
        let at = pointer_segments(&text.at).filter(|_| text.at.len() <= NAME_BYTES_MAX);
        let at = at.ok_or_else(|| PolicyError::new("at", "is no JSON pointer such as /path"))?;
        let mut tests = tests_of(&text)?;
        match (tests.pop(), tests.is_empty()) {
            (Some(test), true) => Ok(Self { text, at, test }),
            _ => {
                let tests = "equals, in, glob, within, command, exists, only, min and max";
                Err(PolicyError::new("", format!("a condition has `at` and one of {tests}")))
            }
        }
    }
}

impl From<Condition> for ConditionText {
    fn from(condition: Condition) -> Self {
        condition.text
    }
}

/// Every test that is written; `min` and `max` are one.
fn tests_of(text: &ConditionText) -> Result<Vec<Test>, PolicyError> {
    let mut tests = Vec::new();
    if let Some(value) = &text.equals {
        tests.push(Test::OneOf(vec![value.clone()]));
    }
    if let Some(values) = &text.one_of {
        counted("in", values)?;
        tests.push(Test::OneOf(values.clone()));
    }
    if let Some(glob) = &text.glob {
        tests.push(Test::Glob(Glob::parse(glob).map_err(|error| error.under("glob"))?));
    }
    if let Some(folder) = &text.within {
        tests.push(Test::Within(Folder::parse(folder).map_err(|error| error.under("within"))?));
    }
    if let Some(patterns) = &text.command {
        counted("command", patterns)?;
        let patterns = patterns.iter().map(|pattern| CommandPattern::parse(pattern)).collect::<Result<_, _>>();
        tests.push(Test::Command(patterns.map_err(|error| error.under("command"))?));
    }
    if let Some(exists) = text.exists {
        tests.push(Test::Exists(exists));
    }
    if let Some(names) = &text.only {
        counted("only", names)?;
        tests.push(Test::Only(names.clone()));
    }
    if text.min.is_some() || text.max.is_some() {
        for (key, bound) in [("min", &text.min), ("max", &text.max)] {
            if bound.as_ref().is_some_and(|bound| bound.tree().number().is_none()) {
                return Err(PolicyError::new(key, "is no number"));
            }
        }
        tests.push(Test::Bounds { min: text.min.clone(), max: text.max.clone() });
    }
    Ok(tests)
}

fn counted<T>(key: &str, list: &[T]) -> Result<(), PolicyError> {
    if list.is_empty() || list.len() > CONDITION_VALUES_MAX {
        return Err(PolicyError::new(key, format!("lists 1 to {CONDITION_VALUES_MAX} values")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(condition: &str, arguments: &str, side: Side) -> Fit {
        let condition: Condition = serde_json::from_str(condition).unwrap();
        condition.fit(&Json::parse(arguments).unwrap().tree(), side, None)
    }

    #[test]
    fn each_test_judges_the_value_at_its_place() {
        for (condition, arguments, fits) in [
            (r#"{"at":"/n","equals":1}"#, r#"{"n":1.0}"#, true),
            (r#"{"at":"/n","equals":1}"#, r#"{"n":true}"#, false),
            (r#"{"at":"/n","equals":1}"#, r#"{"n":"1"}"#, false),
            (r#"{"at":"/n","equals":9007199254740992}"#, r#"{"n":9007199254740993}"#, false),
            (r#"{"at":"","equals":{"a":[1],"b":{}}}"#, r#"{"b":{},"a":[1.0]}"#, true),
            (r#"{"at":"","equals":{"a":{}}}"#, r#"{"a":[]}"#, false),
            (r#"{"at":"/a/1","in":["x","y"]}"#, r#"{"a":["-","y"]}"#, true),
            (r#"{"at":"/a","in":["x","y"]}"#, r#"{"a":"z"}"#, false),
            (r#"{"at":"/x~1y","glob":"a*"}"#, r#"{"x/y":"ab"}"#, true),
            (r#"{"at":"/p","within":"/w"}"#, r#"{"p":"/w/../etc"}"#, false),
            (r#"{"at":"/p","within":"/w"}"#, r#"{"p":"/w/a"}"#, true),
            (r#"{"at":"/c","command":["ls *"]}"#, r#"{"c":"ls -l"}"#, true),
            (r#"{"at":"/c","exists":false}"#, r#"{"c":null}"#, false),
            (r#"{"at":"/c","exists":false}"#, "{}", true),
            (r#"{"at":"/c","glob":"*"}"#, "{}", false),
            (r#"{"at":"","only":["a","b"]}"#, r#"{"a":1}"#, true),
            (r#"{"at":"","only":["a","b"]}"#, r#"{"a":1,"c":2}"#, false),
            (r#"{"at":"/n","min":1,"max":2.5}"#, r#"{"n":2.50}"#, true),
            (r#"{"at":"/n","min":1,"max":2.5}"#, r#"{"n":2.51}"#, false),
        ] {
            for side in [Side::Permits, Side::Restricts] {
                assert_eq!(fit(condition, arguments, side), fits.into(), "{condition} {arguments}");
            }
        }
    }

    #[test]
    fn a_value_of_another_type_cannot_be_judged() {
        for (condition, arguments) in [
            (r#"{"at":"/n","max":5}"#, r#"{"n":"500"}"#),
            (r#"{"at":"/n","glob":"*"}"#, r#"{"n":["x"]}"#),
            (r#"{"at":"/n","within":"/w"}"#, r#"{"n":"relative"}"#),
            (r#"{"at":"/n","only":["x"]}"#, r#"{"n":1}"#),
            (r#"{"at":"/n","command":["x"]}"#, r#"{"n":"a > b"}"#),
        ] {
            for side in [Side::Permits, Side::Restricts] {
                assert!(matches!(fit(condition, arguments, side), Fit::Unknown(_)), "{condition} {arguments}");
            }
        }
    }

    #[test]
    fn a_condition_that_says_nothing_or_too_much_is_refused() {
        for text in [
            r#"{"at":"/n"}"#,
            r#"{"at":"n","exists":true}"#,
            r#"{"at":"/n","exists":true,"glob":"x"}"#,
            r#"{"at":"/n","in":[]}"#,
            r#"{"at":"/n","min":"1"}"#,
            r#"{"at":"/n","within":"w"}"#,
            r#"{"at":"/n","command":[""]}"#,
            r#"{"at":"/n","matches":"x"}"#,
        ] {
            assert!(serde_json::from_str::<Condition>(text).is_err(), "{text}");
        }
        let text = r#"{"at":"/n","min":1.50}"#;
        assert_eq!(serde_json::to_string(&serde_json::from_str::<Condition>(text).unwrap()).unwrap(), text);
    }
}

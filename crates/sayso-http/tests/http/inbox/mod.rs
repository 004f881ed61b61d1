//! The pages: what they show, how an answer takes from them, and what is kept when it does not.

mod answers;
mod approvals;
mod batch;
mod changed;
mod fields;
mod grants;
mod late;
mod nested;
mod pages;

use sayso::RoundId;

/// One field of every kind, in one of every enum spelling.
pub const EVERYTHING: &str = r#"{"type":"object","properties":{
 "name":{"type":"string","title":"Full name","description":"As on the parcel","minLength":2,"maxLength":40},
 "email":{"type":"string","format":"email"},"site":{"type":"string","format":"uri"},
 "day":{"type":"string","format":"date"},"at":{"type":"string","format":"date-time"},
 "code":{"type":"string","pattern":"^[0-9]{3}$"},"secret":{"type":"string","format":"password"},
 "count":{"type":"integer","minimum":1,"maximum":10,"default":1},"weight":{"type":"number","exclusiveMinimum":0},
 "fragile":{"type":"boolean"},"insured":{"type":"boolean","default":true},
 "size":{"type":"string","enum":["s","m"],"enumNames":["Small","Medium"],"default":"m"},
 "speed":{"type":"string","oneOf":[{"const":"std","title":"Standard"},{"const":"exp","title":"Express"}]},
 "land":{"type":"string","enum":["DE","FR","IT","ES","PT","NL"]},
 "extras":{"type":"array","items":{"type":"string","enum":["wrap","track"]},"maxItems":2},
 "tags":{"type":"array","items":{"anyOf":[{"const":"a","title":"Tag A"},{"const":"b","title":"Tag B"}]}},
 "customs":{"type":"object","properties":{"code":{"type":"string"}},"required":["code"],"additionalProperties":{}}},
 "required":["name","fragile","speed"]}"#;

pub fn path(id: RoundId) -> String {
    format!("/rounds/{id}")
}

/// What stands between `start` and the next `end`.
pub fn between<'t>(text: &'t str, start: &str, end: &str) -> &'t str {
    let from = text.find(start).unwrap_or_else(|| panic!("no {start:?} in {text}")) + start.len();
    &text[from..from + text[from..].find(end).unwrap()]
}

/// The tag of the control with this id.
pub fn tag<'t>(page: &'t str, id: &str) -> &'t str {
    let at = page.find(&format!(" id=\"{id}\"")).unwrap_or_else(|| panic!("no {id} in {page}"));
    let start = page[..at].rfind('<').unwrap();
    &page[start..=start + page[start..].find('>').unwrap()]
}

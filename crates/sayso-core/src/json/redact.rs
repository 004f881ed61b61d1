//! The diagnostic projection of an answer (`docs/rounds.md`, "Audit and redaction"): the only form in which an answer's
//! content may reach an operator. In doubt it shows too little.

use super::canonical::{quoted, write_text};
use super::pointer::pointer_segments;
use super::text::Json;
use super::tree::{Kind, Tree};
use crate::limits::{JSON_BYTES_MAX, JSON_DEPTH_CEILING};
use crate::limits::{REDACTION_DEPTH_MAX, REDACTION_SCHEMA_STEPS_MAX};

/// What stands in place of a value that is not shown.
pub const REDACTED: &str = "[redacted]";

/// Secret wherever they occur in a name, its separators removed: `userPassword2`, `X-Api-Key`, `accesstoken`.
const SECRET_STEMS: [&str; 14] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "privatekey",
    "signingkey",
    "authorization",
    "credential",
    "cookie",
    "bearer",
];

/// Secret only as a whole word of a name: `card-pin`, but not `shipping`.
const SECRET_WORDS: [&str; 14] = [
    "pin",
    "pins",
    "otp",
    "totp",
    "pwd",
    "auth",
    "session",
    "sessions",
    "sessionid",
    "cvv",
    "cvc",
    "jwt",
    "csrf",
    "xsrf",
];

/// The value with every secret replaced by [`REDACTED`]: scalars below a member whose name looks secret or whose
/// schema says `format: password` or `writeOnly: true`, what is nested too deeply, and the user, password, query
/// values and fragment of every URL within a text.
pub fn redacted(value: &Json, schema: Option<&Json>) -> Json {
    let root = schema.map(Json::tree);
    let mut walk = Walk { root: root.as_ref(), steps: 0, out: String::new() };
    let schemas: Vec<_> = root.iter().collect();
    walk.write(&value.tree(), &schemas, 0, false);
    Json::parse_within(&walk.out, JSON_BYTES_MAX, JSON_DEPTH_CEILING).unwrap_or_else(|_| Json::from_text(REDACTED))
}

struct Walk<'s> {
    root: Option<&'s Tree<'s>>,
    steps: usize,
    out: String,
}

impl<'s> Walk<'s> {
    fn write(&mut self, tree: &Tree<'_>, schemas: &[&'s Tree<'s>], depth: usize, secret: bool) {
        let (schemas, marked) = self.applying(schemas);
        let secret = secret || marked;
        match &tree.kind {
            Kind::Array(_) | Kind::Object(_) if depth >= REDACTION_DEPTH_MAX => self.out.push_str(&quoted(REDACTED)),
            Kind::Array(items) => {
                let below =
                    children(&schemas, &["items", "prefixItems", "additionalItems", "unevaluatedItems", "contains"]);
                self.out.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        self.out.push(',');
                    }
                    self.write(item, &below, depth + 1, secret);
                }
                self.out.push(']');
            }
            Kind::Object(members) => {
                self.out.push('{');
                for (index, (name, value)) in members.iter().enumerate() {
                    if index > 0 {
                        self.out.push(',');
                    }
                    if without_url_secrets(name).is_some() {
                        write_text(&format!("[redacted {index}]"), &mut self.out);
                    } else {
                        write_text(name, &mut self.out);
                    }
                    self.out.push(':');
                    let below = children_named(&schemas, name);
                    self.write(value, &below, depth + 1, secret || looks_secret(name));
                }
                self.out.push('}');
            }
            _ if secret => self.out.push_str(&quoted(REDACTED)),
            Kind::Text(text) => match without_url_secrets(text) {
                Some(safe) => write_text(&safe, &mut self.out),
                None => self.out.push_str(tree.raw),
            },
            Kind::Null | Kind::Bool(_) | Kind::Number => self.out.push_str(tree.raw),
        }
    }

    /// All schemas that may apply in the same place, and whether any of them marks it as secret. Which branch of an
    /// `anyOf` applies is not decided: any that says secret counts.
    fn applying(&mut self, schemas: &[&'s Tree<'s>]) -> (Vec<&'s Tree<'s>>, bool) {
        let mut found: Vec<&Tree<'_>> = Vec::new();
        let mut waiting: Vec<&Tree<'_>> = schemas.to_vec();
        let mut secret = false;
        while let Some(schema) = waiting.pop() {
            if found.iter().any(|known| std::ptr::eq(*known, schema)) {
                continue;
            }
            self.steps += 1;
            if self.steps > REDACTION_SCHEMA_STEPS_MAX {
                return (Vec::new(), true);
            }
            found.push(schema);
            secret |= schema.get("format").and_then(Tree::text) == Some("password")
                || matches!(schema.get("writeOnly").map(|flag| &flag.kind), Some(Kind::Bool(true)))
                || schema.get("$dynamicRef").is_some()
                || schema.get("$recursiveRef").is_some();
            if let Some(reference) = schema.get("$ref") {
                match self.resolve(reference) {
                    Some(target) => waiting.push(target),
                    None => secret = true,
                }
            }
            for keyword in ["allOf", "anyOf", "oneOf"] {
                waiting.extend(schema.get(keyword).map_or(&[][..], Tree::items));
            }
            waiting.extend(["not", "if", "then", "else"].iter().filter_map(|keyword| schema.get(keyword)));
            for keyword in ["dependentSchemas", "dependencies"] {
                waiting.extend(schema.get(keyword).map_or(&[][..], Tree::members).iter().map(|(_, below)| below));
            }
        }
        (found, secret)
    }

    fn resolve(&self, reference: &Tree<'_>) -> Option<&'s Tree<'s>> {
        self.root?.at(&pointer_segments(reference.text()?.strip_prefix('#')?)?)
    }
}

/// The schemas below any of the keywords, each of which holds one schema or a list of them.
fn children<'s>(schemas: &[&'s Tree<'s>], keywords: &[&str]) -> Vec<&'s Tree<'s>> {
    let mut below = Vec::new();
    for child in schemas.iter().flat_map(|schema| keywords.iter().filter_map(|keyword| schema.get(keyword))) {
        below.extend(child.items());
        if child.is_object() {
            below.push(child);
        }
    }
    below
}

/// The schemas that may apply to a member. Every `patternProperties` counts, whether its pattern matches or not.
fn children_named<'s>(schemas: &[&'s Tree<'s>], name: &str) -> Vec<&'s Tree<'s>> {
    let mut below = children(schemas, &["additionalProperties", "unevaluatedProperties"]);
    for schema in schemas {
        below.extend(schema.get("properties").and_then(|properties| properties.get(name)));
        below.extend(schema.get("patternProperties").map_or(&[][..], Tree::members).iter().map(|(_, child)| child));
    }
    below
}

fn looks_secret(name: &str) -> bool {
    let words = words(name);
    let joined = words.concat();
    SECRET_STEMS.iter().any(|stem| joined.contains(stem))
        || words.iter().any(|word| SECRET_WORDS.contains(&word.as_str()))
}

/// The words of a name in lower case: parted by anything that is no letter, and where `camelCase` or `APIKey` part.
fn words(name: &str) -> Vec<String> {
    let chars: Vec<char> = name.chars().collect();
    let mut words = vec![String::new()];
    let mut before: Option<char> = None;
    for (index, &next) in chars.iter().enumerate() {
        let after_is_lower = chars.get(index + 1).is_some_and(|after| after.is_lowercase());
        let parts = before.is_some_and(|before| {
            next.is_uppercase() && (before.is_lowercase() || (before.is_uppercase() && after_is_lower))
        });
        if parts || !next.is_alphabetic() {
            words.push(String::new());
        }
        if next.is_alphabetic()
            && let Some(word) = words.last_mut()
        {
            word.extend(next.to_lowercase());
        }
        before = Some(next);
    }
    words
}

/// The text with every URL's user, password, query values and fragment taken out; none if it has nothing of the kind.
fn without_url_secrets(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut in_url = false;
    while let Some(next) = rest.chars().next() {
        let slashes = rest.len() - rest.trim_start_matches(['/', '\\']).len();
        if slashes >= 2 {
            // An authority may follow any two slashes, whatever the scheme, also within another URL's path.
            let (run, after) = rest.split_at(slashes);
            let (authority, after) = split_where(after, |c| ends_url(c) || matches!(c, '/' | '\\' | '?' | '#'));
            out.push_str(run);
            let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
            out.push_str(if is_host(host) { host } else { REDACTED });
            rest = after;
            in_url = true;
        } else if in_url && next == '?' {
            let (query, after) = split_where(rest.get(1..).unwrap_or_default(), |c| ends_url(c) || c == '#');
            out.push('?');
            for (index, pair) in query.split(['&', ';']).filter(|pair| !pair.is_empty()).enumerate() {
                if index > 0 {
                    out.push('&');
                }
                if let Some((name, _)) = pair.split_once('=') {
                    out.push_str(name);
                    out.push('=');
                }
                out.push_str(REDACTED);
            }
            rest = after;
        } else if in_url && next == '#' {
            rest = split_where(rest, ends_url).1;
        } else {
            in_url = in_url && !ends_url(next);
            out.push(next);
            rest = rest.get(next.len_utf8()..).unwrap_or_default();
        }
    }
    (out != text).then_some(out)
}

fn split_where(text: &str, ends: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(ends).unwrap_or(text.len()))
}

fn ends_url(next: char) -> bool {
    next.is_whitespace() || next.is_control() || matches!(next, '"' | '<' | '>' | '`')
}

/// Whether this is a host and perhaps a port, and not the front of a password that holds a slash.
fn is_host(host: &str) -> bool {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, port),
        _ => (host, ""),
    };
    let bracketed = name.starts_with('[') && name.ends_with(']');
    port.bytes().all(|byte| byte.is_ascii_digit())
        && name.chars().all(|next| {
            next.is_alphanumeric() || matches!(next, '.' | '-' | '_') || (bracketed && matches!(next, '[' | ']' | ':'))
        })
}

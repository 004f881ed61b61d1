//! `--json`: an answer as JSON, from a file or from standard input.

use std::io::{self, Read};

use sayso::wire::{Keyed, Response};
use sayso::{Answer, Digest, Error, Json, limits};
use sayso_core::json::pointer_to;

use crate::error::CommandError;

/// The largest answer, with room for keys, white space and the digest around it.
const SOURCE_BYTES_MAX: usize = 2 * limits::ANSWER_BYTES_MAX;

const FORM: &str = r#"must be {"action": "accept" | "decline" | "cancel", "content": …, "reason": …}"#;

/// Reads the file at `source`, or standard input for `-`.
pub fn read_json(source: &str) -> Result<Answer, CommandError> {
    let read =
        if source == "-" { read_all(io::stdin().lock()) } else { std::fs::File::open(source).and_then(read_all) };
    let text = read.map_err(|error| CommandError::Usage {
        message: format!("--json {source} cannot be read: {}", error.kind()),
        help: "name a file with the answer, or - for standard input; the round's id stands before --json".to_owned(),
    })?;
    if text.len() > SOURCE_BYTES_MAX {
        return Err(Error::Limit(format!("an answer may have at most {} bytes", limits::ANSWER_BYTES_MAX)).into());
    }
    // What is no text is no JSON either, and is refused as such.
    answer(&String::from_utf8_lossy(&text)).map_err(|error| CommandError::Advised {
        error,
        help: r#"send {"KEY": {"action": "accept", "content": {…}}} with every request key of the round"#.to_owned(),
    })
}

/// The JSON object that a flag holds, or the file that it names after an `@`.
pub fn read_object(flag: &str, text: &str) -> Result<Json, CommandError> {
    let usage =
        |message: String| CommandError::Usage { message, help: format!("write {flag} '{{…}}', or {flag} @FILE") };
    let text = match text.strip_prefix('@') {
        None => text.to_owned(),
        Some(path) => {
            let read = std::fs::File::open(path).and_then(read_all);
            let bytes = read.map_err(|error| usage(format!("{flag} {path} cannot be read: {}", error.kind())))?;
            String::from_utf8_lossy(&bytes).into_owned()
        }
    };
    if text.len() > limits::ANSWER_BYTES_MAX {
        return Err(Error::Limit(format!("an answer may have at most {} bytes", limits::ANSWER_BYTES_MAX)).into());
    }
    let json = Json::parse(&text).map_err(|error| usage(format!("{flag} is not usable JSON: {error}")))?;
    if json.is_object() { Ok(json) } else { Err(usage(format!("{flag} must be a JSON object"))) }
}

/// All of it, or one byte more than is allowed.
fn read_all(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(SOURCE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Either form: the map of responses, or an object with `responses` and perhaps `digest`. No message quotes a value.
fn answer(text: &str) -> Result<Answer, Error> {
    let json = Json::parse(text).map_err(|error| Error::field("", format!("is not usable JSON: {error}")))?;
    let view = json.object().ok_or_else(|| Error::field("", "must be an object"))?;
    let is_whole = view.members.iter().all(|member| member.name == "responses" || member.name == "digest")
        && view.get("responses").is_some_and(|text| !is_response(text));
    if !is_whole {
        return Ok(Answer { digest: None, responses: responses(json.as_str())? });
    }
    let digest = match view.get("digest") {
        None | Some("null") => None,
        Some(text) => Some(
            serde_json::from_str::<Digest>(text)
                .map_err(|_| Error::field("/digest", "must be sha256: and 64 hexadecimal digits"))?,
        ),
    };
    Ok(Answer { digest, responses: responses(view.get("responses").unwrap_or("{}"))? })
}

fn is_response(text: &str) -> bool {
    serde_json::from_str::<Response>(text).is_ok()
}

fn responses(text: &str) -> Result<Keyed<Response>, Error> {
    let json = Json::parse(text).map_err(|_| Error::field("/responses", "must be an object"))?;
    let view = json.object().ok_or_else(|| Error::field("/responses", "must be an object"))?;
    let read = |name: &str| {
        view.get(name)
            .and_then(|text| serde_json::from_str::<Response>(text).ok())
            .map(|response| (name.to_owned(), response))
            .ok_or_else(|| Error::field(pointer_to("/responses", name), FORM))
    };
    view.members.iter().map(|member| read(&member.name)).collect::<Result<_, _>>().map(Keyed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_and_a_whole_answer_are_both_read() {
        let map = answer(r#"{"k":{"action":"accept","content":{"n":1.0}}}"#).unwrap();
        assert_eq!(map.responses.get("k").unwrap().content.as_ref().unwrap().as_str(), r#"{"n":1.0}"#);
        let digest = Digest::of_text("x");
        let whole = answer(&format!(r#"{{"digest":"{digest}","responses":{{"k":{{"action":"cancel"}}}}}}"#)).unwrap();
        assert_eq!(whole.digest, Some(digest));
        let odd = answer(r#"{"responses":{"action":"cancel"}}"#).unwrap();
        assert!(odd.responses.get("responses").is_some(), "a request may have the key `responses`");
    }

    #[test]
    fn what_is_wrong_is_said_without_quoting_it() {
        for (text, words) in [
            ("[]", "must be an object"),
            ("{\"k\":\"s3cret\"}", "/responses/k must be {"),
            ("{\"k\":{\"action\":\"s3cret\"}}", "/responses/k must be {"),
            ("{\"k\":{\"action\":\"accept\",\"s3cret\":1}}", "/responses/k must be {"),
            ("{\"k\":{\"action\":\"accept\"},\"k\":{\"action\":\"accept\"}}", "not usable JSON"),
            ("s3cret", "not usable JSON"),
        ] {
            let error = answer(text).unwrap_err().to_string();
            assert!(error.contains(words) && !error.contains("s3cret"), "{text}: {error}");
        }
    }
}

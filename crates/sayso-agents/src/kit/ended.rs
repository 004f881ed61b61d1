use sayso::kit::Ended;
use sayso::{Failure, Json, Outcome, Step};

use crate::operate::{OperateError, Reply};

/// What a scripted agent or an operation has been answered so far.
#[derive(Default)]
pub(super) struct Answers(Vec<String>);

impl Answers {
    pub fn add(&mut self, name: &str, reply: &Reply) {
        let line = format!(
            r#"{{"name":{},"is_error":{},"text":{}}}"#,
            Json::from_text(name).as_str(),
            reply.is_error,
            Json::from_text(&reply.text).as_str()
        );
        self.0.push(line);
    }

    /// `{"calls": […]}`; none where it is larger than what can be kept.
    fn json(&self) -> Option<Json> {
        let text = format!(r#"{{"calls":[{}]}}"#, self.0.join(","));
        Json::parse_within(&text, sayso::limits::RESULT_BYTES_MAX, sayso::limits::JSON_DEPTH_MAX).ok()
    }

    pub fn ended(&self, outcome: Outcome, steps: Vec<Step>) -> Ended {
        Ended { outcome, result: self.json(), steps }
    }
}

/// The failure of an execution, within what a store takes.
pub(super) fn failure(error: &OperateError) -> Outcome {
    let mut message = error.to_string();
    let mut end = message.len().min(sayso::limits::MESSAGE_BYTES_MAX);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    message.truncate(end);
    Outcome::Failed(Failure::new(error.code(), message))
}

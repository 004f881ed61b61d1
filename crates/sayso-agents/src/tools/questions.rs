//! `ask_user {questions}`: what the agent asks, and what a person answered.

use sayso::wire::{ChoiceOption, Keyed, RequestKind};
use sayso::{Json, Request, Response};
use sayso_core::response::Action;
use serde_json::{Value, json};

/// The questions of a call, each as it was asked and as a round holds it. Members that we do not know are let be. The
/// error is a sentence for the agent.
pub(crate) fn read_questions(arguments: Option<&Json>) -> Result<Vec<(String, Request)>, String> {
    let arguments = arguments.map(Json::value).unwrap_or_default();
    let questions = arguments.get("questions").and_then(Value::as_array).filter(|questions| !questions.is_empty());
    let questions = questions.ok_or("questions must be an array with at least one question")?;
    questions.iter().enumerate().map(|(at, question)| read_question(at, question)).collect()
}

fn read_question(at: usize, question: &Value) -> Result<(String, Request), String> {
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let asked = text(question, "question").ok_or_else(|| format!("questions[{at}].question must be a text"))?;
    let shown = match text(question, "header") {
        Some(header) => format!("{header}: {asked}"),
        None => asked.clone(),
    };
    let shown = Some(shown);
    let options = match question.get("options") {
        None | Some(Value::Null) => {
            return Ok((asked, Request { question: shown, ..Request::empty(RequestKind::Text) }));
        }
        Some(options) => options.as_array().ok_or_else(|| format!("questions[{at}].options must be an array"))?,
    };
    let option = |option: &Value| {
        // Some agents write an option as its label alone.
        let label = option.as_str().map(str::to_owned).or_else(|| text(option, "label"));
        let label = label.ok_or_else(|| format!("questions[{at}].options must have a label each"))?;
        Ok::<_, String>(ChoiceOption { label, description: text(option, "description") })
    };
    let options = options.iter().map(option).collect::<Result<Vec<_>, _>>()?;
    let multi_select = question.get("multiSelect").and_then(Value::as_bool);
    let choice =
        Request { question: shown, options: Some(options), multi_select, ..Request::empty(RequestKind::Choice) };
    Ok((asked, choice))
}

/// What a person answered to one question, for the agent: as data, and as a line.
fn answered(question: &str, response: Option<&Response>) -> (Value, String) {
    let content = response.and_then(|response| response.content.as_ref()).map(Json::value);
    let answers = content.as_ref().and_then(|content| content.get("answer")).cloned().unwrap_or_else(|| json!([]));
    match response.map(|response| response.action) {
        Some(Action::Accept) => {
            let said: Vec<_> = answers.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let line = format!("{question}\n{}", said.join(", "));
            (json!({"question": question, "answer": answers}), line)
        }
        Some(Action::Decline) => {
            let reason = response.and_then(|response| response.reason.as_deref());
            let because = reason.map(|reason| format!(" The reason: {reason}")).unwrap_or_default();
            let line = format!("{question}\nA person declined to answer.{because}");
            (json!({"question": question, "declined": true, "reason": reason}), line)
        }
        Some(Action::Cancel) | None => {
            let line = format!("{question}\nThe question was dismissed without an answer. Nobody refused.");
            (json!({"question": question, "dismissed": true}), line)
        }
    }
}

/// The questions under the keys of their round.
pub(crate) fn under_keys(requests: Vec<Request>) -> Keyed<Request> {
    Keyed(requests.into_iter().enumerate().map(|(at, request)| (key_of(at), request)).collect())
}

/// The tool's result: question by question what a person answered, as text and as data.
pub(crate) fn answers(asked: &[String], responses: &Keyed<Response>) -> Value {
    let each = asked.iter().enumerate().map(|(at, question)| answered(question, responses.get(&key_of(at))));
    let (data, lines): (Vec<_>, Vec<_>) = each.unzip();
    json!({
        "content": [{"type": "text", "text": lines.join("\n\n")}],
        "structuredContent": {"answers": data},
        "isError": false
    })
}

fn key_of(at: usize) -> String {
    format!("q{at}")
}

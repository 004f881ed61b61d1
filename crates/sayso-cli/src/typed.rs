//! Typed text as the JSON value that a field takes. Total: what does not fit stays a text, and the check of the answer
//! says what is wrong with it.

use sayso::Json;
use sayso_core::schema::{ChoiceOption, Field, FieldKind};
use serde_json::Value;

const YES: [&str; 4] = ["true", "yes", "y", "on"];
const NO: [&str; 4] = ["false", "no", "n", "off"];

/// The value that `text` gives to a field.
pub fn value(field: &Field, text: &str) -> Json {
    let as_text = || Json::from_text(text);
    match &field.kind {
        FieldKind::Text { .. } => as_text(),
        FieldKind::Number { .. } => number(text).unwrap_or_else(as_text),
        FieldKind::Boolean => truth(text).unwrap_or_else(as_text),
        FieldKind::Choice { options } => chosen(options, text).unwrap_or_else(as_text),
        FieldKind::MultiChoice { options, .. } => several(options, &[text]),
        FieldKind::Group { .. } | FieldKind::Rows { .. } | FieldKind::Json => {
            Json::parse(text).unwrap_or_else(|_| as_text())
        }
    }
}

/// The list that one or several texts choose. A text that is no option of its own is split at its commas.
pub fn several(options: &[ChoiceOption], texts: &[&str]) -> Json {
    let mut values: Vec<String> = Vec::new();
    for text in texts {
        match chosen(options, text) {
            Some(value) => values.push(value.as_str().to_owned()),
            None => {
                let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
                let read = |part| chosen(options, part).unwrap_or_else(|| Json::from_text(part));
                values.extend(parts.map(|part| read(part).as_str().to_owned()));
            }
        }
    }
    list(&values).unwrap_or_else(|| Json::from_text(&texts.join(",")))
}

/// A list of these values, each as it is written.
pub fn list(values: &[impl AsRef<str>]) -> Option<Json> {
    let values: Vec<&str> = values.iter().map(AsRef::as_ref).collect();
    Json::parse(&format!("[{}]", values.join(","))).ok()
}

/// An object of these members, in order. The message reads on from the object's name.
pub fn object(members: &[(String, Json)]) -> Result<Json, &'static str> {
    let members: Vec<_> =
        members.iter().map(|(name, value)| format!("{}:{}", Json::from_text(name).as_str(), value.as_str())).collect();
    Json::parse(&format!("{{{}}}", members.join(","))).map_err(|_| "is too large or too deep")
}

/// What a choice and a question take: `{"answer": [..]}`.
pub fn answer(texts: &[String]) -> Json {
    Json::from_value(&serde_json::json!({ "answer": texts }))
}

fn number(text: &str) -> Option<Json> {
    Json::parse(text.trim()).ok().filter(|json| json.as_str().starts_with(|c: char| c == '-' || c.is_ascii_digit()))
}

fn truth(text: &str) -> Option<Json> {
    let word = text.trim().to_ascii_lowercase();
    let truth = if YES.contains(&word.as_str()) {
        true
    } else if NO.contains(&word.as_str()) {
        false
    } else {
        return None;
    };
    Some(Json::from_value(&Value::Bool(truth)))
}

/// The option whose value or, failing that, whose label is `text`.
fn chosen(options: &[ChoiceOption], text: &str) -> Option<Json> {
    let by_value = options.iter().find(|option| option.value_text() == text);
    let found = by_value.or_else(|| options.iter().find(|option| option.label == text))?;
    Some(found.value.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sayso_core::schema::FormSchema;

    #[test]
    fn each_kind_of_field_reads_what_a_person_types() {
        let schema = r#"{"type":"object","properties":{
            "text":{"type":"string"},"number":{"type":"number"},"flag":{"type":"boolean"},
            "one":{"type":"string","oneOf":[{"const":"r","title":"Red"},{"const":"b","title":"Blue"}]},
            "level":{"enum":[1,2]},
            "many":{"type":"array","items":{"enum":["a","b","a,b"]}},
            "deep":{"type":"object"}}}"#;
        let form = FormSchema::open(&Json::parse(schema).unwrap()).unwrap();
        for (name, typed, expected) in [
            ("text", " a\"b ", r#"" a\"b ""#),
            ("number", "1.50", "1.50"),
            ("number", "-7", "-7"),
            ("number", "x", r#""x""#),
            ("number", "\"7\"", r#""\"7\"""#),
            ("flag", "Yes", "true"),
            ("flag", "off", "false"),
            ("flag", "maybe", r#""maybe""#),
            ("one", "Red", r#""r""#),
            ("one", "b", r#""b""#),
            ("one", "green", r#""green""#),
            ("level", "2", "2"),
            ("many", "a, b", r#"["a","b"]"#),
            ("many", "a,b", r#"["a,b"]"#),
            ("many", "", "[]"),
            ("deep", r#"{"x":[1]}"#, r#"{"x":[1]}"#),
            ("deep", "{", r#""{""#),
        ] {
            let field = form.fields().iter().find(|field| field.name == name).unwrap();
            assert_eq!(value(field, typed).as_str(), expected, "{name} {typed:?}");
        }
    }

    #[test]
    fn an_object_keeps_the_order_and_the_spelling_of_its_members() {
        let members = [("b\"".to_owned(), Json::parse("1.0").unwrap()), ("a".to_owned(), Json::from_text("x"))];
        assert_eq!(object(&members).unwrap().as_str(), r#"{"b\"":1.0,"a":"x"}"#);
    }
}

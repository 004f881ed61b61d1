use std::fmt::Write as _;

use sayso::{Json, wire};
use sayso_core::json::{DiffLine, ObjectView, line_diff, pretty, visible, visible_multiline};
use sayso_core::policy::Effect;
use sayso_core::request::{Approval, Choice, Form, Request, UrlConsent};
use sayso_core::schema::{Field, FieldKind};

use super::field::{describe, option_label};

/// Bytes of a nested field's schema that are shown: enough to fill one in by hand, not a screenful.
const SCHEMA_BYTES_SHOWN: usize = 2000;

/// One request: what is said to the person, and what each part of it takes.
pub fn request(key: &str, request: &Request, wire: Option<&wire::Request>) -> String {
    let mut out = format!("{} ({})\n", visible(key), request.kind());
    match request {
        Request::Form(form) => write_form(&mut out, form, wire),
        Request::Url(url) => write_url(&mut out, url),
        Request::Approval(approval) => write_approval(&mut out, approval, wire),
        Request::Choice(choice) => write_choice(&mut out, choice),
        Request::Text(text) => write_said(&mut out, &text.question),
    }
    out
}

/// Text of the asker's, every line of it set in, so that it cannot pose as ours.
fn write_said(out: &mut String, text: &str) {
    for line in visible_multiline(text).lines() {
        let _ = writeln!(out, "  │ {line}");
    }
}

fn write_form(out: &mut String, form: &Form, wire: Option<&wire::Request>) {
    write_said(out, &form.message);
    if form.schema.fields().is_empty() {
        out.push_str("  There is nothing to fill in; accepting confirms it.\n");
    }
    write_fields(out, form.schema.fields(), "", wire.and_then(|wire| wire.schema.as_ref()));
}

/// Fields under the names that `--field` takes; those of a group and of a list's rows after it.
fn write_fields(out: &mut String, fields: &[Field], around: &str, schema: Option<&Json>) {
    for field in fields {
        let name = format!("{around}{}", visible(&field.name));
        let _ = writeln!(out, "  {name}: {}", describe(field));
        for text in [&field.title, &field.description].into_iter().flatten() {
            let _ = writeln!(out, "      {}", visible(text));
        }
        let own = property(schema, &field.name);
        match &field.kind {
            FieldKind::Choice { options } | FieldKind::MultiChoice { options, .. } => {
                for each in options {
                    let _ = writeln!(out, "      - {}", option_label(each));
                }
            }
            FieldKind::Group { fields } => write_fields(out, fields, &format!("{name}."), own.as_ref()),
            FieldKind::Rows { fields, .. } => {
                let items = own.as_ref().and_then(Json::object).and_then(|view| Json::parse(view.get("items")?).ok());
                write_fields(out, fields, &format!("{name}.0."), items.as_ref());
            }
            FieldKind::Json => {
                if let Some(schema) = own.filter(|schema| schema.as_str().len() <= SCHEMA_BYTES_SHOWN) {
                    let _ = writeln!(out, "      schema: {}", visible(schema.as_str()));
                }
            }
            FieldKind::Text { .. } | FieldKind::Number { .. } | FieldKind::Boolean => {}
        }
    }
}

/// The schema of one property, as the asker wrote it.
fn property(schema: Option<&Json>, name: &str) -> Option<Json> {
    let properties = schema?.object()?.get("properties")?;
    Json::parse(ObjectView::read(properties)?.get(name)?).ok()
}

fn write_url(out: &mut String, consent: &UrlConsent) {
    write_said(out, &consent.message);
    let _ = writeln!(out, "  URL:  {}", visible(consent.url.as_str()));
    let _ = writeln!(out, "  Host: {}", visible(consent.url.host().unwrap_or("(none)")));
    for warning in consent.url.warnings() {
        let _ = writeln!(out, "  Warning: {}", warning.message());
    }
    out.push_str("  Accepting records your consent. Sayso never opens the address itself.\n");
}

fn write_approval(out: &mut String, approval: &Approval, wire: Option<&wire::Request>) {
    let _ = writeln!(out, "  May this run, exactly as shown?\n  Tool: {}", visible(&approval.tool));
    if let Some(description) = &approval.description {
        out.push_str("  What its server says of it:\n");
        write_said(out, description);
    }
    // Whole, always: what is approved is what was shown.
    out.push_str("  Arguments:\n");
    write_lines(out, &pretty(&approval.arguments));
    out.push_str("  What it may do:\n");
    if approval.effects.is_empty() {
        let _ = writeln!(out, "    {}", Effect::NOTHING_KNOWN);
    }
    for effect in &approval.effects {
        let _ = writeln!(out, "    {}", effect.in_words());
    }
    if !approval.preview.is_empty() {
        out.push_str("  Preview, in the asker's words:\n");
        approval.preview.iter().for_each(|line| write_said(out, line));
    }
    for (name, text) in [("Asked by rule", &approval.rule), ("Session", &approval.session)] {
        if let Some(text) = text {
            let _ = writeln!(out, "  {name}: {}", visible(text));
        }
    }
    if approval.require_second_person {
        out.push_str("  Whoever started this work may deny it, but somebody else must approve it.\n");
    }
    if let Some(input) = &approval.input {
        out.push_str("  What you add to the call:\n");
        write_fields(out, input.form().fields(), "", wire.and_then(|wire| wire.schema.as_ref()));
    }
    if approval.edits.is_some() {
        out.push_str("  You may change its arguments.\n");
    }
}

/// Lines of JSON, set in.
fn write_lines(out: &mut String, text: &str) {
    for line in visible_multiline(text).lines() {
        let _ = writeln!(out, "    {line}");
    }
}

/// What was changed in the arguments of a call, line by line.
pub fn changed_arguments(approval: &Approval, edited: &Json) -> String {
    let mut out = String::new();
    for line in line_diff(&pretty(&approval.arguments), &pretty(edited)) {
        let (sign, text) = match line {
            DiffLine::Same(text) => (' ', text),
            DiffLine::Removed(text) => ('-', text),
            DiffLine::Added(text) => ('+', text),
        };
        let _ = writeln!(out, "    {sign} {}", visible_multiline(text));
    }
    out
}

fn write_choice(out: &mut String, choice: &Choice) {
    write_said(out, &choice.question);
    for (at, option) in choice.options.iter().enumerate() {
        let _ = writeln!(out, "  {}. {}", at + 1, visible(&option.label));
        if let Some(description) = &option.description {
            let _ = writeln!(out, "      {}", visible(description));
        }
    }
    let how = if choice.multi_select { "Several may be chosen" } else { "One may be chosen" };
    let _ = writeln!(out, "  {how}; any other text is an answer too.");
}

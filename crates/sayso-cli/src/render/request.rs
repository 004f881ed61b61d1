use std::fmt::Write as _;

use sayso::wire;
use sayso_core::json::{ObjectView, visible, visible_multiline};
use sayso_core::request::{Approval, Choice, Form, Request, UrlConsent};
use sayso_core::schema::FieldKind;

use super::field::{describe, option_label};

/// Bytes of a nested field's schema that are shown: enough to fill one in by hand, not a screenful.
const SCHEMA_BYTES_SHOWN: usize = 2000;

/// One request: what is said to the person, and what each part of it takes.
pub fn request(key: &str, request: &Request, wire: Option<&wire::Request>) -> String {
    let mut out = format!("{} ({})\n", visible(key), request.kind());
    match request {
        Request::Form(form) => write_form(&mut out, form, wire),
        Request::Url(url) => write_url(&mut out, url),
        Request::Approval(approval) => write_approval(&mut out, approval),
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
    let fields = form.schema.fields();
    if fields.is_empty() {
        out.push_str("  There is nothing to fill in; accepting confirms it.\n");
    }
    for field in fields {
        let _ = writeln!(out, "  {}: {}", visible(&field.name), describe(field));
        for text in [&field.title, &field.description].into_iter().flatten() {
            let _ = writeln!(out, "      {}", visible(text));
        }
        match &field.kind {
            FieldKind::Choice { options } | FieldKind::MultiChoice { options, .. } => {
                for each in options {
                    let _ = writeln!(out, "      - {}", option_label(each));
                }
            }
            FieldKind::Json => {
                if let Some(schema) = property(wire, &field.name).filter(|text| text.len() <= SCHEMA_BYTES_SHOWN) {
                    let _ = writeln!(out, "      schema: {}", visible(schema));
                }
            }
            FieldKind::Text { .. } | FieldKind::Number { .. } | FieldKind::Boolean => {}
        }
    }
}

/// The schema of one property, as the asker wrote it.
fn property<'a>(wire: Option<&'a wire::Request>, name: &str) -> Option<&'a str> {
    let properties = wire?.schema.as_ref()?.object()?.get("properties")?;
    ObjectView::read(properties)?.get(name)
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

fn write_approval(out: &mut String, approval: &Approval) {
    let _ = writeln!(out, "  May this run?\n  Tool:      {}", visible(&approval.tool));
    // Whole, always: what is approved is what was shown.
    let _ = writeln!(out, "  Arguments: {}", visible(approval.arguments.as_str()));
    for line in &approval.preview {
        write_said(out, line);
    }
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

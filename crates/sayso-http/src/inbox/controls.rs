//! The controls of a form, drawn from its schema. Limits stand in words beside each control and are checked by the
//! server alone: a browser's `maxlength` cuts what is pasted and counts other characters than the schema does, and a
//! number control throws away what it cannot read.

use maud::{Markup, html};
use sayso::Json;
use sayso_core::json::ObjectView;
use sayso_core::request::{Choice, Form};
use sayso_core::schema::{ChoiceOption, Field, FieldKind, TextFormat};

use super::problems::{Problems, label};
use super::typed::{OTHER, Typed, answer_id, field_id, offset_id, other_id, split_date_time};
use super::words;

/// Up to so many options stand side by side; more fold into a list.
pub(super) const RADIOS_MAX: usize = 5;
/// A text that may be longer than this gets several lines.
const ONE_LINE_CHARS_MAX: u64 = 160;

/// What a form is drawn with.
#[derive(Clone, Copy)]
pub(super) struct Drawn<'d> {
    /// What was typed before, where the form is drawn again.
    pub(super) typed: Option<&'d Typed>,
    pub(super) problems: &'d Problems,
}

impl Drawn<'_> {
    /// What a text control holds.
    pub(super) fn text(&self, id: &str, default: impl FnOnce() -> String) -> String {
        self.typed.map_or_else(default, |typed| typed.one(id).unwrap_or_default().to_owned())
    }

    /// Whether an option of a group is marked.
    pub(super) fn is_marked(&self, id: &str, value: &str, by_default: bool) -> bool {
        self.typed.map_or(by_default, |typed| typed.all(id).any(|marked| marked == value))
    }

    /// Errors of one control, each said in words and not by colour alone.
    pub(super) fn errors(&self, id: &str) -> Markup {
        html! {
            @if self.problems.has(id) {
                p.error id=(format!("{id}-error")) {
                    @for problem in self.problems.of(id) { span { "Error: " (problem.sentence) } " " }
                }
            }
        }
    }

    /// The ids that describe a control.
    pub(super) fn described(&self, id: &str, has_hint: bool) -> Option<String> {
        let hint = has_hint.then(|| format!("{id}-hint"));
        let error = self.problems.has(id).then(|| format!("{id}-error"));
        let ids: Vec<String> = hint.into_iter().chain(error).collect();
        (!ids.is_empty()).then(|| ids.join(" "))
    }

    pub(super) fn invalid(&self, id: &str) -> Option<&'static str> {
        self.problems.has(id).then_some("true")
    }
}

/// The fields of a form.
pub(super) fn form(index: usize, form: &Form, drawn: Drawn<'_>) -> Markup {
    let fields = form.schema.fields();
    html! {
        @if fields.is_empty() { p.hint { "There is nothing to fill in: accepting is the whole answer." } }
        @for (at, one) in fields.iter().enumerate() { (field(&field_id(index, at), one, form, drawn)) }
    }
}

fn need(field: &Field) -> Markup {
    html! { " " span.need { @if field.required { "(required)" } @else { "(optional)" } } }
}

fn field(id: &str, field: &Field, form: &Form, drawn: Drawn<'_>) -> Markup {
    let is_group = super::problems::focus(id, field) != id;
    let hint = hint(id, field, form);
    let described = drawn.described(id, hint.is_some());
    let wrong = drawn.problems.has(id).then_some("wrong");
    if is_group {
        let (role, required, invalid) = match field.kind {
            FieldKind::MultiChoice { .. } => ("group", None, None),
            _ => ("radiogroup", is_demanded(field), drawn.invalid(id)),
        };
        return html! {
            fieldset.field.(wrong.unwrap_or_default()) role=(role) id=(id) aria-describedby=[described] aria-required=[required] aria-invalid=[invalid] {
                legend { (label(field)) (need(field)) }
                (hint.unwrap_or_default())
                (drawn.errors(id))
                (group(id, field, drawn))
            }
        };
    }
    html! {
        div.field.(wrong.unwrap_or_default()) {
            label for=(id) { (label(field)) (need(field)) }
            (hint.unwrap_or_default())
            (drawn.errors(id))
            (control(id, field, drawn, described.as_deref()))
        }
    }
}

/// Whether leaving the field empty is an error.
fn is_demanded(field: &Field) -> Option<&'static str> {
    (field.required && field.default.is_none()).then_some("true")
}

fn default_text(field: &Field) -> String {
    match &field.default {
        None => String::new(),
        Some(default) => match (&field.kind, default.value().as_str()) {
            (FieldKind::Json, _) => words::pretty(default),
            (_, Some(text)) => text.to_owned(),
            (_, None) => default.as_str().to_owned(),
        },
    }
}

fn control(id: &str, field: &Field, drawn: Drawn<'_>, described: Option<&str>) -> Markup {
    let value = drawn.text(id, || default_text(field));
    let (required, invalid) = (is_demanded(field), drawn.invalid(id));
    match &field.kind {
        FieldKind::Choice { options } => select(id, field, options, drawn, described),
        FieldKind::Text { format: Some(TextFormat::DateTime), .. } => date_time(id, field, drawn, described),
        FieldKind::Text { format, min_length, max_length, .. } => {
            let is_long = max_length.is_some_and(|most| most > ONE_LINE_CHARS_MAX) || value.contains('\n');
            let (kind, complete) = match format {
                Some(TextFormat::Email) => ("email", Some("email")),
                Some(TextFormat::Uri) => ("url", Some("url")),
                Some(TextFormat::Date) => ("date", None),
                Some(TextFormat::Password) => ("password", Some("off")),
                _ => ("text", None),
            };
            html! {
                @if is_long && kind == "text" {
                    textarea id=(id) name=(id) rows="4" aria-required=[required] aria-invalid=[invalid] aria-describedby=[described] { (textarea(&value)) }
                } @else {
                    input id=(id) name=(id) type=(kind) value=(value) minlength=[min_length] autocomplete=[complete] aria-required=[required] aria-invalid=[invalid] aria-describedby=[described];
                }
            }
        }
        FieldKind::Number { integer, minimum, exclusive_minimum, .. } => {
            // Number pads of phones lack a minus sign.
            let least = minimum.as_deref().or(exclusive_minimum.as_deref());
            let is_negative = least.is_none_or(|least| least.starts_with('-'));
            let mode = match (is_negative, integer) {
                (true, _) => "text",
                (false, true) => "numeric",
                (false, false) => "decimal",
            };
            html! {
                input.number id=(id) name=(id) type="text" inputmode=(mode) value=(value) autocomplete="off" aria-required=[required] aria-invalid=[invalid] aria-describedby=[described];
            }
        }
        _ => html! {
            textarea.json id=(id) name=(id) rows="6" spellcheck="false" autocomplete="off" aria-required=[required] aria-invalid=[invalid] aria-describedby=[described] { (textarea(&value)) }
        },
    }
}

/// A parser drops the first line break of a text area: it gets one to drop.
pub(super) fn textarea(value: &str) -> String {
    format!("\n{value}")
}

fn date_time(id: &str, field: &Field, drawn: Drawn<'_>, described: Option<&str>) -> Markup {
    let default = default_text(field);
    let (local, offset) = split_date_time(&default).unwrap_or(("", "+00:00"));
    let offset_id = offset_id(id);
    let is_ours = drawn.typed.is_none() && field.default.is_none();
    html! {
        div.date-time {
            input id=(id) name=(id) type="datetime-local" value=(drawn.text(id, || local.to_owned())) aria-required=[is_demanded(field)] aria-invalid=[drawn.invalid(id)] aria-describedby=[described];
            div {
                label for=(offset_id) { "Offset from UTC" }
                input.offset id=(offset_id) name=(offset_id) type="text" autocomplete="off" value=(drawn.text(&offset_id, || offset.to_owned())) data-local-offset[is_ours];
            }
        }
    }
}

fn select(id: &str, field: &Field, options: &[ChoiceOption], drawn: Drawn<'_>, described: Option<&str>) -> Markup {
    let none = if field.required { "Choose one" } else { "No answer" };
    html! {
        select id=(id) name=(id) aria-required=[is_demanded(field)] aria-invalid=[drawn.invalid(id)] aria-describedby=[described] {
            option value="" { (none) }
            @for (at, option) in options.iter().enumerate() {
                option value=(at) selected[drawn.is_marked(id, &at.to_string(), is_default(field, option))] { (words::line(&option.label)) }
            }
        }
    }
}

fn is_default(field: &Field, option: &ChoiceOption) -> bool {
    let Some(default) = &field.default else { return false };
    match default.value() {
        serde_json::Value::Array(items) => items.contains(&option.value.value()),
        value => value == option.value.value(),
    }
}

fn group(id: &str, field: &Field, drawn: Drawn<'_>) -> Markup {
    let no_answer = (!field.required && field.default.is_none()).then_some("No answer");
    match &field.kind {
        FieldKind::Boolean => {
            let default = field.default.as_ref().and_then(|default| default.value().as_bool());
            let options = [("true", "Yes", default == Some(true)), ("false", "No", default == Some(false))];
            html! {
                @for (at, (value, said, is_default)) in options.into_iter().enumerate() {
                    (mark("radio", id, at, value, said, drawn.is_marked(id, value, is_default), None))
                }
                @if let Some(said) = no_answer { (mark("radio", id, 2, "", said, drawn.is_marked(id, "", true), None)) }
            }
        }
        FieldKind::Choice { options } => html! {
            @for (at, option) in options.iter().enumerate() {
                @let value = at.to_string();
                (mark("radio", id, at, &value, &words::line(&option.label), drawn.is_marked(id, &value, is_default(field, option)), None))
            }
            @if let Some(said) = no_answer { (mark("radio", id, options.len(), "", said, drawn.is_marked(id, "", true), None)) }
        },
        FieldKind::MultiChoice { options, .. } => html! {
            @for (at, option) in options.iter().enumerate() {
                @let value = at.to_string();
                (mark("checkbox", id, at, &value, &words::line(&option.label), drawn.is_marked(id, &value, is_default(field, option)), drawn.invalid(id)))
            }
        },
        _ => html! {},
    }
}

/// One radio or check box of a group with its label.
fn mark(kind: &str, id: &str, at: usize, value: &str, said: &str, is_marked: bool, invalid: Option<&str>) -> Markup {
    let own = format!("{id}-{at}");
    html! {
        div.option {
            input type=(kind) id=(own) name=(id) value=(value) checked[is_marked] aria-invalid=[invalid];
            label for=(own) { (said) }
        }
    }
}

/// A choice's options and the free text beside them.
pub(super) fn choice(index: usize, choice: &Choice, question: &str, drawn: Drawn<'_>) -> Markup {
    let (id, other) = (answer_id(index), other_id(index));
    let (kind, role) = if choice.multi_select { ("checkbox", "group") } else { ("radio", "radiogroup") };
    let hint =
        if choice.multi_select { "Choose any number, add your own, or both." } else { "Choose one, or type your own." };
    let invalid = drawn.invalid(&id);
    let group_invalid = invalid.filter(|_| !choice.multi_select);
    html! {
        fieldset.field.(invalid.map_or("", |_| "wrong")) role=(role) id=(id) aria-describedby=[drawn.described(&id, true)] aria-invalid=[group_invalid] {
            legend { (question) }
            p.hint id=(format!("{id}-hint")) { (hint) }
            (drawn.errors(&id))
            @for (at, option) in choice.options.iter().enumerate() {
                @let own = format!("{id}-{at}");
                @let value = at.to_string();
                @let about = option.description.as_ref().map(|_| format!("{own}-about"));
                div.option {
                    input type=(kind) id=(own) name=(id) value=(value) checked[drawn.is_marked(&id, &value, false)] aria-describedby=[&about] aria-invalid=[invalid.filter(|_| choice.multi_select)];
                    div {
                        label for=(own) { (words::line(&option.label)) }
                        @if let (Some(description), Some(about)) = (&option.description, &about) {
                            p.hint id=(about) { (words::lines(description)) }
                        }
                    }
                }
            }
            @if !choice.multi_select {
                (mark("radio", &id, choice.options.len(), OTHER, "Other", drawn.is_marked(&id, OTHER, false), None))
            }
            div.other {
                label for=(other) { @if choice.multi_select { "Other, in your own words" } @else { "Other: your own words" } }
                input id=(other) name=(other) type="text" value=(drawn.text(&other, String::new)) data-marks=[(!choice.multi_select).then(|| format!("{id}-{}", choice.options.len()))];
            }
        }
    }
}

fn hint(id: &str, field: &Field, form: &Form) -> Option<Markup> {
    let description = field.description.as_deref().filter(|text| !text.trim().is_empty());
    let limits = limits(field);
    let schema = matches!(field.kind, FieldKind::Json).then(|| property(form, &field.name)).flatten();
    if description.is_none() && limits.is_none() && field.default.is_none() && schema.is_none() {
        return None;
    }
    Some(html! {
        div.hint id=(format!("{id}-hint")) {
            @if let Some(text) = description { p.multiline { (words::lines(text)) } }
            @if let Some(text) = limits { p { (text) } }
            @if field.default.is_some() {
                p { (default_note(id, field)) code { (words::line(&default_said(field))) } }
            }
        }
        @if let Some(schema) = schema {
            details { summary { "What is allowed" } pre tabindex="0" { code { (words::pretty(&schema)) } } }
        }
    })
}

/// What leaving the field alone comes to. Radio buttons that are marked stay marked.
fn default_note(id: &str, field: &Field) -> &'static str {
    match field.kind {
        FieldKind::MultiChoice { .. } => "If you choose none, the default applies: ",
        _ if super::problems::focus(id, field) != id => "The default is: ",
        _ => "If you leave this empty, the default applies: ",
    }
}

/// The default in the words of its options.
fn default_said(field: &Field) -> String {
    let options = match &field.kind {
        FieldKind::Choice { options } | FieldKind::MultiChoice { options, .. } => options.as_slice(),
        FieldKind::Boolean => {
            let is_yes = field.default.as_ref().is_some_and(|default| default.as_str() == "true");
            return if is_yes { "Yes" } else { "No" }.to_owned();
        }
        _ => &[],
    };
    let said: Vec<&str> =
        options.iter().filter(|option| is_default(field, option)).map(|option| option.label.as_str()).collect();
    match (said.is_empty(), &field.default) {
        (true, Some(default)) if matches!(field.kind, FieldKind::Json) => default.as_str().to_owned(),
        (true, _) => default_text(field),
        (false, _) => said.join(", "),
    }
}

/// A property's own schema, as the asker wrote it.
fn property(form: &Form, name: &str) -> Option<Json> {
    let properties = form.schema_text.object()?.get("properties")?.to_owned();
    Json::parse(ObjectView::read(&properties)?.get(name)?).ok()
}

/// What fits, in words.
fn limits(field: &Field) -> Option<String> {
    let said: Vec<String> = match &field.kind {
        FieldKind::Text { min_length, max_length, pattern, format } => {
            let example = match format {
                Some(TextFormat::DateTime) => Some("The offset is such as +02:00, or Z for UTC.".to_owned()),
                _ => None,
            };
            // Where the asker has said in words what fits, the expression only frightens.
            let shown = pattern.as_ref().filter(|_| field.description.is_none());
            let pattern = shown.map(|pattern| format!("Must match the pattern {}", words::excerpt(pattern)));
            between(*min_length, *max_length, "character").into_iter().chain(pattern).chain(example).collect()
        }
        FieldKind::Number { integer, minimum, maximum, exclusive_minimum, exclusive_maximum, multiple_of } => {
            let mut parts = Vec::new();
            let mut part = |said: &str, limit: &Option<String>| {
                if let Some(limit) = limit {
                    parts.push(format!("{said} {limit}"));
                }
            };
            part("at least", minimum);
            part("more than", exclusive_minimum);
            part("at most", maximum);
            part("less than", exclusive_maximum);
            part("a multiple of", multiple_of);
            let what = if *integer { "A whole number" } else { "A number" };
            vec![if parts.is_empty() { format!("{what}.") } else { format!("{what}, {}.", parts.join(", ")) }]
        }
        FieldKind::MultiChoice { min_items, max_items, .. } => {
            let counted = between(*min_items, *max_items, "option");
            vec![counted.map_or_else(
                || "Choose any number.".to_owned(),
                |counted| format!("Choose: {}", counted.to_lowercase()),
            )]
        }
        FieldKind::Json => vec!["Enter JSON.".to_owned()],
        FieldKind::Boolean | FieldKind::Choice { .. } => Vec::new(),
    };
    (!said.is_empty()).then(|| said.join(" "))
}

fn between(least: Option<u64>, most: Option<u64>, unit: &str) -> Option<String> {
    let units = |count: u64| if count == 1 { unit.to_owned() } else { format!("{unit}s") };
    match (least.filter(|least| *least > 0), most) {
        (None, None) => None,
        (Some(least), None) => Some(format!("At least {least} {}.", units(least))),
        (None, Some(most)) => Some(format!("At most {most} {}.", units(most))),
        (Some(least), Some(most)) if least == most => Some(format!("Exactly {most} {}.", units(most))),
        (Some(least), Some(most)) => Some(format!("{least} to {most} {}.", units(most))),
    }
}

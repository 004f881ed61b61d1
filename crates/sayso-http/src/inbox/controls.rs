//! The controls of a form, drawn from its schema. Limits stand in words beside each control and are checked by the
//! server alone: a browser's `maxlength` cuts what is pasted and counts other characters than the schema does, and a
//! number control throws away what it cannot read.

use maud::{Markup, html};
use sayso::Json;
use sayso_core::json::ObjectView;
use sayso_core::limits;
use sayso_core::request::{Choice, Form};
use sayso_core::schema::{ChoiceOption, Field, FieldKind, TextFormat};

use super::problems::{Problems, label};
use super::typed::{
    LESS, MORE, OTHER, Part, Typed, answer_id, child_id, offset_id, other_id, part_id, rows_id, split_date_time, top_id,
};
use super::{hints, words};

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
    /// The frame that takes the focus: a row that was just added, a list that lost one.
    pub(super) focus: Option<&'d str>,
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

    fn is_focused(&self, id: &str) -> bool {
        self.focus == Some(id)
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
        (part(&part_id(index, Part::Form), fields, Some(&form.schema_text), drawn))
    }
}

/// The fields at the top of a part. `schema` is the object's, as the asker wrote it.
pub(super) fn part(part: &str, fields: &[Field], schema: Option<&Json>, drawn: Drawn<'_>) -> Markup {
    html! {
        @for (at, one) in fields.iter().enumerate() {
            (field(&top_id(part, at), one, property(schema, &one.name).as_ref(), drawn))
        }
    }
}

/// A property's own schema, as the asker wrote it.
fn property(schema: Option<&Json>, name: &str) -> Option<Json> {
    let properties = schema?.object()?.get("properties")?;
    Json::parse(ObjectView::read(properties)?.get(name)?).ok()
}

fn need(field: &Field) -> Markup {
    html! { " " span.need { @if field.required { "(required)" } @else { "(optional)" } } }
}

fn field(id: &str, field: &Field, schema: Option<&Json>, drawn: Drawn<'_>) -> Markup {
    let hint = hints::hint(id, field, schema);
    let described = drawn.described(id, hint.is_some());
    let wrong = drawn.problems.has(id).then_some("wrong");
    let (role, required, invalid) = match &field.kind {
        FieldKind::Group { fields } => {
            let inner = children(id, fields, schema, drawn);
            return group_of(
                id,
                field,
                drawn,
                described.as_deref(),
                &html! { (hint.unwrap_or_default()) (drawn.errors(id)) (inner) },
            );
        }
        FieldKind::Rows { fields, .. } => {
            let inner = rows(id, field, fields, schema, drawn);
            return group_of(
                id,
                field,
                drawn,
                described.as_deref(),
                &html! { (hint.unwrap_or_default()) (drawn.errors(id)) (inner) },
            );
        }
        FieldKind::MultiChoice { .. } => ("group", None, None),
        _ => ("radiogroup", is_demanded(field), drawn.invalid(id)),
    };
    if super::problems::focus(id, field) != id {
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

/// A frame around the fields of an object or the rows of a list. Errors of the whole lead to the frame itself.
fn group_of(id: &str, field: &Field, drawn: Drawn<'_>, described: Option<&str>, inner: &Markup) -> Markup {
    let wrong = drawn.problems.has(id).then_some("wrong");
    html! {
        fieldset.field.nested.(wrong.unwrap_or_default()) id=(id) tabindex="-1" autofocus[drawn.is_focused(id)] aria-describedby=[described] {
            legend { (label(field)) (need(field)) }
            (inner)
        }
    }
}

fn children(id: &str, fields: &[Field], schema: Option<&Json>, drawn: Drawn<'_>) -> Markup {
    html! {
        @for (at, one) in fields.iter().enumerate() {
            (field(&child_id(id, at), one, property(schema, &one.name).as_ref(), drawn))
        }
    }
}

/// Rows that a list has at most before anybody adds one: lists of lists multiply them.
const ROWS_AT_FIRST_MAX: usize = 3;

/// How many rows a list has before anybody adds one: as many as it must have, or the first few of them.
pub(super) fn rows_at_first(field: &Field) -> usize {
    let FieldKind::Rows { min_items, .. } = &field.kind else { return 0 };
    let least = min_items.and_then(|least| usize::try_from(least).ok()).unwrap_or_default();
    let is_demanded = field.required && field.default.is_none();
    if is_demanded { least.clamp(1, ROWS_AT_FIRST_MAX) } else { 0 }
}

fn rows(id: &str, field: &Field, fields: &[Field], schema: Option<&Json>, drawn: Drawn<'_>) -> Markup {
    let FieldKind::Rows { max_items, .. } = &field.kind else { return html! {} };
    let count = drawn.typed.and_then(|typed| typed.rows(id)).unwrap_or_else(|| rows_at_first(field));
    let most = max_items.and_then(|most| usize::try_from(most).ok()).unwrap_or(limits::FORM_ROWS_MAX);
    let items = schema.and_then(Json::object).and_then(|view| Json::parse(view.get("items")?).ok());
    html! {
        input type="hidden" name=(rows_id(id)) value=(count);
        @for row in 0..count {
            @let row_id = child_id(id, row);
            @let name = format!("{} {}", label(field), row + 1);
            fieldset.row id=(row_id) tabindex="-1" autofocus[drawn.is_focused(&row_id)] {
                legend { (name) }
                (children(&row_id, fields, items.as_ref(), drawn))
                div { button.quiet type="submit" name=(LESS) value=(row_id) formnovalidate { "Remove " (name) } }
            }
        }
        @if count < most.min(limits::FORM_ROWS_MAX) {
            div { button type="submit" name=(MORE) value=(id) formnovalidate { @if count == 0 { "Add to " } @else { "Add another to " } (label(field)) } }
        }
    }
}

/// Whether leaving the field empty is an error.
fn is_demanded(field: &Field) -> Option<&'static str> {
    (field.required && field.default.is_none()).then_some("true")
}

fn control(id: &str, field: &Field, drawn: Drawn<'_>, described: Option<&str>) -> Markup {
    let value = drawn.text(id, || hints::default_text(field));
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
    let default = hints::default_text(field);
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
                option value=(at) selected[drawn.is_marked(id, &at.to_string(), hints::is_default(field, option))] { (words::line(&option.label)) }
            }
        }
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
                (mark("radio", id, at, &value, &words::line(&option.label), drawn.is_marked(id, &value, hints::is_default(field, option)), None))
            }
            @if let Some(said) = no_answer { (mark("radio", id, options.len(), "", said, drawn.is_marked(id, "", true), None)) }
        },
        FieldKind::MultiChoice { options, .. } => html! {
            @for (at, option) in options.iter().enumerate() {
                @let value = at.to_string();
                (mark("checkbox", id, at, &value, &words::line(&option.label), drawn.is_marked(id, &value, hints::is_default(field, option)), drawn.invalid(id)))
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

//! Edited arguments of a call: how they are entered, and what was changed.

use maud::{Markup, html};
use sayso::{Digest, FieldError, Json};
use sayso_core::json::{pretty, visible};
use sayso_core::request::Approval;
use sayso_core::schema::{Field, FieldKind, TextFormat};

use super::controls::{self, Drawn, textarea};
use super::typed::{CHECK, Part, Typed, arguments_id, edits_id, part_id, reviewed_id};
use super::{changes, entered, suggested};

/// The fields that a call's arguments are edited in; `None` where they are edited as JSON: a control would not give back
/// every byte of them, and what nobody touched must not count as edited.
pub(super) fn fields(approval: &Approval) -> Option<&[Field]> {
    let schema = approval.edits.as_ref()?;
    let fields = schema.fields();
    let is_simple = !fields.is_empty() && fields.iter().all(is_simple) && is_plain(&approval.arguments);
    let part = part_id(0, Part::Arguments);
    let typed = Typed::new(suggested::filled(&part, fields, &approval.arguments));
    let read = || entered::content(&part, schema, &typed).ok();
    let gives_back = is_simple && read().is_some_and(|read| read.canonical() == approval.arguments.canonical());
    gives_back.then_some(fields)
}

/// Whether a browser gives back what such a control holds.
fn is_simple(field: &Field) -> bool {
    match &field.kind {
        FieldKind::Group { fields } | FieldKind::Rows { fields, .. } => fields.iter().all(is_simple),
        FieldKind::Json => false,
        FieldKind::Text { format, .. } => matches!(format, None | Some(TextFormat::Other)),
        FieldKind::Number { .. } | FieldKind::Boolean | FieldKind::Choice { .. } | FieldKind::MultiChoice { .. } => {
            true
        }
    }
}

/// Whether there is nothing in a text that a control or an eye loses: a carriage return, a hidden character.
fn is_plain(arguments: &Json) -> bool {
    let shown = arguments.canonical();
    !shown.contains("\\r") && matches!(visible(&shown), std::borrow::Cow::Borrowed(_))
}

/// The arguments as they were edited; `None` where nobody changed anything. Pointers start at the arguments.
pub(super) fn edited(index: usize, approval: &Approval, typed: &Typed) -> Result<Option<Json>, Vec<FieldError>> {
    let Some(schema) = &approval.edits else { return Ok(None) };
    let entered = if fields(approval).is_some() {
        let part = part_id(index, Part::Arguments);
        // A page that did not offer to edit sends nothing of it.
        if typed.one(&edits_id(index)).is_none() {
            return Ok(None);
        }
        entered::content(&part, schema, typed)?
    } else {
        let Some(text) = typed.one(&arguments_id(index)) else { return Ok(None) };
        let fault = |message: String| vec![FieldError { pointer: String::new(), message }];
        let entered = Json::parse(text).map_err(|error| fault(format!("must be JSON: {error}")))?;
        if !entered.is_object() {
            return Err(fault("must be an object".to_owned()));
        }
        entered
    };
    if entered.canonical() == approval.arguments.canonical() {
        return Ok(None);
    }
    schema.validate(&entered).map(|()| Some(entered))
}

/// What a person confirms by approving once more: these edited arguments and no others.
pub(super) fn mark(edited: &Json) -> String {
    Digest::of_text(&edited.canonical()).to_string()
}

/// Whether the changes to the arguments were shown already.
pub(super) fn is_reviewed(index: usize, edited: &Json, typed: &Typed) -> bool {
    typed.one(&reviewed_id(index)) == Some(mark(edited).as_str())
}

/// Where the arguments are edited, and what has been changed so far. `schema` is that of the arguments as the asker wrote
/// it.
pub(super) fn section(index: usize, approval: &Approval, schema: Option<&Json>, drawn: Drawn<'_>) -> Markup {
    if approval.edits.is_none() {
        return html! {};
    }
    let id = arguments_id(index);
    let part = part_id(index, Part::Arguments);
    let edited = drawn.typed.map_or(Ok(None), |typed| edited(index, approval, typed));
    let is_open = !matches!(edited, Ok(None)) || drawn.problems.has(&id) || drawn.problems.has_in(&part);
    let filled;
    let drawn = match (drawn.typed, fields(approval)) {
        (typed, Some(fields)) if typed.is_none_or(|typed| typed.one(&edits_id(index)).is_none()) => {
            filled = Typed::new(suggested::filled(&part, fields, &approval.arguments));
            Drawn { typed: Some(&filled), ..drawn }
        }
        _ => drawn,
    };
    html! {
        details.edit open[is_open] {
            summary { "Edit the arguments first" }
            p.hint { "Nothing runs with other arguments before you have seen what you changed." }
            @match fields(approval) {
                Some(fields) => {
                    input type="hidden" name=(edits_id(index)) value="1";
                    (controls::part(&part, fields, schema, drawn))
                }
                None => {
                    div.field.(drawn.invalid(&id).map_or("", |_| "wrong")) {
                        label for=(id) { "The arguments, as JSON" }
                        (drawn.errors(&id))
                        textarea.json id=(id) name=(id) rows="8" spellcheck="false" autocomplete="off" aria-invalid=[drawn.invalid(&id)] aria-describedby=[drawn.described(&id, false)] {
                            (textarea(&drawn.text(&id, || pretty(&approval.arguments))))
                        }
                    }
                    @if let Some(schema) = schema {
                        details { summary { "What is allowed" } pre tabindex="0" aria-label="Schema of the arguments" { code { (super::words::pretty(schema)) } } }
                    }
                }
            }
            div { button type="submit" name=(CHECK) value="1" formnovalidate { "Show what I changed" } }
        }
        @if let Ok(Some(edited)) = &edited {
            (changed(index, approval, edited))
            input type="hidden" name=(reviewed_id(index)) value=(mark(edited));
        }
    }
}

fn changed(index: usize, approval: &Approval, edited: &Json) -> Markup {
    let id = format!("r{index}-changes");
    html! {
        section.changes id=(id) tabindex="-1" aria-labelledby=(format!("{id}-title")) {
            h3 id=(format!("{id}-title")) { "What you changed" }
            (changes::between(&pretty(&approval.arguments), &pretty(edited)))
            p.hint { "If you approve, it runs with the changed arguments, and the agent is told so." }
        }
    }
}

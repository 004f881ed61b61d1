//! What is wrong with an answer, tied to the controls of its form.

use maud::{Markup, html};
use sayso::FieldError;
use sayso_core::json::pointer_to;
use sayso_core::request::{Request, Requests};
use sayso_core::schema::{Field, FieldKind};

use super::typed::{action_id, answer_id, field_id, reason_id};
use super::words;

/// One thing that is wrong.
pub(super) struct Problem {
    /// The control, or the group of controls.
    control: String,
    /// The control that takes the focus for it.
    focus: String,
    /// A sentence that names the field.
    pub(super) sentence: String,
}

/// Everything that is wrong, in the order of the form.
#[derive(Default)]
pub(super) struct Problems(Vec<Problem>);

/// The name of a field as a person sees it.
pub(super) fn label(field: &Field) -> String {
    let title = field.title.as_deref().filter(|title| !title.trim().is_empty());
    words::line(title.unwrap_or(&field.name)).into_owned()
}

/// The control of a field that takes the focus: of a group its first.
pub(super) fn focus(id: &str, field: &Field) -> String {
    match &field.kind {
        FieldKind::Boolean | FieldKind::MultiChoice { .. } => format!("{id}-0"),
        FieldKind::Choice { options } if options.len() <= super::controls::RADIOS_MAX => format!("{id}-0"),
        _ => id.to_owned(),
    }
}

/// A place in the form that errors may point to.
struct Target {
    pointer: String,
    control: String,
    focus: String,
    label: String,
}

fn targets(index: usize, key: &str, request: &Request, several: bool) -> Vec<Target> {
    let prefix = if several { format!("{}: ", words::line(key)) } else { String::new() };
    let pointer = pointer_to("/responses", key);
    let target = |suffix: &str, control: String, focus: String, label: &str| Target {
        pointer: format!("{pointer}{suffix}"),
        control,
        focus,
        label: format!("{prefix}{label}"),
    };
    let mut all = Vec::new();
    match request {
        Request::Form(form) => {
            let fields = form.schema.fields().iter().enumerate();
            all.extend(fields.map(|(at, field)| {
                let id = field_id(index, at);
                let suffix = pointer_to("/content", &field.name);
                target(&suffix, id.clone(), focus(&id, field), &label(field))
            }));
        }
        Request::Choice(_) => {
            let id = answer_id(index);
            all.push(target("/content/answer", id.clone(), format!("{id}-0"), "Your answer"));
        }
        Request::Text(_) => all.push(target("/content/answer", answer_id(index), answer_id(index), "Your answer")),
        Request::Url(_) | Request::Approval(_) => {}
    }
    all.push(target("/reason", reason_id(index), reason_id(index), "The reason"));
    all.push(target("", action_id(index), format!("{}-0", action_id(index)), "This"));
    all
}

/// What is left of `pointer` below `target`, where it lies there.
fn rest<'e>(pointer: &'e str, target: &str) -> Option<&'e str> {
    pointer.strip_prefix(target).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl Problems {
    /// Ties each error to the innermost control that its pointer leads to.
    pub(super) fn new(requests: &Requests, errors: &[FieldError]) -> Self {
        let mut open: Vec<&FieldError> = errors.iter().collect();
        let mut problems = Vec::new();
        for (index, (key, request)) in requests.iter().enumerate() {
            for target in targets(index, key, request, requests.len() > 1) {
                open.retain(|error| {
                    let Some(rest) = rest(&error.pointer, &target.pointer) else { return true };
                    let shows_rest = !rest.is_empty() && !matches!(rest, "/action" | "/content");
                    let place = if shows_rest { format!(" (at {})", words::line(rest)) } else { String::new() };
                    problems.push(Problem {
                        control: target.control.clone(),
                        focus: target.focus.clone(),
                        sentence: format!("{}{place} {}", target.label, words::line(&error.message)),
                    });
                    false
                });
            }
        }
        problems.extend(open.into_iter().map(|error| Problem {
            control: String::new(),
            focus: "answer".to_owned(),
            sentence: format!("{} {}", words::line(&error.pointer), words::line(&error.message)),
        }));
        Self(problems)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is wrong with a control.
    pub(super) fn of<'p>(&'p self, control: &'p str) -> impl Iterator<Item = &'p Problem> {
        self.0.iter().filter(move |problem| problem.control == control)
    }

    /// Whether a control is wrong.
    pub(super) fn has(&self, control: &str) -> bool {
        self.of(control).next().is_some()
    }

    /// The summary above the form; it takes the focus when the page is loaded.
    pub(super) fn summary(&self) -> Markup {
        html! {
            div.problems id="problems" role="alert" tabindex="-1" autofocus aria-labelledby="problems-title" {
                h2 id="problems-title" {
                    @if self.0.len() == 1 { "One thing needs your attention" }
                    @else { (self.0.len()) " things need your attention" }
                }
                ul {
                    @for problem in &self.0 {
                        li { a href=(format!("#{}", problem.focus)) { (problem.sentence) } }
                    }
                }
            }
        }
    }
}

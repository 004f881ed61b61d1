//! What is wrong with an answer, tied to the controls of its form.

use maud::{Markup, html};
use sayso::FieldError;
use sayso_core::json::pointer_to;
use sayso_core::limits;
use sayso_core::request::{Request, Requests};
use sayso_core::schema::{Field, FieldKind};

use super::typed::{Part, action_id, answer_id, arguments_id, child_id, is_in_part, part_id, reason_id, top_id};
use super::{edits, words};

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

/// Every place of a request that errors may point to, inner ones first.
fn targets(index: usize, key: &str, request: &Request, several: bool, errors: &[FieldError]) -> Vec<Target> {
    let prefix = if several { format!("{}: ", words::line(key)) } else { String::new() };
    let pointer = pointer_to("/responses", key);
    let mut all = Targets { all: Vec::new(), prefix, errors };
    match request {
        Request::Form(form) => {
            all.part(&part_id(index, Part::Form), form.schema.fields(), &format!("{pointer}/content"));
        }
        Request::Approval(approval) => {
            if let Some(input) = &approval.input {
                all.part(&part_id(index, Part::Input), input.form().fields(), &format!("{pointer}/content/input"));
            }
            let at = format!("{pointer}/content/arguments");
            match edits::fields(approval) {
                Some(fields) => all.part(&part_id(index, Part::Arguments), fields, &at),
                None => all.add(at, arguments_id(index), "The arguments"),
            }
        }
        Request::Choice(_) => {
            let id = answer_id(index);
            all.add_focused(format!("{pointer}/content/answer"), format!("{id}-0"), id, "Your answer");
        }
        Request::Text(_) => all.add(format!("{pointer}/content/answer"), answer_id(index), "Your answer"),
        Request::Url(_) => {}
    }
    all.add(format!("{pointer}/reason"), reason_id(index), "The reason");
    all.add_focused(pointer, format!("{}-0", action_id(index)), action_id(index), "This");
    all.all
}

struct Targets<'e> {
    all: Vec<Target>,
    /// What labels begin with: the request, where there are several.
    prefix: String,
    /// What is to be placed: fields that nothing is wrong with are passed over, with all that is in them.
    errors: &'e [FieldError],
}

impl Targets<'_> {
    fn add(&mut self, pointer: String, control: String, label: &str) {
        self.add_focused(pointer, control.clone(), control, label);
    }

    fn add_focused(&mut self, pointer: String, focus: String, control: String, label: &str) {
        self.all.push(Target { pointer, control, focus, label: format!("{}{label}", self.prefix) });
    }

    fn is_wanted(&self, pointer: &str) -> bool {
        self.errors.iter().any(|error| rest(&error.pointer, pointer).is_some())
    }

    fn part(&mut self, part: &str, fields: &[Field], pointer: &str) {
        for (at, field) in fields.iter().enumerate() {
            self.field(&top_id(part, at), field, pointer, "");
        }
    }

    /// A field and all that is in it. `around` is what its label begins with.
    fn field(&mut self, id: &str, field: &Field, pointer: &str, around: &str) {
        let at = pointer_to(pointer, &field.name);
        if !self.is_wanted(&at) {
            return;
        }
        let name = format!("{around}{}", label(field));
        match &field.kind {
            FieldKind::Group { fields } => self.children(id, fields, &at, &format!("{name}: ")),
            FieldKind::Rows { fields, .. } => {
                for row in 0..limits::FORM_ROWS_MAX {
                    let (row_id, row_at) = (child_id(id, row), pointer_to(&at, &row.to_string()));
                    if !self.is_wanted(&row_at) {
                        continue;
                    }
                    let row_name = format!("{name} {}", row + 1);
                    self.children(&row_id, fields, &row_at, &format!("{row_name}: "));
                    self.add(row_at, row_id, &row_name);
                }
            }
            _ => {}
        }
        self.add_focused(at, focus(id, field), id.to_owned(), &name);
    }

    fn children(&mut self, id: &str, fields: &[Field], pointer: &str, around: &str) {
        for (at, field) in fields.iter().enumerate() {
            self.field(&child_id(id, at), field, pointer, around);
        }
    }
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
            for target in targets(index, key, request, requests.len() > 1, errors) {
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

    /// What is wrong with controls that take the focus themselves, each in a sentence that names its own.
    pub(super) fn at(wrong: Vec<(&str, String)>) -> Self {
        let problem = |(control, sentence): (&str, String)| Problem {
            control: control.to_owned(),
            focus: control.to_owned(),
            sentence,
        };
        Self(wrong.into_iter().map(problem).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is wrong with a control.
    pub(super) fn of<'p>(&'p self, control: &'p str) -> impl Iterator<Item = &'p Problem> {
        self.0.iter().filter(move |problem| problem.control == control)
    }

    /// Whether any control of a part is wrong.
    pub(super) fn has_in(&self, part: &str) -> bool {
        self.0.iter().any(|problem| is_in_part(&problem.control, part))
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

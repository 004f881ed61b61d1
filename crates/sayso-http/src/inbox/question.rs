//! A pending round: who asks and why, and the one form that answers all of it.

use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use sayso::wire::{self, Call, Round};
use sayso::{LATE_PREFIX, Principal, UnixMs};
use sayso_core::error::Error;
use sayso_core::request::{Approval, ConsentUrl, Request, Requests};

use super::controls::{self, Drawn, textarea};
use super::layout::{Page, Place};
use super::typed::{CHECK, DIGEST, KEY, Part, action_id, answer_id, part_id, reason_id};
use super::{allowing, card, edits, words};
use crate::app::App;

/// What is said above the form when it is drawn again for another reason than its contents.
pub(super) struct Notice {
    pub(super) title: &'static str,
    pub(super) text: String,
    /// What else belongs to it: what changed, what was typed.
    pub(super) more: Option<Markup>,
}

/// Everything a pending round's page is drawn from.
pub(super) struct Question<'q> {
    pub(super) round: &'q Round,
    pub(super) requests: &'q Requests,
    pub(super) drawn: Drawn<'q>,
    pub(super) notice: Option<Notice>,
    /// Whether the form holds the answer of an earlier question.
    pub(super) is_suggested: bool,
    /// The idempotency key of the answer that this form will send.
    pub(super) key: String,
}

impl Question<'_> {
    pub(super) async fn respond(self, app: &App, person: &Principal, status: StatusCode) -> Result<Response, Error> {
        let now = app.sayso.now().await?;
        let waited = app.sayso.last_wait(&self.round.server).await?;
        let title = words::asks(self.round, self.requests);
        let prefix = if self.drawn.problems.is_empty() { "" } else { "Error: " };
        let tone = if status == StatusCode::OK { "mild" } else { "" };
        let main = html! {
            p.back { a href="/" { "← All waiting questions" } }
            h1 { (title) }
            div id="notice" {
                @if let Some(notice) = &self.notice {
                    div.problems.(tone) role="alert" tabindex="-1" id="problems" autofocus { h2 { (notice.title) } p { (notice.text) } }
                    @if let Some(more) = &notice.more { (more) }
                }
            }
            @if !self.drawn.problems.is_empty() { (self.drawn.problems.summary()) }
            (facts(self.round, now))
            @if let Some(waited) = waited {
                p.patience { "Last time, " (words::line(&self.round.server)) " took its question back after " (words::duration(waited)) "." }
            }
            (calls(&self.round.calls))
            @if self.round.logical_operation_id.starts_with(LATE_PREFIX) {
                p.patience { "The server has given up waiting for now. Your answer is kept, and used when the call is made again." }
            }
            @if self.is_suggested {
                p.patience id="suggested" { "The form holds the answer that an earlier question got. Check it before you send it." }
            }
            (self.form())
        };
        let live = Some(self.round.round_id.to_string());
        let page = Page { title: format!("{prefix}{title}"), person: Some(person), place: Place::Waiting, live, main };
        Ok(page.respond(status))
    }

    fn form(&self) -> Markup {
        let several = self.requests.len() > 1;
        html! {
            form.answer id="answer" method="post" action=(format!("/rounds/{}", self.round.round_id)) novalidate data-answer {
                input type="hidden" name=(DIGEST) value=(self.round.digest);
                input type="hidden" name=(KEY) value=(self.key);
                (self.default_button())
                @for (index, (key, request)) in self.requests.iter().enumerate() {
                    @if several {
                        section.request aria-labelledby=(format!("r{index}-title")) {
                            h2 id=(format!("r{index}-title")) { (index + 1) " of " (self.requests.len()) ": " (words::line(key)) }
                            (asked(request, &self.round.server))
                            (self.decision(index, request))
                            (self.fields(index, request))
                            (self.reason(index, request))
                        }
                    } @else {
                        section.request aria-label="The question" {
                            (asked(request, &self.round.server))
                            (self.fields(index, request))
                            (self.drawn.errors(&action_id(index)))
                            (self.buttons(index, request))
                        }
                    }
                }
                @if several {
                    div.actions { button.primary type="submit" { "Send all answers" } }
                }
            }
        }
    }

    /// What Enter in a control does: browsers press a form's first button, which must be neither one that adds a row nor
    /// one that runs something.
    fn default_button(&self) -> Markup {
        let mut all = self.requests.iter();
        let (name, value, is_check) = match (all.next(), all.next()) {
            (Some((_, Request::Approval(_) | Request::Url(_))), None) => (Some(CHECK.to_owned()), Some("1"), true),
            (Some(_), None) => (Some(action_id(0)), Some("accept"), false),
            _ => (None, None, false),
        };
        html! {
            button.visually-hidden type="submit" tabindex="-1" aria-hidden="true" name=[name] value=[value] formnovalidate[is_check] {}
        }
    }

    /// Whether approving would run other arguments than were proposed.
    fn is_edited(&self, index: usize, request: &Request) -> bool {
        let Request::Approval(approval) = request else { return false };
        self.drawn.typed.is_some_and(|typed| matches!(edits::edited(index, approval, typed), Ok(Some(_))))
    }

    /// What a request is called on the wire; there the schemas stand as they were written.
    fn written(&self, index: usize) -> Option<&wire::Request> {
        self.round.requests.0.get(index).map(|(_, request)| request)
    }

    fn approval(&self, index: usize, approval: &Approval) -> Markup {
        let written = self.written(index);
        html! {
            @if let Some(input) = &approval.input {
                section.input aria-labelledby=(format!("r{index}-input")) {
                    h3 id=(format!("r{index}-input")) { "What you add to the call" }
                    (controls::part(&part_id(index, Part::Input), input.form().fields(), written.and_then(|request| request.schema.as_ref()), self.drawn))
                }
            }
            (edits::section(index, approval, written.and_then(|request| request.arguments_schema.as_ref()), self.drawn))
        }
    }

    fn fields(&self, index: usize, request: &Request) -> Markup {
        match request {
            Request::Form(form) => controls::form(index, form, self.drawn),
            Request::Choice(choice) => controls::choice(index, choice, "Your answer", self.drawn),
            Request::Text(_) => {
                let id = answer_id(index);
                html! {
                    div.field.(self.drawn.invalid(&id).map_or("", |_| "wrong")) {
                        label for=(id) { "Your answer" }
                        (self.drawn.errors(&id))
                        textarea id=(id) name=(id) rows="5" aria-required="true" aria-invalid=[self.drawn.invalid(&id)] aria-describedby=[self.drawn.described(&id, false)] {
                            (textarea(&self.drawn.text(&id, String::new)))
                        }
                    }
                }
            }
            Request::Approval(approval) => self.approval(index, approval),
            Request::Url(_) => html! {},
        }
    }

    /// One request alone: a button for each thing that can be done with it.
    fn buttons(&self, index: usize, request: &Request) -> Markup {
        let Deeds { send, decline, otherwise, .. } = deeds(request);
        let id = action_id(index);
        let send = if self.is_edited(index, request) { "Approve with the changes" } else { send };
        html! {
            div.actions { button.primary type="submit" id=(format!("{id}-0")) name=(id) value="accept" { (send) } }
            @if let Request::Approval(approval) = request { (allowing::offer(approval)) }
            section.otherwise aria-labelledby="otherwise" {
                h2 id="otherwise" { (otherwise) }
                (self.reason(index, request))
                div.actions {
                    button type="submit" name=(id) value="decline" formnovalidate { (decline) }
                    button.quiet type="submit" name=(id) value="cancel" formnovalidate { "Dismiss without deciding" }
                }
                p.hint { "“" (decline) "” tells the agent no. Dismissing tells it that nobody decided." }
            }
        }
    }

    /// Several requests: each has its own decision. What runs something or opens something is never decided beforehand.
    fn decision(&self, index: usize, request: &Request) -> Markup {
        let Deeds { accept, decline, .. } = deeds(request);
        let id = action_id(index);
        let is_harmless = !matches!(request, Request::Approval(_) | Request::Url(_));
        let options = [
            ("accept", accept, is_harmless),
            ("decline", decline, false),
            ("cancel", "Dismiss without deciding", false),
        ];
        html! {
            fieldset.field.decision.(self.drawn.invalid(&id).map_or("", |_| "wrong")) role="radiogroup" id=(id) aria-required="true" aria-invalid=[self.drawn.invalid(&id)] aria-describedby=[self.drawn.described(&id, false)] {
                legend { "What do you want to do?" }
                (self.drawn.errors(&id))
                @for (at, (value, said, by_default)) in options.into_iter().enumerate() {
                    @let own = format!("{id}-{at}");
                    div.option {
                        input type="radio" id=(own) name=(id) value=(value) checked[self.drawn.is_marked(&id, value, by_default)];
                        label for=(own) { (said) }
                    }
                }
            }
        }
    }

    fn reason(&self, index: usize, request: &Request) -> Markup {
        let id = reason_id(index);
        let said =
            if matches!(request, Request::Approval(_)) { "Reason, if you deny" } else { "Reason, if you decline" };
        html! {
            div.field.(self.drawn.invalid(&id).map_or("", |_| "wrong")) {
                label for=(id) { (said) " " span.need { "(optional)" } }
                (self.drawn.errors(&id))
                textarea id=(id) name=(id) rows="2" aria-invalid=[self.drawn.invalid(&id)] aria-describedby=[self.drawn.described(&id, false)] {
                    (textarea(&self.drawn.text(&id, String::new)))
                }
            }
        }
    }
}

/// What is said on buttons and beside radio buttons.
struct Deeds {
    /// On the button that accepts and sends.
    send: &'static str,
    accept: &'static str,
    decline: &'static str,
    /// Above the ways not to accept.
    otherwise: &'static str,
}

fn deeds(request: &Request) -> Deeds {
    let of = |send, accept, decline, otherwise| Deeds { send, accept, decline, otherwise };
    match request {
        Request::Form(_) | Request::Choice(_) | Request::Text(_) => {
            of("Send answer", "Answer", "Decline", "Or do not answer")
        }
        Request::Url(_) => of("I consent to open it", "I consent to open it", "Decline", "Or do not open it"),
        Request::Approval(_) => of("Approve", "Approve", "Deny", "Or do not approve"),
    }
}

/// Who asks, about what, since when and until when.
pub(super) fn facts(round: &Round, now: UnixMs) -> Markup {
    html! {
        dl.facts {
            dt { "Server" } dd { code { (words::line(&round.server)) } }
            dt { (words::operation(round.operation_kind)) } dd { code { (words::line(&round.operation_name)) } }
            dt { "Asked by" } dd { (words::who(&round.asked_by)) }
            dt { "Asked" } dd { (words::moment(round.created_at, now)) }
            @if let Some(deadline) = round.deadline { dt { "Answer by" } dd { (words::moment(deadline, now)) } }
            dt { "Part of" } dd { a href=(format!("/executions/{}", round.execution_id)) { "execution" } }
        }
    }
}

/// The calls that the round may be about, with their arguments as they would run.
pub(super) fn calls(calls: &[Call]) -> Markup {
    html! {
        @if !calls.is_empty() {
            section.calls aria-labelledby="calls" {
                h2 id="calls" { @if calls.len() == 1 { "The call it is about" } @else { "One of these calls" } }
                @for call in calls {
                    p.call-name { code { (words::line(&call.name)) } }
                    @if let Some(arguments) = &call.arguments {
                        pre tabindex="0" aria-label="Arguments" { code { (words::pretty(arguments)) } }
                    }
                }
            }
        }
    }
}

/// What the asker says, set apart from our own words, and whatever belongs to it.
pub(super) fn asked(request: &Request, server: &str) -> Markup {
    let message = |text: &str| {
        html! {
            figure.message {
                figcaption { (words::line(server)) " says" }
                blockquote.multiline { (words::lines(text)) }
            }
        }
    };
    match request {
        Request::Form(form) => message(&form.message),
        Request::Choice(choice) => message(&choice.question),
        Request::Text(text) => message(&text.question),
        Request::Url(consent) => html! {
            (message(&consent.message))
            (address(&consent.url))
        },
        Request::Approval(approval) => card::call(approval, server),
    }
}

/// A URL, whole, its host apart; a link only where it is one of the web's. Nothing fetches it.
fn address(url: &ConsentUrl) -> Markup {
    let (before, host, after) = around_host(url);
    html! {
        div.address {
            @if let Some(host) = url.host() { p.host { "Host: " strong { (words::line(host)) } } }
            p.url { code { (words::line(before)) b { (words::line(host)) } (words::line(after)) } }
            @for warning in url.warnings() { p.warning { strong { "Warning: " } (warning.message()) } }
            @if url.is_web() {
                p { a href=(url.as_str()) rel="noreferrer noopener" target="_blank" { "Open it in a new tab" } }
            }
            p.hint { "Consent is recorded; Sayso opens and fetches nothing. What you do there stays between you and that site." }
        }
    }
}

/// The URL's text before its host, the host, and what follows.
fn around_host(url: &ConsentUrl) -> (&str, &str, &str) {
    let whole = url.as_str();
    let parts = || {
        let host = url.host()?;
        let start = whole.find("://")? + 3;
        let end = whole.get(start..)?.find(['/', '?', '#']).map_or(whole.len(), |at| start + at);
        let at = whole.get(start..end)?.rfind('@').map_or(start, |at| start + at + 1);
        let rest = whole.get(at..)?.strip_prefix(host)?;
        Some((whole.get(..at)?, host, rest))
    };
    parts().unwrap_or((whole, "", ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_stands_apart_wherever_it_is_repeated() {
        for (text, before, host) in [
            ("https://example.com/a?b=example.com", "https://", "example.com"),
            ("https://evil.example@evil.example:8443/", "https://evil.example@", "evil.example"),
            ("https://[::1]:80/", "https://", "[::1]"),
            ("mailto:ada@example.com", "mailto:ada@example.com", ""),
        ] {
            let url = ConsentUrl::parse("/url", text).unwrap();
            let (first, middle, last) = around_host(&url);
            assert_eq!((first, middle), (before, host));
            assert_eq!(format!("{first}{middle}{last}"), text);
        }
    }
}

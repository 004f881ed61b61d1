//! A call that waits for approval: everything that a person needs to decide about it.

use maud::{Markup, html};
use sayso_core::policy::Effect;
use sayso_core::request::Approval;

use super::words;

/// The whole card, except for what is to be filled in.
pub(super) fn call(approval: &Approval, server: &str) -> Markup {
    html! {
        div.approval {
            p { "May this run, exactly as shown?" }
            p.call-name { code { (words::line(&approval.tool)) } }
            @if let Some(description) = &approval.description {
                figure.message {
                    figcaption { "What " (words::line(server)) " says of this tool" }
                    blockquote.multiline { (words::lines(description)) }
                }
            }
            (arguments(approval))
            (risks(&approval.effects))
            (preview(approval, server))
            (why(approval))
        }
    }
}

/// The arguments, laid out, every number and escape as it was written.
pub(super) fn arguments(approval: &Approval) -> Markup {
    html! { pre tabindex="0" role="group" aria-label="Arguments" { code { (words::pretty(&approval.arguments)) } } }
}

/// What the call may do, a sentence each.
pub(super) fn risks(effects: &[Effect]) -> Markup {
    html! {
        ul.risks aria-label="What it may do" {
            @if effects.is_empty() { li.risk { (Effect::NOTHING_KNOWN) } }
            @for effect in effects { li.risk.(words::effect_tone(*effect)) { (effect.in_words()) } }
        }
    }
}

/// What would happen, in the words of whoever asks.
pub(super) fn preview(approval: &Approval, server: &str) -> Markup {
    html! {
        @if !approval.preview.is_empty() {
            figure.message {
                figcaption { "Preview, in the words of " (words::line(server)) }
                ul { @for line in &approval.preview { li.multiline { (words::lines(line)) } } }
            }
        }
    }
}

/// Why it is asked, and for what a grant would be.
fn why(approval: &Approval) -> Markup {
    let has_facts = approval.rule.is_some() || approval.session.is_some();
    html! {
        @if has_facts {
            dl.facts {
                @if let Some(rule) = &approval.rule { dt { "Asked by rule" } dd { code { (words::line(rule)) } } }
                @if let Some(session) = &approval.session { dt { "Session" } dd { code { (words::line(session)) } } }
            }
        }
        @if approval.require_second_person {
            p.warning { "Whoever started this work may deny it, but somebody else must approve it." }
        }
    }
}

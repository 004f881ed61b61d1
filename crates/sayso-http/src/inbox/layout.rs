//! The frame of every page.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use maud::{DOCTYPE, Markup, html};
use sayso::Principal;

use super::{assets, words};

/// Where a page belongs in the navigation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Waiting,
    History,
    Grants,
    Elsewhere,
}

/// A page of the inbox.
pub(super) struct Page<'p> {
    /// The title, in front of the product's name.
    pub(super) title: String,
    /// Whose session it is drawn for.
    pub(super) person: Option<&'p Principal>,
    pub(super) place: Place,
    /// What the page's script keeps up to date: `list`, or a round's id.
    pub(super) live: Option<String>,
    pub(super) main: Markup,
}

impl Page<'_> {
    pub(super) fn respond(self, status: StatusCode) -> Response {
        let body = self.document().into_string();
        (status, [(header::CONTENT_TYPE, "text/html; charset=utf-8")], body).into_response()
    }

    fn document(&self) -> Markup {
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (self.title) " · Sayso" }
                    link rel="icon" type="image/svg+xml" href=(assets::ICON.path());
                    link rel="stylesheet" href=(assets::STYLE.path());
                    script defer src=(assets::SCRIPT.path()) {}
                }
                body {
                    a.skip href="#main" { "Skip to the content" }
                    (self.header())
                    main id="main" tabindex="-1" data-live=[self.live.as_deref()] { (self.main) }
                    p.announce id="announce" role="status" aria-live="polite" {}
                    footer { p { "Sayso " (env!("CARGO_PKG_VERSION")) } }
                }
            }
        }
    }

    fn header(&self) -> Markup {
        let current = |place| (self.place == place).then_some("page");
        html! {
            header.top {
                div.bar {
                    a.brand href="/" { span.mark aria-hidden="true" {} "Sayso" }
                    @if let Some(person) = self.person {
                        nav aria-label="Inbox" {
                            ul {
                                li { a href="/" aria-current=[current(Place::Waiting)] { "Waiting" } }
                                li { a href="/history" aria-current=[current(Place::History)] { "History" } }
                                li { a href="/grants" aria-current=[current(Place::Grants)] { "Grants" } }
                            }
                        }
                        form.account method="post" action="/logout" {
                            span.whoami { span.visually-hidden { "Logged in as " } (words::who(person)) }
                            button.quiet type="submit" { "Log out" }
                        }
                    }
                }
            }
        }
    }
}

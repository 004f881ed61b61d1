//! Where paths get their handlers: the one place, so that what is served can be compared with what is documented.

use axum::Router;
use axum::handler::Handler;
use axum::routing::{MethodRouter, delete, get, post};

use crate::app::Shared;

/// Routes, and a list of them.
#[derive(Default)]
pub(crate) struct Routes {
    router: Router<Shared>,
    listed: Vec<(&'static str, &'static str)>,
}

impl Routes {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn get<H: Handler<T, Shared>, T: 'static>(self, path: &'static str, handler: H) -> Self {
        self.on("get", path, path, get(handler))
    }

    pub(crate) fn post<H: Handler<T, Shared>, T: 'static>(self, path: &'static str, handler: H) -> Self {
        self.on("post", path, path, post(handler))
    }

    pub(crate) fn delete<H: Handler<T, Shared>, T: 'static>(self, path: &'static str, handler: H) -> Self {
        self.on("delete", path, path, delete(handler))
    }

    /// A path that is only known once the program runs, and is listed by its pattern.
    pub(crate) fn get_at<H: Handler<T, Shared>, T: 'static>(
        self,
        pattern: &'static str,
        path: &str,
        handler: H,
    ) -> Self {
        self.on("get", pattern, path, get(handler))
    }

    fn on(mut self, method: &'static str, pattern: &'static str, path: &str, handler: MethodRouter<Shared>) -> Self {
        self.listed.push((method, pattern));
        Self { router: self.router.route(path, handler), listed: self.listed }
    }

    pub(crate) fn merge(mut self, other: Self) -> Self {
        self.listed.extend(other.listed);
        Self { router: self.router.merge(other.router), listed: self.listed }
    }

    pub(crate) fn into_router(self) -> Router<Shared> {
        self.router
    }

    /// Every method and path, as often as it was added.
    #[cfg(test)]
    pub(crate) fn listed(&self) -> &[(&'static str, &'static str)] {
        &self.listed
    }
}

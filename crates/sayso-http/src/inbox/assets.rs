//! The one style sheet, the one script and the icon: part of the binary, named by their contents.

use std::sync::LazyLock;

use axum::http::header;
use axum::response::IntoResponse;
use sayso::Digest;

use crate::routes::Routes;

/// A file that never changes under its path.
pub(super) struct Asset {
    text: &'static str,
    media_type: &'static str,
    path: String,
}

impl Asset {
    fn new(text: &'static str, stem: &str, extension: &str, media_type: &'static str) -> Self {
        let digest = Digest::of_text(text).to_string();
        let tag = digest.get(7..19).unwrap_or_default();
        Self { text, media_type, path: format!("/assets/{stem}-{tag}.{extension}") }
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }
}

pub(super) static STYLE: LazyLock<Asset> =
    LazyLock::new(|| Asset::new(include_str!("../../assets/inbox.css"), "inbox", "css", "text/css; charset=utf-8"));
pub(super) static SCRIPT: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new(include_str!("../../assets/inbox.js"), "inbox", "js", "text/javascript; charset=utf-8")
});
pub(super) static ICON: LazyLock<Asset> =
    LazyLock::new(|| Asset::new(include_str!("../../assets/icon.svg"), "icon", "svg", "image/svg+xml"));

const FOREVER: &str = "public, max-age=31536000, immutable";

pub(super) fn routes() -> Routes {
    let serve = |routes: Routes, asset: &'static Asset| {
        let headers = [(header::CONTENT_TYPE, asset.media_type), (header::CACHE_CONTROL, FOREVER)];
        routes.get_at("/assets/{file}", asset.path(), move || async move { (headers, asset.text).into_response() })
    };
    let all: [&'static Asset; 3] = [&STYLE, &SCRIPT, &ICON];
    all.into_iter().fold(Routes::new(), serve)
}

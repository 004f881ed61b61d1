//! What is refused before any handler sees it, and what every answer carries.

use axum::http::Method;
use sayso_http::ServeOptions;

use crate::served::{Served, call, get, post};

#[tokio::test]
async fn a_host_that_is_not_ours_is_refused() {
    let options = ServeOptions { public_url: Some("https://sayso.example.com".to_owned()), ..ServeOptions::default() };
    let served = Served::with(options).await;
    for host in ["localhost", "127.0.0.1:7717", "[::1]:7717", "sayso.example.com"] {
        assert_eq!(get("/healthz").header("host", host).send(&served).await.status, 200, "{host}");
    }
    for host in ["evil.example", "sayso.example.com.evil.example", "192.168.0.1", ""] {
        get("/v1/rounds").header("host", host).bearer(&served.person).send(&served).await.problem(403, "forbidden");
        get("/").header("host", host).session(&served.session).send(&served).await.page(403);
    }
}

#[tokio::test]
async fn unsafe_requests_of_other_sites_are_refused() {
    let served = Served::new().await;
    let own = "http://localhost:7717";
    for (site, origin, is_fine) in [
        (None, None, true),
        (None, Some(own), true),
        (None, Some("null"), false),
        (None, Some("http://localhost:8080"), false),
        (None, Some("https://evil.example"), false),
        (Some("same-origin"), None, true),
        (Some("same-origin"), Some(own), true),
        (Some("same-origin"), Some("null"), true),
        (Some("same-origin"), Some("https://evil.example"), false),
        (Some("none"), None, true),
        (Some("same-site"), Some(own), false),
        (Some("cross-site"), None, false),
        (Some("cross-site"), Some("null"), false),
        (Some("cross-site"), Some(own), false),
    ] {
        let dressed = |mut call: crate::served::Call| {
            if let Some(site) = site {
                call = call.header("sec-fetch-site", site);
            }
            if let Some(origin) = origin {
                call = call.header("origin", origin);
            }
            call
        };
        let round = served.ask_address().await;
        let cancel = format!("/v1/executions/{}/cancel", round.execution_id);
        let reply = dressed(post(&cancel)).session(&served.session).send(&served).await;
        assert_eq!(reply.status, if is_fine { 200 } else { 403 }, "{site:?} {origin:?}");
        let reply =
            dressed(post("/login")).header("content-type", "application/x-www-form-urlencoded").send(&served).await;
        assert_eq!(reply.status, if is_fine { 401 } else { 403 }, "{site:?} {origin:?}");
        assert_eq!(dressed(get("/v1/rounds")).bearer(&served.person).send(&served).await.status, 200);
    }
}

#[tokio::test]
async fn every_answer_carries_the_headers_that_protect_it() {
    let served = Served::new().await;
    let round = format!("/rounds/{}", served.ask_address().await.round_id);
    for path in ["/", "/history", "/login", "/nowhere", "/v1/rounds", "/v1/nothing", "/healthz", &round] {
        let reply = get(path).session(&served.session).send(&served).await;
        let policy = reply.header("content-security-policy");
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "form-action 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
        ] {
            assert!(policy.contains(part), "{path}: {policy}");
        }
        assert!(!policy.contains("unsafe"));
        assert_eq!(reply.header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(reply.header("referrer-policy"), "same-origin", "{path}");
        assert_eq!(reply.header("cache-control"), "no-store", "{path}");
        assert!(reply.headers.keys().all(|name| !name.as_str().starts_with("access-control")));
    }
}

#[tokio::test]
async fn assets_are_kept_for_ever_under_the_name_of_their_contents() {
    let served = Served::new().await;
    let page = get("/login").send(&served).await;
    for kind in ["css", "js", "svg"] {
        let end = page.text.find(&format!(".{kind}\"")).unwrap();
        let start = page.text[..end].rfind('"').unwrap() + 1;
        let asset = get(&page.text[start..end + kind.len() + 1]).send(&served).await;
        assert_eq!(asset.status, 200);
        assert!(asset.header("cache-control").contains("immutable"));
        assert!(!asset.text.is_empty());
    }
}

#[tokio::test]
async fn reading_changes_nothing() {
    let served = Served::new().await;
    let round = served.ask_address().await;
    let before = served.sayso.last_event().await.unwrap();
    let login = served.sayso.new_login(&crate::served::admin()).await.unwrap();
    let paths = [
        "/".to_owned(),
        "/history".to_owned(),
        "/login".to_owned(),
        format!("/login?token={}", login.secret),
        format!("/rounds/{}", round.round_id),
        format!("/executions/{}", round.execution_id),
        "/v1/rounds".to_owned(),
        format!("/v1/rounds/{}", round.round_id),
        format!("/v1/rounds/{}/responses", round.round_id),
        "/v1/tokens".to_owned(),
    ];
    let after_login = served.sayso.last_event().await.unwrap();
    assert!(after_login > before);
    for path in paths {
        for method in [Method::GET, Method::HEAD] {
            assert!(call(method, &path).session(&served.session).send(&served).await.status.is_success(), "{path}");
        }
    }
    assert_eq!(served.sayso.last_event().await.unwrap(), after_login);
    for path in ["/logout", "/v1/rounds/x/collect"] {
        assert_eq!(get(path).session(&served.session).send(&served).await.status, 405);
    }
}

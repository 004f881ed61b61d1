//! A router over a fresh store, with one credential of each kind.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Method, Request, StatusCode};
use sayso::wire::{NewToken, NewTokenKind, Request as Asked, RequestKind, Round};
use sayso::{Ask, Json, Options, Principal, Sayso};
use sayso_http::ServeOptions;
use serde_json::Value;
use tower::ServiceExt;

/// Small enough to fill in, with one field of a wrong kind to be had.
pub const ADDRESS: &str = r#"{"type":"object","properties":{"street":{"type":"string","title":"Street"},"floor":{"type":"integer","title":"Floor","minimum":0}},"required":["street"]}"#;

#[derive(Clone)]
pub struct Served {
    pub sayso: Sayso,
    pub router: Router,
    pub agent: String,
    pub other_agent: String,
    pub person: String,
    pub session: String,
    pub folder: Arc<tempfile::TempDir>,
}

pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub text: String,
}

impl Reply {
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// The body, which must be a problem with this status and code.
    #[track_caller]
    pub fn problem(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.text);
        assert_eq!(self.header("content-type"), "application/problem+json");
        let problem = self.json();
        assert_eq!(problem["code"], code, "{problem}");
        assert_eq!(problem["status"], status);
        assert_eq!(problem["type"], format!("https://sayso.dev/errors/{code}"));
        assert!(problem["title"].is_string() && problem["detail"].is_string());
        problem
    }

    #[track_caller]
    pub fn ok(&self) -> Value {
        assert!(self.status.is_success(), "{} {}", self.status, self.text);
        self.json()
    }

    #[track_caller]
    pub fn page(&self, status: u16) -> &str {
        assert_eq!(self.status.as_u16(), status, "{}", self.text);
        assert_eq!(self.header("content-type"), "text/html; charset=utf-8");
        &self.text
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }
}

/// One request being put together.
pub struct Call {
    request: axum::http::request::Builder,
    body: Body,
}

pub fn call(method: Method, path: &str) -> Call {
    Call { request: Request::builder().method(method).uri(path), body: Body::empty() }
}

pub fn get(path: &str) -> Call {
    call(Method::GET, path)
}

pub fn post(path: &str) -> Call {
    call(Method::POST, path)
}

impl Call {
    pub fn header(self, name: &str, value: &str) -> Self {
        Self { request: self.request.header(name, value), ..self }
    }
    pub fn bearer(self, token: &str) -> Self {
        self.header("authorization", &format!("Bearer {token}"))
    }
    pub fn session(self, secret: &str) -> Self {
        self.header("cookie", &format!("theme=dark; sayso_session={secret}"))
    }
    pub fn key(self, key: &str) -> Self {
        self.header("idempotency-key", key)
    }
    pub fn json(self, body: impl ToString) -> Self {
        Self { body: Body::from(body.to_string()), ..self.header("content-type", "application/json") }
    }
    pub fn form(self, pairs: &[(&str, &str)]) -> Self {
        let mut body = form_urlencoded::Serializer::new(String::new());
        body.extend_pairs(pairs);
        let own =
            self.header("content-type", "application/x-www-form-urlencoded").header("sec-fetch-site", "same-origin");
        Self { body: Body::from(body.finish()), ..own }
    }
    pub fn body(self, body: Body) -> Self {
        Self { body, ..self }
    }
    pub fn build(self) -> Request<Body> {
        let has_host = self.request.headers_ref().is_some_and(|headers| headers.contains_key("host"));
        let request = if has_host { self.request } else { self.request.header("host", "localhost:7717") };
        request.body(self.body).unwrap()
    }
    pub async fn send(self, served: &Served) -> Reply {
        let response = served.router.clone().oneshot(self.build()).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, 8 << 20).await.unwrap();
        Reply { status: parts.status, headers: parts.headers, text: String::from_utf8(bytes.to_vec()).unwrap() }
    }
}

pub fn admin() -> Principal {
    Principal::person("local:ada")
}

impl Served {
    pub async fn new() -> Self {
        Self::with(ServeOptions::default()).await
    }

    pub async fn with(options: ServeOptions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let sayso = Sayso::open(Options::at(folder.path())).await.unwrap();
        let token = async |kind, name: &str| {
            let new = NewToken { kind, name: name.to_owned() };
            sayso.new_token(&admin(), new).await.unwrap().token.secret.unwrap()
        };
        Self {
            agent: token(NewTokenKind::Agent, "claude").await,
            other_agent: token(NewTokenKind::Agent, "codex").await,
            person: token(NewTokenKind::Person, "grace").await,
            session: sayso.use_login(&sayso.new_login(&admin()).await.unwrap().secret).await.unwrap(),
            router: sayso_http::router(sayso.clone(), options),
            folder: Arc::new(folder),
            sayso,
        }
    }

    /// Asks as the agent `claude`.
    pub async fn ask(&self, requests: Vec<(&str, Asked)>) -> Round {
        let requests = requests.into_iter().map(|(key, request)| (key.to_owned(), request)).collect();
        let ask = Ask {
            server: Some("shipping".to_owned()),
            operation_name: Some("book_shipment".to_owned()),
            requests: sayso::wire::Keyed(requests),
            ..Ask::default()
        };
        self.sayso.desk(Principal::agent("claude")).ask(ask, None).await.unwrap()
    }

    pub async fn ask_address(&self) -> Round {
        self.ask(vec![("address", form("Where to?", ADDRESS))]).await
    }

    pub async fn submit(&self, round: &Round, pairs: &[(&str, &str)]) -> Reply {
        let digest = round.digest.to_string();
        let hidden = [("digest", digest.as_str()), ("key", "inbox-1")];
        let pairs: Vec<_> = hidden.into_iter().chain(pairs.iter().copied()).collect();
        post(&format!("/rounds/{}", round.round_id)).session(&self.session).form(&pairs).send(self).await
    }

    pub async fn page(&self, path: &str) -> Reply {
        get(path).session(&self.session).send(self).await
    }
}

pub fn form(message: &str, schema: &str) -> Asked {
    Asked::form(message, Json::parse(schema).unwrap())
}

pub fn url(address: &str) -> Asked {
    Asked { message: Some("Connect".to_owned()), url: Some(address.to_owned()), ..Asked::empty(RequestKind::Url) }
}

pub fn approval() -> Asked {
    let arguments = Json::parse(r#"{"repo":"acme/api"}"#).ok();
    Asked { tool: Some("github:issues.create".to_owned()), arguments, ..Asked::empty(RequestKind::Approval) }
}

pub fn text() -> Asked {
    Asked { question: Some("Anything else?".to_owned()), ..Asked::empty(RequestKind::Text) }
}

pub fn choice(multi_select: bool, labels: &[&str]) -> Asked {
    let option = |label: &&str| sayso::wire::ChoiceOption { label: (*label).to_owned(), description: None };
    Asked {
        question: Some("Where?".to_owned()),
        multi_select: Some(multi_select),
        options: Some(labels.iter().map(option).collect()),
        ..Asked::empty(RequestKind::Choice)
    }
}

/// An answer of the API that accepts the address.
pub fn street(round: &Round, street: &str) -> Value {
    serde_json::json!({"digest": round.digest, "responses": {"address": {"action": "accept", "content": {"street": street}}}})
}

//! Who is calling. It is always the credential's word, never a body's.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Redirect, Response};
use sayso::{Channel, LocalDesk, LocalPeople, Principal, Sayso};
use sayso_core::error::Error;

use crate::app::Shared;
use crate::inbox;
use crate::problem::Refusal;

/// The cookie of a browser's session.
const SESSION_COOKIE: &str = "sayso_session";

/// Thirty days, as long as the session itself is good for.
const SESSION_SECONDS: i64 = sayso_core::limits::SESSION_MS / 1000;

const NO_CREDENTIAL: Error =
    Error::Unauthenticated("send a token as `Authorization: Bearer …`; `sayso token new` makes one");

enum Credential {
    Token(String),
    Session(String),
}

impl Credential {
    fn of(headers: &HeaderMap) -> Option<Self> {
        let bearer = |value: &str| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| Self::Token(token.trim().to_owned()))
        };
        match headers.get(header::AUTHORIZATION) {
            Some(value) => value.to_str().ok().and_then(bearer),
            None => session_secret(headers).map(Self::Session),
        }
    }

    async fn principal(&self, sayso: &Sayso) -> Result<Principal, Error> {
        match self {
            Self::Token(secret) => sayso.recognize(secret).await,
            Self::Session(secret) => sayso.authenticate_session(secret).await,
        }
    }

    /// As it is stored at this moment.
    async fn principal_now(&self, sayso: &Sayso) -> Result<Principal, Error> {
        match self {
            Self::Token(secret) => sayso.authenticate(secret).await,
            Self::Session(_) => self.principal(sayso).await,
        }
    }
}

/// Whoever calls the API: by a token, or from the inbox's own pages by their session.
pub(crate) struct Caller {
    pub(crate) principal: Principal,
    credential: Credential,
}

impl Caller {
    pub(crate) fn people(&self, app: &Shared) -> LocalPeople {
        let channel = match self.credential {
            Credential::Token(_) => Channel::Http,
            Credential::Session(_) => Channel::Inbox,
        };
        app.sayso.people_as(self.principal.clone(), channel)
    }

    pub(crate) fn desk(&self, app: &Shared) -> LocalDesk {
        app.sayso.desk(self.principal.clone())
    }

    /// The worker of this name that the caller runs; without a name a new one.
    pub(crate) fn worker(&self, app: &Shared, owner_id: Option<&str>) -> Result<LocalDesk, Error> {
        match owner_id {
            Some(owner_id) => app.sayso.worker(self.principal.clone(), owner_id),
            None => app.sayso.new_worker(self.principal.clone()),
        }
    }

    /// Whether the credential is still good, for what stays open: it is asked when something happened, and that may be the
    /// credential's end.
    pub(crate) async fn is_still_good(&self, sayso: &Sayso) -> bool {
        self.credential.principal_now(sayso).await.is_ok_and(|principal| principal == self.principal)
    }
}

impl FromRequestParts<Shared> for Caller {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Self, Refusal> {
        let credential = Credential::of(&parts.headers).ok_or(NO_CREDENTIAL)?;
        let principal = credential.principal(&app.sayso).await?;
        Ok(Self { principal, credential })
    }
}

/// A person with a session, on a page of the inbox. Without one, a page that is read leads to the login.
pub(crate) struct Session {
    pub(crate) person: Principal,
}

impl Session {
    pub(crate) fn people(&self, app: &Shared) -> LocalPeople {
        app.sayso.people_as(self.person.clone(), Channel::Inbox)
    }

    /// The person whose session the cookie names, if it is good.
    pub(crate) async fn find(headers: &HeaderMap, sayso: &Sayso) -> Result<Option<Self>, Error> {
        let Some(secret) = session_secret(headers) else { return Ok(None) };
        match sayso.authenticate_session(&secret).await {
            Ok(person) => Ok(Some(Self { person })),
            Err(Error::Unauthenticated(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl FromRequestParts<Shared> for Session {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Self, Response> {
        match Self::find(&parts.headers, &app.sayso).await {
            Ok(Some(session)) => Ok(session),
            Ok(None) => Err(Redirect::to("/login").into_response()),
            Err(error) => Err(inbox::error_page(&error.into(), None)),
        }
    }
}

/// The secret of the session's cookie.
pub(crate) fn session_secret(headers: &HeaderMap) -> Option<String> {
    let cookies = headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == SESSION_COOKIE).map(|(_, value)| value.to_owned())
}

/// Sets the session's cookie, or with none takes it away.
pub(crate) fn session_cookie(secret: Option<&str>, is_https: bool) -> String {
    let (value, age) = secret.map_or(("", 0), |secret| (secret, SESSION_SECONDS));
    let secure = if is_https { "; Secure" } else { "" };
    format!("{SESSION_COOKIE}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={age}{secure}")
}

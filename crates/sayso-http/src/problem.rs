//! Errors as callers receive them: RFC 9457 problems with the codes of the whole house.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use sayso::wire::Problem;
use sayso_core::error::Error;
use sayso_core::id::RoundId;

/// Why a request was not answered. Its problem never holds a value that somebody typed.
pub(crate) struct Refusal(pub(crate) Box<Problem>);

impl Refusal {
    pub(crate) fn about(error: &Error, round: RoundId) -> Self {
        Self(Box::new(Problem::new(error, Some(round))))
    }

    /// The route is known, the method is not. The code is that of an unknown route; the status says more.
    pub(crate) fn method() -> Self {
        let problem = Problem::new(&Error::NotFound("method on this route"), None);
        Self(Box::new(Problem {
            status: StatusCode::METHOD_NOT_ALLOWED.as_u16(),
            title: "Not with this method".to_owned(),
            ..problem
        }))
    }

    /// The body is of a type that is not read here.
    pub(crate) fn media_type(wanted: &str) -> Self {
        let problem = Problem::new(&Error::field("/Content-Type", format!("must be {wanted}")), None);
        Self(Box::new(Problem { status: StatusCode::UNSUPPORTED_MEDIA_TYPE.as_u16(), ..problem }))
    }

    pub(crate) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self(Box::new(Problem::new(&error, None)))
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = self.status();
        // A problem is texts and numbers: writing it cannot fail.
        let body = serde_json::to_string(&self.0).unwrap_or_default();
        let mut response = (status, [(header::CONTENT_TYPE, "application/problem+json")], body).into_response();
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

use std::net::IpAddr;
use std::time::Duration;

use axum::http::{HeaderValue, Uri};
use sayso_core::error::Error;

/// How a server is reached.
pub struct ClientOptions {
    server: String,
    token: String,
    anywhere: bool,
    pub(super) renew_every: Option<Duration>,
    pub(super) repeat_for: Duration,
}

/// How long a call is repeated while there is no server: long enough for a restart, short enough for an agent that is
/// better told "unavailable".
const REPEAT_FOR: Duration = Duration::from_secs(5);

/// The token is a capability: it is never printed.
impl std::fmt::Debug for ClientOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientOptions").field("server", &self.server).finish_non_exhaustive()
    }
}

impl ClientOptions {
    /// The server at `server`, such as `http://127.0.0.1:7717`, with the token of an agent, or of a person for [`super::PeopleClient`].
    pub fn new(server: impl Into<String>, token: impl Into<String>) -> Self {
        Self { server: server.into(), token: token.into(), anywhere: false, renew_every: None, repeat_for: REPEAT_FOR }
    }

    /// Also speaks unencrypted to other machines. Whoever is on the way can read the token and every answer.
    pub fn unencrypted_to_anywhere(self) -> Self {
        Self { anywhere: true, ..self }
    }

    /// Renews the lease this often; by default as the server says.
    pub fn renew_every(self, every: Duration) -> Self {
        Self { renew_every: Some(every), ..self }
    }

    /// Repeats a call for this long while there is no server; by default for 5 s. A wait goes on until it is over.
    pub fn repeat_for(self, time: Duration) -> Self {
        Self { repeat_for: time, ..self }
    }

    /// Host and port of the server.
    pub(super) fn address(&self) -> Result<String, Error> {
        let refuse = |message: &str| Err(Error::field("/server", message));
        let Ok(uri) = self.server.parse::<Uri>() else { return refuse("must be a URL such as http://127.0.0.1:7717") };
        if uri.scheme_str() != Some("http") {
            return refuse(
                "must begin with http://; for a server that speaks TLS, let a tunnel to it listen on this machine",
            );
        }
        let (Some(host), Some(authority)) = (uri.host(), uri.authority()) else {
            return refuse("must name a host");
        };
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() || authority.as_str().contains('@') {
            return refuse("must be a scheme, a host and a port, and nothing else");
        }
        if !self.anywhere && !is_this_machine(host) {
            return refuse(
                "must be on this machine: the traffic is not encrypted, and it carries the token and answers",
            );
        }
        Ok(format!("{host}:{}", uri.port_u16().unwrap_or(80)))
    }

    pub(super) fn credential(&self) -> Result<HeaderValue, Error> {
        let mut value = HeaderValue::try_from(format!("Bearer {}", self.token))
            .map_err(|_| Error::Unauthenticated("the token has characters that no token has"))?;
        value.set_sensitive(true);
        Ok(value)
    }
}

fn is_this_machine(host: &str) -> bool {
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_an_address_of_this_machine_unless_somebody_says_so() {
        let address = |server: &str| ClientOptions::new(server, "t").address().ok();
        assert_eq!(address("http://127.0.0.1:7717").as_deref(), Some("127.0.0.1:7717"));
        assert_eq!(address("http://localhost/").as_deref(), Some("localhost:80"));
        assert_eq!(address("http://[::1]:8080").as_deref(), Some("[::1]:8080"));
        for refused in [
            "",
            "127.0.0.1:7717",
            "https://127.0.0.1:7717",
            "http://sayso.example.com",
            "http://10.0.0.7:7717",
            "http://127.0.0.1:7717/inbox",
            "http://127.0.0.1:7717/?a=b",
            "http://ada@127.0.0.1:7717",
            "http://localhost.example.com",
        ] {
            assert_eq!(address(refused), None, "{refused}");
        }
        let anywhere = ClientOptions::new("http://10.0.0.7:7717", "t").unencrypted_to_anywhere();
        assert_eq!(anywhere.address().ok().as_deref(), Some("10.0.0.7:7717"));
    }

    #[test]
    fn a_token_is_never_printed() {
        let options = ClientOptions::new("http://localhost", "sayso_agent_s3cret");
        assert!(!format!("{options:?} {:?}", options.credential()).contains("s3cret"));
    }
}

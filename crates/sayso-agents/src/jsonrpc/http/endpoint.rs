use std::net::IpAddr;

use hyper::Uri;
use hyper::header::{HeaderName, HeaderValue};
use sayso::Error;
use sayso::kit::HttpServer;

use super::session::{self, Sender};
use crate::jsonrpc::{Conversation, Transport};

/// Headers that are the transport's own.
const OWN_HEADERS: [&str; 12] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "expect",
    "host",
    "last-event-id",
    "mcp-protocol-version",
    "mcp-session-id",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// Where a server is reached over HTTP, and what goes with every request to it.
#[derive(Clone)]
pub struct Endpoint {
    /// Host and port.
    pub(super) address: String,
    pub(super) host: HeaderValue,
    /// Path and query.
    pub(super) target: Uri,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
}

/// Headers and query may carry a key: they are not printed.
impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").field("address", &self.address).finish_non_exhaustive()
    }
}

fn refuse<T>(server: &HttpServer, words: &str) -> Result<T, Error> {
    Err(Error::Model(format!("{}: {words}", server.name)))
}

impl Endpoint {
    /// The endpoint of `server`. One that cannot be reached from here is an [`Error::Model`].
    pub fn new(server: &HttpServer) -> Result<Self, Error> {
        let Ok(uri) = server.url.parse::<Uri>() else {
            return refuse(server, "its URL must be one such as http://127.0.0.1:3001/mcp");
        };
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => {
                return refuse(server, "https cannot be spoken here; let a tunnel to it listen on this machine");
            }
            _ => return refuse(server, "its URL must begin with http://"),
        }
        let (Some(host), Some(authority), Some(target)) = (uri.host(), uri.authority(), uri.path_and_query()) else {
            return refuse(server, "its URL must name a host");
        };
        if host.is_empty() || authority.as_str().contains('@') {
            return refuse(server, "its URL must name a host and no user; credentials go into a header");
        }
        if !server.allow_plain_http && !is_this_machine(host) {
            return refuse(
                server,
                "its URL must be on this machine, as the traffic is not encrypted; allow_plain_http takes any other",
            );
        }
        let Ok(host_value) = HeaderValue::from_str(authority.as_str()) else {
            return refuse(server, "its URL must name a host");
        };
        Ok(Self {
            address: format!("{host}:{}", uri.port_u16().unwrap_or(80)),
            host: host_value,
            target: Uri::from(target.clone()),
            headers: server.headers.iter().map(|header| read_header(server, header)).collect::<Result<_, _>>()?,
        })
    }
}

fn read_header(server: &HttpServer, header: &sayso::kit::HttpHeader) -> Result<(HeaderName, HeaderValue), Error> {
    let Ok(name) = HeaderName::from_bytes(header.name.as_bytes()) else {
        return refuse(server, "a header has a name that no header has");
    };
    if OWN_HEADERS.contains(&name.as_str()) {
        return refuse(server, &format!("the header {name} is set by the transport"));
    }
    let Ok(mut value) = HeaderValue::from_str(&header.value) else {
        return refuse(server, &format!("the header {name} has characters that no header has"));
    };
    value.set_sensitive(true);
    Ok((name, value))
}

fn is_this_machine(host: &str) -> bool {
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

impl Transport for Endpoint {
    fn open(&self) -> Result<Conversation, String> {
        let (sender, receiver) = session::begin(self.clone());
        Ok(Conversation { sender: Box::<Sender>::new(sender), receiver: Box::new(receiver) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(url: &str) -> Result<Endpoint, String> {
        Endpoint::new(&HttpServer::new("s", url)).map_err(|error| error.to_string())
    }

    #[test]
    fn an_endpoint_is_one_of_this_machine_unless_somebody_says_so() {
        for (url, address, target) in [
            ("http://127.0.0.1:3001/mcp", "127.0.0.1:3001", "/mcp"),
            ("http://localhost", "localhost:80", "/"),
            ("http://[::1]:8080/a?b=c", "[::1]:8080", "/a?b=c"),
        ] {
            let endpoint = endpoint(url).unwrap();
            assert_eq!((endpoint.address.as_str(), endpoint.target.to_string()), (address, target.to_owned()));
        }
        for (url, words) in [
            ("", "must be one such as"),
            ("127.0.0.1:3001", "must begin with http://"),
            ("ftp://localhost/", "must begin with http://"),
            ("https://localhost/mcp", "https cannot be spoken"),
            ("http://mcp.example.com/", "allow_plain_http"),
            ("http://localhost.example.com/", "allow_plain_http"),
            ("http://10.0.0.7/mcp", "allow_plain_http"),
            ("http://ada:s3cret@localhost/", "no user"),
        ] {
            let error = endpoint(url).unwrap_err();
            assert!(error.contains(words) && !error.contains("s3cret"), "{url}: {error}");
        }
        let anywhere = HttpServer::new("s", "http://10.0.0.7:81/mcp").allow_plain_http();
        assert_eq!(Endpoint::new(&anywhere).unwrap().address, "10.0.0.7:81");
    }

    #[test]
    fn headers_are_checked_and_never_printed() {
        let server = HttpServer::new("s", "http://localhost/mcp?key=s3cret").header("Authorization", "Bearer s3cret");
        let endpoint = Endpoint::new(&server).unwrap();
        let printed = format!("{server:?} {endpoint:?} {:?}", endpoint.headers);
        assert!(printed.contains("authorization") && !printed.contains("s3cret"), "{printed}");
        for (name, value) in [("a b", "s3cret"), ("Host", "s3cret"), ("MCP-Session-Id", "s3cret"), ("x", "s3cret\n")] {
            let error = Endpoint::new(&HttpServer::new("s", "http://localhost").header(name, value)).unwrap_err();
            assert!(matches!(&error, Error::Model(words) if !words.contains("s3cret")), "{error}");
        }
    }
}

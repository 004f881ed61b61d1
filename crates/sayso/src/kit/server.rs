//! The servers that a spec can be bound to.

use std::fmt;

use sayso_core::error::Error;
use sayso_core::limits::{HTTP_HEADER_BYTES_MAX, HTTP_HEADERS_MAX, NAME_BYTES_MAX, URL_BYTES_MAX};

use super::spec::refuse;

/// A program that speaks MCP on its standard input and output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StdioServer {
    /// The name that tools are selected by; without a colon.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
}

impl StdioServer {
    /// The server `name` behind `command`.
    pub fn new<W: Into<String>>(name: impl Into<String>, command: impl IntoIterator<Item = W>) -> Self {
        Self { name: name.into(), command: command.into_iter().map(Into::into).collect() }
    }
}

/// A server that speaks MCP over HTTP ("streamable HTTP"). Which URLs can be reached is for the runner to say.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpServer {
    /// The name that tools are selected by; without a colon.
    pub name: String,
    /// Its endpoint, such as `http://127.0.0.1:3001/mcp`.
    pub url: String,
    /// What is sent with every request beside what MCP needs, such as `Authorization`.
    pub headers: Vec<HttpHeader>,
    /// Also speaks unencrypted to other machines: whoever is on the way can read the headers and every answer.
    pub allow_plain_http: bool,
}

/// A query may carry a key: it is not printed.
impl fmt::Debug for HttpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = self.url.split_once('?').map_or(self.url.as_str(), |(before, _)| before);
        f.debug_struct("HttpServer")
            .field("name", &self.name)
            .field("url", &url)
            .field("headers", &self.headers)
            .field("allow_plain_http", &self.allow_plain_http)
            .finish()
    }
}

impl HttpServer {
    /// The server `name` at `url`, without headers, on this machine.
    pub fn new(name: impl Into<String>, url: impl Into<String>) -> Self {
        Self { name: name.into(), url: url.into(), headers: Vec::new(), allow_plain_http: false }
    }

    /// The same, with one more header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push(HttpHeader { name: name.into(), value: value.into() });
        self
    }

    /// The same, also on another machine and unencrypted.
    #[must_use]
    pub fn allow_plain_http(self) -> Self {
        Self { allow_plain_http: true, ..self }
    }
}

/// A header of a request.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpHeader {
    /// Its name, such as `Authorization`.
    pub name: String,
    /// Its value, which may be a secret: it is never printed.
    pub value: String,
}

impl fmt::Debug for HttpHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpHeader").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A server that an execution is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Server {
    /// A program.
    Stdio(StdioServer),
    /// An address.
    Http(HttpServer),
}

impl Server {
    /// The name that tools are selected by.
    pub fn name(&self) -> &str {
        match self {
            Self::Stdio(server) => &server.name,
            Self::Http(server) => &server.name,
        }
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let name = self.name();
        if name.is_empty() || name.len() > NAME_BYTES_MAX || name.contains(':') {
            return refuse(format!("a server's name must have 1 to {NAME_BYTES_MAX} bytes and no colon"));
        }
        match self {
            Self::Stdio(server) if server.command.first().is_none_or(String::is_empty) => {
                refuse(format!("the server {name} has no command"))
            }
            Self::Stdio(_) => Ok(()),
            Self::Http(server) if server.url.is_empty() || server.url.len() > URL_BYTES_MAX => {
                refuse(format!("the URL of the server {name} must have 1 to {URL_BYTES_MAX} bytes"))
            }
            Self::Http(server) if server.headers.len() > HTTP_HEADERS_MAX => {
                refuse(format!("the server {name} has more than {HTTP_HEADERS_MAX} headers"))
            }
            Self::Http(server) => {
                let long = |header: &&HttpHeader| header.name.len() + header.value.len() > HTTP_HEADER_BYTES_MAX;
                match server.headers.iter().find(long) {
                    Some(_) => {
                        refuse(format!("a header of the server {name} has more than {HTTP_HEADER_BYTES_MAX} bytes"))
                    }
                    None => Ok(()),
                }
            }
        }
    }
}

impl From<StdioServer> for Server {
    fn from(server: StdioServer) -> Self {
        Self::Stdio(server)
    }
}

impl From<HttpServer> for Server {
    fn from(server: HttpServer) -> Self {
        Self::Http(server)
    }
}

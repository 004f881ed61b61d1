use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use axum::http::Uri;

use crate::mcp::McpService;

/// How the API and the inbox are reached.
///
/// A request is answered only where its `Host` is a loopback name (`localhost`, `127.0.0.0/8`, `[::1]`), the host of
/// `public_url`, or the address listened on; where that is the unspecified address, any literal address. A name that
/// somebody else lets point here (DNS rebinding) is none of these. Ports do not count.
#[derive(Debug, Clone, Default)]
pub struct ServeOptions {
    /// The inbox's address as people know it, such as `https://sayso.example.com`, where it is not the address
    /// listened on. With `https` the session's cookie is sent over https only. What is not an absolute URL adds no host.
    pub public_url: Option<String>,
    /// The files of the policy that `POST /v1/gate` judges by, one a layer; read again when they change.
    pub policy: Vec<PathBuf>,
    /// What answers under `/mcp`; nothing does where it is none.
    pub mcp: Option<McpService>,
    /// The address listened on. [`crate::serve`] fills it in.
    pub listen: Option<SocketAddr>,
}

impl ServeOptions {
    /// Whether browsers come by https.
    pub(crate) fn is_https(&self) -> bool {
        self.public_uri().is_some_and(|uri| uri.scheme_str() == Some("https"))
    }

    fn public_uri(&self) -> Option<Uri> {
        self.public_url.as_deref()?.parse().ok()
    }

    /// Whether a request may name `host`, the value of its `Host` header.
    pub(crate) fn allows_host(&self, host: &str) -> bool {
        let name = without_port(host).to_ascii_lowercase();
        if name == "localhost" {
            return true;
        }
        if self.public_uri().and_then(|uri| uri.host().map(str::to_ascii_lowercase)).as_deref() == Some(name.as_str()) {
            return true;
        }
        let Ok(address) = name.trim_matches(['[', ']']).parse::<IpAddr>() else { return false };
        let listens_here = |listen: SocketAddr| listen.ip().is_unspecified() || listen.ip() == address;
        address.is_loopback() || self.listen.is_some_and(listens_here)
    }
}

/// `example.com:80` and `[::1]:80` without their ports.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_and_own_names_are_hosts() {
        let options = ServeOptions {
            public_url: Some("https://Sayso.example.com:8443/".to_owned()),
            listen: Some(([10, 0, 0, 7], 7717).into()),
            ..ServeOptions::default()
        };
        for host in [
            "localhost",
            "LOCALHOST:7717",
            "127.0.0.1:7717",
            "127.9.9.9",
            "[::1]:7717",
            "[::1]",
            "sayso.example.com",
            "10.0.0.7:7717",
        ] {
            assert!(options.allows_host(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example:7717",
            "10.0.0.8",
            "::1:x",
            "a.localhost",
        ] {
            assert!(!options.allows_host(host), "{host}");
        }
        assert!(!ServeOptions::default().allows_host("10.0.0.7"));
        let everywhere = ServeOptions { listen: Some(([0, 0, 0, 0], 7717).into()), ..ServeOptions::default() };
        assert!(everywhere.allows_host("192.168.1.5:7717") && !everywhere.allows_host("evil.example"));
    }
}

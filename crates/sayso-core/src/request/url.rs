use fluent_uri::Iri;

use crate::error::Error;
use crate::limits;

/// Consent to open a URL. Accepting records the consent and nothing else (MCP 2025-11-25, "Safe URL handling").
#[derive(Debug, Clone)]
pub struct UrlConsent {
    /// What the asker says to the person.
    pub message: String,
    /// Where the person would go.
    pub url: ConsentUrl,
    /// The asker's own id, by which it may later say that the visit is complete.
    pub elicitation_id: Option<String>,
}

/// An absolute URL with a scheme, taken apart for display and never fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsentUrl {
    text: String,
    scheme: String,
    host: Option<String>,
    has_user: bool,
}

/// Why a person should look twice before opening a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UrlWarning {
    /// The scheme is not https: others on the way can read it.
    NotHttps,
    /// The scheme is neither http nor https: no link is offered.
    NotWeb,
    /// The host has letters outside ASCII, or their punycode: it may imitate another.
    LookAlikeHost,
    /// There is a user name before the host, which can be mistaken for it.
    UserInfo,
}

impl UrlWarning {
    /// The sentence a person reads.
    pub fn message(self) -> &'static str {
        match self {
            Self::NotHttps => "This address does not use https: others on the way can read and change it.",
            Self::NotWeb => "This is not a web address. It is shown as text and not as a link.",
            Self::LookAlikeHost => {
                "The host is written with international letters (punycode). It may imitate a name you know."
            }
            Self::UserInfo => "There is a user name before the host. The host is what stands after the @.",
        }
    }
}

impl ConsentUrl {
    /// Reads an absolute URL; relative references, spaces and control characters are refused.
    pub fn parse(pointer: &str, text: &str) -> Result<Self, Error> {
        if text.len() > limits::URL_BYTES_MAX {
            return Err(Error::field(pointer, format!("must be at most {} bytes", limits::URL_BYTES_MAX)));
        }
        let iri = Iri::parse(text).map_err(|_| Error::field(pointer, "must be an absolute URL"))?;
        let authority = iri.authority();
        Ok(Self {
            text: text.to_owned(),
            scheme: iri.scheme().as_str().to_ascii_lowercase(),
            host: authority.map(|authority| authority.host().to_owned()).filter(|host| !host.is_empty()),
            has_user: authority.is_some_and(|authority| authority.userinfo().is_some()),
        })
    }

    /// The URL as it was received.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The host alone, if the URL has one.
    pub fn host(&self) -> Option<&str> {
        self.host.as_deref()
    }

    /// Whether a link may be offered: http and https only.
    pub fn is_web(&self) -> bool {
        self.host.is_some() && matches!(self.scheme.as_str(), "http" | "https")
    }

    /// What to warn of, most general first.
    pub fn warnings(&self) -> Vec<UrlWarning> {
        let mut warnings = Vec::new();
        if !self.is_web() {
            warnings.push(UrlWarning::NotWeb);
        } else if self.scheme != "https" {
            warnings.push(UrlWarning::NotHttps);
        }
        let host = self.host.as_deref().unwrap_or_default();
        let puny = host.split('.').any(|label| label.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("xn--")));
        if puny || !host.is_ascii() || host.contains('%') {
            warnings.push(UrlWarning::LookAlikeHost);
        }
        if self.has_user {
            warnings.push(UrlWarning::UserInfo);
        }
        warnings
    }
}

impl UrlConsent {
    /// Checks message and URL. `pointer` is where the request stands.
    pub fn new(pointer: &str, message: String, url: &str, elicitation_id: Option<String>) -> Result<Self, Error> {
        super::check_text(&format!("{pointer}/message"), &message, limits::MESSAGE_BYTES_MAX)
            .map_err(|field| Error::fields(vec![field]))?;
        let url = ConsentUrl::parse(&format!("{pointer}/url"), url)?;
        Ok(Self { message, url, elicitation_id })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use UrlWarning::{LookAlikeHost, NotHttps, NotWeb, UserInfo};

    #[test]
    fn the_host_is_told_apart_and_what_is_odd_is_warned_of() {
        for (text, host, warnings) in [
            ("https://mcp.example.com/ui/set?x=1", Some("mcp.example.com"), vec![]),
            ("http://example.com/", Some("example.com"), vec![NotHttps]),
            ("https://xn--80ak6aa92e.com/", Some("xn--80ak6aa92e.com"), vec![LookAlikeHost]),
            ("https://login.XN--80ak6aa92e.com/", Some("login.XN--80ak6aa92e.com"), vec![LookAlikeHost]),
            ("https://аррӏе.com/", Some("аррӏе.com"), vec![LookAlikeHost]),
            ("https://bank.com@evil.example/", Some("evil.example"), vec![UserInfo]),
            ("javascript:alert(1)", None, vec![NotWeb]),
            ("file:///etc/passwd", None, vec![NotWeb]),
        ] {
            let url = ConsentUrl::parse("/url", text).expect(text);
            assert_eq!((url.host(), url.warnings()), (host, warnings), "{text}");
            assert_eq!(url.as_str(), text);
        }
    }

    #[test]
    fn what_is_not_an_absolute_url_is_refused() {
        for text in ["", "example.com", "/path", "https://a b/", "https://a\\@b/", "https://a\nb/", "//host/"] {
            assert!(ConsentUrl::parse("/url", text).is_err(), "{text:?}");
        }
    }
}

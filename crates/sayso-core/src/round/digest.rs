use std::fmt;

use sha2::{Digest as _, Sha256};

use crate::json::Json;

/// SHA-256 over the canonical `{"requests": …, "v": 1}` of a stored round: what an answer binds to. Numbers count as
/// written, so `1` and `1.0` differ.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of a round's requests, given as their wire form.
    pub fn of_requests(requests: &Json) -> Self {
        Self::of_text(&format!("{{\"requests\":{},\"v\":1}}", requests.canonical()))
    }

    /// The digest of any text.
    pub fn of_text(text: &str) -> Self {
        Self(Sha256::digest(text.as_bytes()).into())
    }

    /// The bytes a store keeps.
    pub fn to_bytes(self) -> [u8; 32] {
        self.0
    }

    /// The digest a store kept.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Reads `sha256:` and 64 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let hex = text
            .strip_prefix("sha256:")
            .filter(|hex| hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        let mut bytes = [0; 32];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(hex.get(2 * at..2 * at + 2)?, 16).ok()?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0; 64];
        for (digits, byte) in text.chunks_exact_mut(2).zip(self.0) {
            digits.copy_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
        }
        f.write_str("sha256:")?;
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

fn digit(value: u8) -> u8 {
    if value < 10 { b'0' + value } else { b'a' + (value - 10) }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl serde::Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(d)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("expected sha256: and 64 hexadecimal digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Digest {
        Digest::of_requests(&Json::parse(text).unwrap())
    }

    #[test]
    fn order_and_white_space_do_not_count_but_numbers_as_written_do() {
        assert_eq!(of(r#"{"a":1,"b":2}"#), of(r#"{ "b": 2, "a": 1 }"#));
        assert_ne!(of(r#"{"a":1}"#), of(r#"{"a":1.0}"#));
        assert_ne!(of(r#"{"a":9007199254740992}"#), of(r#"{"a":9007199254740993}"#));
        let digest = of("{}");
        assert_eq!(Digest::parse(&digest.to_string()), Some(digest));
        assert_eq!(Digest::parse("sha256:zz"), None);
    }
}

//! Moments as integer Unix milliseconds, written as RFC 3339 in UTC.

use std::fmt;

/// Milliseconds since 1970-01-01T00:00:00Z. UTC by construction; whoever needs "now" is handed one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct UnixMs(pub i64);

impl UnixMs {
    /// This moment moved by `ms` milliseconds, saturating at the ends of time.
    pub fn plus_ms(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms))
    }
    /// Milliseconds from `earlier` to this moment; negative if `earlier` is later.
    pub fn since_ms(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
    /// Reads an RFC 3339 time with its zone. `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse::<jiff::Timestamp>().ok().map(|at| Self(at.as_millisecond()))
    }
}

impl fmt::Display for UnixMs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(at) => write!(f, "{at:.3}"),
            Err(_) => write!(f, "{} ms", self.0),
        }
    }
}

impl fmt::Debug for UnixMs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl serde::Serialize for UnixMs {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for UnixMs {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(d)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("expected an RFC 3339 time with a zone"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_written_in_utc_with_milliseconds() {
        assert_eq!(UnixMs(1_796_000_000_123).to_string(), "2026-11-30T00:53:20.123Z");
        assert_eq!(UnixMs::parse("2026-11-30T01:53:20.123+01:00"), Some(UnixMs(1_796_000_000_123)));
        assert_eq!(UnixMs::parse("2026-11-30T01:53:20"), None, "a time without a zone is no moment");
    }
}

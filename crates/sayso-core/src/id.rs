//! Typed, prefixed identifiers: `rnd_01JZ…`. A UUIDv7 in Crockford base32, so they sort by creation time.
//! An id names a thing; it is never a capability.

use std::fmt;

/// Why a text is not an id of the wanted kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a {prefix}_ id: expected {prefix}_ and 26 characters")]
pub struct IdError {
    /// The prefix that was wanted, without its underscore.
    pub prefix: &'static str,
}

const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// Lays out a UUIDv7: 48 bits of Unix milliseconds, then version, variant and 74 bits of `random`.
fn uuid_v7(unix_ms: i64, random: u128) -> u128 {
    let time = u128::from(unix_ms.max(0).unsigned_abs() & 0xFFFF_FFFF_FFFF) << 80;
    let random_a = (random >> 64 & 0xFFF) << 64;
    let random_b = random & 0x3FFF_FFFF_FFFF_FFFF;
    time | 0x7 << 76 | random_a | 0b10 << 62 | random_b
}

fn encode(id: u128) -> [u8; 26] {
    const TWELVE_DIGITS: u32 = 60;
    let mut out = [b'0'; 26];
    let mut rest = id;
    // Twelve digits at a time: numbers of 64 bits are quicker.
    for digits in out.rchunks_mut(12) {
        let mut low = u64::try_from(rest & ((1 << TWELVE_DIGITS) - 1)).unwrap_or_default();
        rest >>= TWELVE_DIGITS;
        for slot in digits.iter_mut().rev() {
            let digit = usize::try_from(low & 31).unwrap_or_default();
            *slot = ALPHABET.get(digit).copied().unwrap_or(b'0');
            low >>= 5;
        }
    }
    out
}

fn decode(text: &str) -> Option<u128> {
    if text.len() != 26 {
        return None;
    }
    text.bytes().enumerate().try_fold(0u128, |id, (at, byte)| {
        let digit = ALPHABET.iter().position(|known| *known == byte.to_ascii_uppercase())?;
        // 26 characters hold 130 bits: the first may only be 0 to 7.
        (at > 0 || digit < 8).then_some(id << 5 | u128::try_from(digit).ok()?)
    })
}

macro_rules! prefixed_ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u128);

        impl $name {
            /// The id made at `unix_ms` with the low 76 bits of `random` that a UUIDv7 has room for.
            pub fn from_parts(unix_ms: i64, random: u128) -> Self {
                Self(uuid_v7(unix_ms, random))
            }
            /// Reads `
            #[doc = $prefix]
            /// _…`, in either case.
            pub fn parse(text: &str) -> Result<Self, IdError> {
                text.strip_prefix(concat!($prefix, "_"))
                    .and_then(decode)
                    .map(Self)
                    .ok_or(IdError { prefix: $prefix })
            }
            /// Its text.
            pub fn to_text(self) -> [u8; 30] {
                let mut text = [b'_'; 30];
                let (prefix, digits) = text.split_at_mut(4);
                prefix.copy_from_slice(concat!($prefix, "_").as_bytes());
                digits.copy_from_slice(&encode(self.0));
                text
            }
            /// The sixteen bytes a store keeps; they sort as the ids do.
            pub fn to_bytes(self) -> [u8; 16] {
                self.0.to_be_bytes()
            }
            /// The id a store kept.
            pub fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(u128::from_be_bytes(bytes))
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(str::from_utf8(&self.to_text()).unwrap_or_default())
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
        impl std::str::FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::parse(text)
            }
        }
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.serialize_str(str::from_utf8(&self.to_text()).unwrap_or_default())
            }
        }
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(d)?;
                Self::parse(&text).map_err(serde::de::Error::custom)
            }
        }
    )*};
}

prefixed_ids! {
    /// One run of an agent or of one MCP operation.
    ExecutionId = "exe";
    /// One round: the requests an operation waits on.
    RoundId = "rnd";
    /// One credential; its secret is never stored.
    TokenId = "tok";
    /// One grant: somebody's word that covers calls to come.
    GrantId = "grt";
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_id_reads_back_from_its_text_and_its_bytes(ms in 0i64..1 << 47, random: u128) {
            let id = RoundId::from_parts(ms, random);
            prop_assert_eq!(RoundId::parse(&id.to_string()), Ok(id));
            prop_assert_eq!(RoundId::parse(&id.to_string().to_lowercase()), Ok(id));
            prop_assert_eq!(RoundId::from_bytes(id.to_bytes()), id);
            prop_assert!(ExecutionId::parse(&id.to_string()).is_err());
        }

        #[test]
        fn ids_sort_by_the_time_they_were_made(a in 0i64..1 << 47, b in 0i64..1 << 47, random: u128) {
            prop_assume!(a < b);
            let (early, late) = (RoundId::from_parts(a, random), RoundId::from_parts(b, !random));
            prop_assert!(early < late && early.to_string() < late.to_string());
        }

        #[test]
        fn reading_an_id_is_total(text in ".*") {
            let _ = RoundId::parse(&text);
            let _ = RoundId::parse(&format!("rnd_{text}"));
        }
    }
}

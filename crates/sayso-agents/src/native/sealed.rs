//! Stored runs at rest: sealed with the newest key of a key file, opened with whichever sealed them.
//!
//! Only the run's state is sealed, the conversation above all. What a round asks and what was answered stays readable:
//! people read the one, and audits the other.

use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use sayso::{Error, ExecutionId, RoundId};
use sayso_core::limits::{NAME_BYTES_MAX, STATE_KEYS_MAX};

/// What a sealed text begins with; a state that is not sealed begins with a brace.
const SEALED: &str = "sealed.v1.";
const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 24;
/// A key file: so many lines of the longest kind.
const FILE_BYTES_MAX: u64 = 256 * 1024;
/// A key's name: a date, or a word.
const KEY_ID_BYTES_MAX: usize = 64;
const WHAT: &str = "state of the suspended run";

/// The keys that stored runs are sealed with. The last one seals, all of them open: a new key is added at the end, and
/// an old one stays as long as a run that it sealed may wait.
#[derive(Clone)]
pub struct Keyring(Vec<StateKey>);

#[derive(Clone)]
struct StateKey {
    id: String,
    bytes: [u8; KEY_BYTES],
}

/// Key bytes are never printed.
impl std::fmt::Debug for Keyring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|key| &key.id)).finish()
    }
}

/// Why a key file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyringError {
    /// It cannot be opened or read.
    #[error("it cannot be read: {0}")]
    Unreadable(std::io::ErrorKind),
    /// It is a folder, a pipe, or too large.
    #[error("it is no key file")]
    NoFile,
    /// Others can read or change it.
    #[error("others can read or change it (mode {0:03o}), so it keeps no secret")]
    Open(u32),
    /// A line is not of the form.
    #[error("line {0} is not a key: an id, a space, and 64 hexadecimal digits")]
    Line(usize),
    /// Two keys have the same id.
    #[error("line {0} has the id of an earlier key")]
    Repeated(usize),
    /// There is no key in it, or there are too many.
    #[error("it holds 1 to {STATE_KEYS_MAX} keys")]
    Count,
}

impl Keyring {
    /// Reads a key file, which only its owner may be able to read: a key a line, its id and 64 hexadecimal digits, the
    /// newest last. Empty lines and lines that begin with `#` are passed over.
    pub fn open(file: &Path) -> Result<Self, KeyringError> {
        let unreadable = |error: std::io::Error| KeyringError::Unreadable(error.kind());
        let opened = std::fs::File::open(file).map_err(unreadable)?;
        let about = opened.metadata().map_err(unreadable)?;
        if !about.is_file() || about.len() > FILE_BYTES_MAX {
            return Err(KeyringError::NoFile);
        }
        if about.mode() & 0o077 != 0 {
            return Err(KeyringError::Open(about.mode() & 0o777));
        }
        let mut text = String::new();
        opened.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(unreadable)?;
        Self::read(&text)
    }

    /// Reads the text of a key file.
    pub fn read(text: &str) -> Result<Self, KeyringError> {
        let mut keys: Vec<StateKey> = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let key = read_key(line).ok_or(KeyringError::Line(at + 1))?;
            if keys.iter().any(|known| known.id == key.id) {
                return Err(KeyringError::Repeated(at + 1));
            }
            keys.push(key);
        }
        if keys.is_empty() || keys.len() > STATE_KEYS_MAX { Err(KeyringError::Count) } else { Ok(Self(keys)) }
    }

    fn key(&self, id: &str) -> Option<&StateKey> {
        self.0.iter().find(|key| key.id == id)
    }
}

fn read_key(line: &str) -> Option<StateKey> {
    let (id, digits) = line.split_once(char::is_whitespace)?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if id.is_empty() || id.len() > KEY_ID_BYTES_MAX || !id.chars().all(is_plain) {
        return None;
    }
    let bytes: [u8; KEY_BYTES] = from_hex(digits.trim())?.try_into().ok()?;
    Some(StateKey { id: id.to_owned(), bytes })
}

/// What a state is bound to: sealed for one round of one run, it opens nowhere else.
fn bound_to(execution: ExecutionId, round: RoundId, key: &str) -> String {
    format!("sayso suspended run 1\n{execution}\n{round}\n{key}")
}

/// The text to be stored: sealed where there are keys, else as it is.
pub(super) fn seal(
    keys: Option<&Keyring>,
    state: String,
    execution: ExecutionId,
    round: RoundId,
) -> Result<String, Error> {
    let Some(key) = keys.and_then(|keys| keys.0.last()) else { return Ok(state) };
    let nonce: [u8; NONCE_BYTES] = sayso::random_bytes()?;
    let cipher = XChaCha20Poly1305::new(&Key::from(key.bytes));
    let aad = bound_to(execution, round, &key.id);
    let sealed = cipher.encrypt(&XNonce::from(nonce), Payload { msg: state.as_bytes(), aad: aad.as_bytes() });
    let sealed = sealed.map_err(|_| Error::Limit("the suspended run is too large to be sealed".to_owned()))?;
    Ok(format!("{SEALED}{}.{}.{}", key.id, to_hex(&nonce), to_hex(&sealed)))
}

/// The state behind a stored text. A key that is not there is named, and nothing is consumed.
pub(super) fn unseal(
    keys: Option<&Keyring>,
    stored: String,
    execution: ExecutionId,
    round: RoundId,
) -> Result<String, Error> {
    let Some(rest) = stored.strip_prefix(SEALED) else { return Ok(stored) };
    let mut parts = rest.splitn(3, '.');
    let (Some(id), Some(nonce), Some(sealed)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(Error::Corrupt(WHAT));
    };
    let Some(key) = keys.and_then(|keys| keys.key(id)) else {
        let shown: String = id.chars().take(NAME_BYTES_MAX).collect();
        let shown = sayso_core::json::visible(&shown);
        return Err(Error::Sealed(format!("the suspended run is sealed with the key {shown}, which is not at hand")));
    };
    let nonce: Option<[u8; NONCE_BYTES]> = from_hex(nonce).and_then(|nonce| nonce.try_into().ok());
    let (Some(nonce), Some(sealed)) = (nonce, from_hex(sealed)) else { return Err(Error::Corrupt(WHAT)) };
    let cipher = XChaCha20Poly1305::new(&Key::from(key.bytes));
    let aad = bound_to(execution, round, &key.id);
    let opened = cipher.decrypt(&XNonce::from(nonce), Payload { msg: &sealed, aad: aad.as_bytes() });
    let opened = opened.map_err(|_| {
        Error::Sealed(format!(
            "the suspended run does not open with the key {id}: the key or the stored text was changed"
        ))
    })?;
    String::from_utf8(opened).map_err(|_| Error::Corrupt(WHAT))
}

fn to_hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    let digit = |nibble: u8| DIGITS.get(usize::from(nibble)).copied().unwrap_or('0');
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(digit(byte >> 4));
        text.push(digit(byte & 15));
    }
    text
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text.chars().map(|c| u8::try_from(c.to_digit(16)?).ok()).collect();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2))?;
    Some(digits.chunks_exact(2).filter_map(|pair| Some(pair.first()? << 4 | pair.get(1)?)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(text: &str) -> Keyring {
        Keyring::read(text).unwrap_or_else(|error| panic!("{error}"))
    }

    fn line(id: &str, digit: char) -> String {
        format!("{id} {}\n", String::from(digit).repeat(64))
    }

    fn place(n: u128) -> (ExecutionId, RoundId) {
        (ExecutionId::from_parts(1, n), RoundId::from_parts(1, n))
    }

    #[test]
    fn the_newest_key_seals_and_every_key_opens() {
        let ((execution, round), state) = (place(1), r#"{"a":"hunter2"}"#.to_owned());
        let old = ring(&line("2026-01", '1'));
        let both = ring(&format!("# rotated\n\n{}{}", line("2026-01", '1'), line("2026-02", 'a')));
        let sealed = seal(Some(&old), state.clone(), execution, round).unwrap();
        assert!(sealed.starts_with("sealed.v1.2026-01.") && !sealed.contains("hunter2"));
        assert_eq!(unseal(Some(&both), sealed.clone(), execution, round), Ok(state.clone()));
        let newer = seal(Some(&both), state.clone(), execution, round).unwrap();
        assert!(newer.starts_with("sealed.v1.2026-02."));
        for keys in [Some(&old), None] {
            let error = unseal(keys, newer.clone(), execution, round).unwrap_err();
            assert!(matches!(&error, Error::Sealed(words) if words.contains("2026-02")), "{error}");
        }
        // Stored before there were keys.
        assert_eq!(unseal(Some(&both), state.clone(), execution, round), Ok(state.clone()));
        assert_eq!(seal(None, state.clone(), execution, round), Ok(state));
        assert!(!format!("{both:?}").contains("aaaa"));
    }

    #[test]
    fn what_was_sealed_opens_for_its_own_round_alone_and_unchanged() {
        let (execution, round) = place(1);
        let keys = ring(&format!("{}{}", line("a", '1'), line("b", '1')));
        let sealed = seal(Some(&keys), "{}".to_owned(), execution, round).unwrap();
        let (other, elsewhere) = place(2);
        let mut changed = sealed.clone();
        let last = changed.pop().unwrap();
        changed.push(if last == '0' { '1' } else { '0' });
        for (text, execution, round) in [
            (sealed.clone(), other, round),
            (sealed.clone(), execution, elsewhere),
            (changed, execution, round),
            // The same bytes under another name are another key.
            (sealed.replace("v1.b.", "v1.a."), execution, round),
            ("sealed.v1.b".to_owned(), execution, round),
            ("sealed.v1.b.00.zz".to_owned(), execution, round),
        ] {
            let error = unseal(Some(&keys), text, execution, round).unwrap_err();
            assert_eq!(error.code(), sayso::ErrorCode::CorruptSuspendedState);
        }
    }

    #[test]
    fn a_key_file_is_the_owners_alone_and_of_one_form() {
        use std::os::unix::fs::PermissionsExt as _;
        for (text, error) in [
            (String::new(), KeyringError::Count),
            ("# none\n".to_owned(), KeyringError::Count),
            ("one\n".to_owned(), KeyringError::Line(1)),
            (format!("\n{}", line("b c", '1')), KeyringError::Line(2)),
            (line("a", 'g'), KeyringError::Line(1)),
            (format!("a {}", "1".repeat(63)), KeyringError::Line(1)),
            (format!("{}{}", line("a", '1'), line("a", '2')), KeyringError::Repeated(2)),
        ] {
            assert_eq!(Keyring::read(&text).err(), Some(error), "{text}");
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("keys");
        assert_eq!(Keyring::open(&file).err(), Some(KeyringError::Unreadable(std::io::ErrorKind::NotFound)));
        std::fs::write(&file, line("a", '1')).unwrap();
        for (mode, is_usable) in [(0o600, true), (0o640, false), (0o602, false)] {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(Keyring::open(&file).is_ok(), is_usable, "{mode:o}");
        }
        assert_eq!(Keyring::open(folder.path()).err(), Some(KeyringError::NoFile));
    }
}

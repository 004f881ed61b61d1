//! Where chance comes in: ids, fence tokens and secrets.

use std::cell::RefCell;

use sayso_core::error::Error;
use sayso_core::round::FenceToken;
use sayso_core::time::UnixMs;
use sha2::{Digest as _, Sha256};

/// 128 random bits. A machine without randomness cannot ask safely, so it does not ask.
pub(crate) fn random() -> Result<u128, Error> {
    thread_local!(static STOCK: RefCell<Stock> = RefCell::default());
    STOCK.with_borrow_mut(Stock::take)
}

/// Random numbers of one thread, each given away once: the system is asked for so many at a time, as it takes a while to
/// answer.
#[derive(Default)]
struct Stock {
    numbers: [u128; 32],
    left: usize,
}

impl Stock {
    fn take(&mut self) -> Result<u128, Error> {
        if self.left == 0 {
            let mut bytes = [[0; 16]; 32];
            fill(bytes.as_flattened_mut())?;
            (self.numbers, self.left) = (bytes.map(u128::from_ne_bytes), bytes.len());
        }
        self.left -= 1;
        // What has been given away is here no more.
        self.numbers.get_mut(self.left).map(std::mem::take).ok_or(Error::Corrupt("random number"))
    }
}

/// So many random bytes, for whoever needs chance beside ids: a nonce, say.
pub fn random_bytes<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    fill(&mut bytes)?;
    Ok(bytes)
}

fn fill(bytes: &mut [u8]) -> Result<(), Error> {
    getrandom::fill(bytes).map_err(|_| Error::Unavailable("the machine gives no random numbers".to_owned()))
}

pub(crate) fn fence_token() -> Result<FenceToken, Error> {
    random().map(FenceToken)
}

/// A token that only the same parts give; as hard to guess as they are.
pub(crate) fn token_from(parts: &[&str]) -> FenceToken {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hasher.update(part.as_bytes());
    }
    let bytes: [u8; 32] = hasher.finalize().into();
    FenceToken(bytes.iter().take(16).fold(0, |token, byte| token << 8 | u128::from(*byte)))
}

/// A new id of any kind, made at `now`.
pub(crate) fn new_id<T>(now: UnixMs, from_parts: impl FnOnce(i64, u128) -> T) -> Result<T, Error> {
    Ok(from_parts(now.0, random()?))
}

/// A secret of 256 random bits, as 64 hexadecimal digits behind `prefix`.
pub(crate) fn secret(prefix: &str) -> Result<String, Error> {
    let mut bytes = [0; 32];
    fill(&mut bytes)?;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("{prefix}{hex}"))
}

/// What is stored of a secret. It has 256 bits of its own, so a plain hash is enough.
pub(crate) fn secret_hash(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used, reason = "a test may panic")]

    use super::*;

    #[test]
    fn no_random_number_comes_twice() {
        let drawn = || (0..100).map(|_| random().expect("random")).collect::<Vec<_>>();
        let elsewhere = std::thread::spawn(drawn);
        let mut all = drawn();
        all.extend(elsewhere.join().expect("ends"));
        assert!(!all.contains(&0));
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 200);
    }
}

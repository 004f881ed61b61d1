//! Where chance comes in: ids, fence tokens and secrets.

use std::cell::RefCell;

use sayso_core::error::Error;
use sayso_core::round::FenceToken;
use sayso_core::time::UnixMs;
use sha2::{Digest as _, Sha256};

/// 128 random bits. A machine without randomness cannot ask safely, so it does not ask.
pub(crate) fn random() -> Result<u128, Error> {
    let mut bytes = [0; 16];
    fill(&mut bytes)?;
    Ok(u128::from_be_bytes(bytes))
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
    Ok(from_parts(now.0, next_of_stock()?))
}

/// Random numbers for ids, which are no secrets: the system is asked for so many at once, as it takes some time to answer.
#[derive(Default)]
struct Stock([u128; 32], usize);

/// 128 random bits that stood in this thread's memory for a while.
fn next_of_stock() -> Result<u128, Error> {
    thread_local!(static STOCK: RefCell<Stock> = RefCell::default());
    STOCK.with_borrow_mut(|Stock(numbers, left)| {
        if *left == 0 {
            let mut bytes = [[0; 16]; 32];
            fill(bytes.as_flattened_mut())?;
            (*numbers, *left) = (bytes.map(u128::from_ne_bytes), bytes.len());
        }
        *left -= 1;
        numbers.get(*left).copied().ok_or(Error::Corrupt("stock of random numbers"))
    })
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

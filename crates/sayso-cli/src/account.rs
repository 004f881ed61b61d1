//! Who the operating system says is running this command.

use sayso::{Principal, default_person};

/// The password database is read up to this size: local accounts take tens of kilobytes.
const PASSWD_BYTES_MAX: u64 = 1024 * 1024;

/// `person local:<user>`: the owner of the data folder, as the local credential names them. `fallback` is used where the
/// account has no entry of its own; it names somebody in records and grants nothing.
pub fn owner(fallback: Option<&str>) -> Principal {
    let uid = rustix::process::getuid().as_raw();
    let name = accounts().and_then(|accounts| name_of(&accounts, uid)).or_else(|| fallback.and_then(plain_name));
    default_person(Some(&name.unwrap_or_else(|| format!("uid-{uid}"))))
}

fn accounts() -> Option<String> {
    use std::io::Read as _;
    let mut text = String::new();
    std::fs::File::open("/etc/passwd").ok()?.take(PASSWD_BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

fn name_of(accounts: &str, uid: u32) -> Option<String> {
    accounts.lines().find_map(|line| {
        let mut parts = line.split(':');
        let name = parts.next()?;
        let found = parts.nth(1)?.parse::<u32>().ok()?;
        if found == uid { plain_name(name) } else { None }
    })
}

/// A name that can stand in a record: not empty, nothing invisible.
fn plain_name(name: &str) -> Option<String> {
    let is_plain =
        !name.is_empty() && name.len() <= 64 && name.chars().all(|c| c.is_alphanumeric() || "-_.@".contains(c));
    is_plain.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_account_is_found_by_its_number_and_odd_names_are_not_used() {
        let accounts =
            "root:x:0:0:root:/root:/bin/sh\n+::::::\nada:x:1000:1000:Ada:/home/ada:/bin/sh\na b:x:7:7::/:/x\n";
        assert_eq!(name_of(accounts, 1000).as_deref(), Some("ada"));
        assert_eq!(name_of(accounts, 7), None);
        assert_eq!(name_of(accounts, 1), None);
        assert_eq!(plain_name("x\u{202e}y"), None);
    }
}

//! What a process takes of the machine, as Linux tells it under `/proc`; nothing on other systems.

use std::time::Duration;

use sayso_core::error::Error;

/// Linux counts CPU time for programs in hundredths of a second, on every architecture.
const TICK: Duration = Duration::from_millis(10);

/// The user and system time of a process so far.
pub fn cpu_time(process: u32) -> Result<Duration, Error> {
    let text = read(process, "stat")?;
    // The program's name comes second, in parentheses, and may hold anything; after it, these are the 12th and 13th.
    let ticks = text.rsplit_once(')').and_then(|(_, rest)| {
        let mut fields = rest.split_whitespace().skip(11);
        let (user, system): (u32, u32) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        Some(user.saturating_add(system))
    });
    ticks.map(|ticks| TICK * ticks).ok_or_else(unknown)
}

/// The memory of a process that is in RAM, in bytes.
pub fn resident_bytes(process: u32) -> Result<u64, Error> {
    let text = read(process, "status")?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.map(|kib| kib * 1024).ok_or_else(unknown)
}

fn read(process: u32, what: &str) -> Result<String, Error> {
    std::fs::read_to_string(format!("/proc/{process}/{what}")).map_err(|_| unknown())
}

fn unknown() -> Error {
    Error::Unavailable("what a process takes is known on Linux only, and while it runs".to_owned())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_process_sees_what_it_takes() {
        let me = std::process::id();
        assert!(resident_bytes(me).unwrap() > 100_000);
        assert!(cpu_time(me).is_ok());
        assert!(matches!(cpu_time(u32::MAX), Err(Error::Unavailable(_))));
    }
}

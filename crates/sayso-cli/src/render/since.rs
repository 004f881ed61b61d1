use sayso::UnixMs;
use sayso_store::clock::{Clock, SystemClock};

/// The time by this machine's clock, for saying how long ago something was.
pub fn now() -> UnixMs {
    SystemClock.now()
}

/// How long ago `at` was, in the largest unit that fits: `42 s`, `5 min`, `3 h`, `12 d`.
pub(super) fn since(at: UnixMs, now: UnixMs) -> String {
    let seconds = now.since_ms(at).max(0) / 1000;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_told_in_the_largest_unit_that_fits() {
        for (seconds, text) in
            [(0, "0 s"), (59, "59 s"), (60, "1 min"), (3600, "1 h"), (100_000, "27 h"), (172_800, "2 d")]
        {
            assert_eq!(since(UnixMs(0), UnixMs(seconds * 1000)), text);
        }
        assert_eq!(since(UnixMs(5000), UnixMs(0)), "0 s", "a clock that was set back");
    }
}

//! The figures, by name: what each measures, in which unit, and what is to be reached.

use serde::Serialize;

/// What was measured beside its limit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Figure {
    /// What the product reached.
    pub value: f64,
    /// The unit of `value` and of `limit`.
    pub unit: &'static str,
    /// What it is held against: a raw limit of the same run, or a constant.
    pub limit: f64,
    /// `value / limit`.
    pub ratio: f64,
}

/// What a figure's ratio is to reach.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Target {
    /// This or more.
    AtLeast(f64),
    /// This or less.
    AtMost(f64),
}

impl Target {
    /// Whether `ratio` reaches it.
    pub fn is_reached(self, ratio: f64) -> bool {
        match self {
            Self::AtLeast(least) => ratio >= least,
            Self::AtMost(most) => ratio <= most,
        }
    }
    /// How much of the target `ratio` reaches: 1 is all of it, whichever way is better.
    pub fn part_reached(self, ratio: f64) -> f64 {
        match self {
            Self::AtLeast(least) => ratio / least,
            Self::AtMost(most) => most / ratio,
        }
    }
}

/// A figure's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Name {
    /// Cycles a second in process on SQLite, 64 waiters at once.
    InProcess64,
    /// The same with 512 waiters.
    InProcess512,
    /// Cycles a second over HTTP, 64 waiters at once, load and server on the same cores.
    Http64,
    /// How long a cycle takes in process, one after the other.
    SequentialInProcess,
    /// How long a cycle takes over HTTP, one after the other.
    SequentialHttp,
    /// From sending an answer until its waiter runs, in process.
    WakeInProcess,
    /// The same over HTTP.
    WakeHttp,
    /// The same in process with 64 waiters, which 99 of 100 do not exceed.
    Wake64P99,
    /// Cycles a second in process on PostgreSQL, 64 waiters at once.
    Postgres64,
    /// From sending an answer until a waiter on another store of the same database runs.
    PostgresWake,
    /// CPU time of a cycle in process, with 64 waiters.
    CpuInProcess,
    /// CPU time that the server takes for a cycle over HTTP, with 64 waiters.
    CpuHttp,
    /// Memory of a waiter parked in process.
    WaiterBytes,
    /// Memory that `sayso serve` takes for a pending round that nobody waits for.
    PendingBytes,
    /// CPU that `sayso serve` takes while all those rounds are pending and nothing happens.
    IdleCpu,
    /// From starting `sayso serve` again after it was killed until it has accepted an answer.
    FirstAnswerAfterKill,
    /// From starting it again until every deadline that has passed meanwhile is enforced.
    DeadlinesAfterKill,
    /// Answers a second, in random order, into all those pending rounds.
    RandomAnswers,
    /// How long a page of a list takes among all those rounds.
    ListLatency,
}

impl Name {
    /// Every figure, in the order of the documentation.
    pub const ALL: [Self; 19] = [
        Self::InProcess64,
        Self::InProcess512,
        Self::Http64,
        Self::SequentialInProcess,
        Self::SequentialHttp,
        Self::WakeInProcess,
        Self::WakeHttp,
        Self::Wake64P99,
        Self::Postgres64,
        Self::PostgresWake,
        Self::CpuInProcess,
        Self::CpuHttp,
        Self::WaiterBytes,
        Self::PendingBytes,
        Self::IdleCpu,
        Self::FirstAnswerAfterKill,
        Self::DeadlinesAfterKill,
        Self::RandomAnswers,
        Self::ListLatency,
    ];

    /// The name in output and documentation.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InProcess64 => "in_process_64",
            Self::InProcess512 => "in_process_512",
            Self::Http64 => "http_64",
            Self::SequentialInProcess => "sequential_in_process",
            Self::SequentialHttp => "sequential_http",
            Self::WakeInProcess => "wake_in_process",
            Self::WakeHttp => "wake_http",
            Self::Wake64P99 => "wake_64_p99",
            Self::Postgres64 => "postgres_64",
            Self::PostgresWake => "postgres_wake",
            Self::CpuInProcess => "cpu_in_process",
            Self::CpuHttp => "cpu_http",
            Self::WaiterBytes => "waiter_bytes",
            Self::PendingBytes => "pending_bytes",
            Self::IdleCpu => "idle_cpu",
            Self::FirstAnswerAfterKill => "first_answer_after_kill",
            Self::DeadlinesAfterKill => "deadlines_after_kill",
            Self::RandomAnswers => "random_answers",
            Self::ListLatency => "list_latency",
        }
    }

    /// The figure that `word` names.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|name| name.as_str() == word)
    }

    /// What its ratio is to reach.
    pub fn target(self) -> Target {
        match self {
            Self::InProcess64 | Self::InProcess512 => Target::AtLeast(0.45),
            Self::Http64 => Target::AtLeast(0.25),
            Self::SequentialInProcess | Self::WakeInProcess => Target::AtMost(1.3),
            Self::SequentialHttp => Target::AtMost(2.2),
            Self::WakeHttp => Target::AtMost(2.5),
            Self::Postgres64 => Target::AtLeast(2.0),
            Self::PostgresWake => Target::AtMost(1.7),
            Self::RandomAnswers => Target::AtLeast(1.0),
            // A page among a million is held against the same page among a thousand.
            Self::ListLatency => Target::AtMost(2.0),
            _ => Target::AtMost(1.0),
        }
    }

    /// The unit of its value and limit.
    pub fn unit(self) -> &'static str {
        match self {
            Self::InProcess64 | Self::InProcess512 | Self::Http64 | Self::Postgres64 => "cycles/s",
            Self::SequentialInProcess
            | Self::SequentialHttp
            | Self::WakeInProcess
            | Self::WakeHttp
            | Self::Wake64P99
            | Self::PostgresWake
            | Self::FirstAnswerAfterKill
            | Self::DeadlinesAfterKill
            | Self::ListLatency => "ms",
            Self::CpuInProcess | Self::CpuHttp => "µs",
            Self::WaiterBytes | Self::PendingBytes => "bytes",
            Self::IdleCpu => "%",
            Self::RandomAnswers => "answers/s",
        }
    }

    /// The limit where it is a constant and not measured.
    pub fn constant(self) -> Option<f64> {
        match self {
            Self::Wake64P99 => Some(4.0),
            Self::CpuInProcess => Some(90.0),
            Self::CpuHttp => Some(200.0),
            Self::WaiterBytes => Some(1024.0),
            Self::PendingBytes => Some(160.0),
            Self::IdleCpu => Some(0.5),
            Self::FirstAnswerAfterKill => Some(150.0),
            Self::DeadlinesAfterKill => Some(5_000.0),
            Self::RandomAnswers => Some(5_000.0),
            _ => None,
        }
    }

    /// The figure of `value` against a measured `limit`.
    pub fn against(self, value: f64, limit: f64) -> Figure {
        Figure { value, unit: self.unit(), limit, ratio: value / limit }
    }

    /// The figure of `value` against its constant.
    pub fn figure(self, value: f64) -> Figure {
        self.against(value, self.constant().unwrap_or(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_back_and_has_one_limit() {
        for name in Name::ALL {
            assert_eq!(Name::parse(name.as_str()), Some(name));
        }
        assert_eq!(Name::parse("in_process"), None);
    }

    #[test]
    fn a_target_is_reached_from_its_own_side() {
        assert!(Target::AtLeast(0.45).is_reached(0.5) && !Target::AtLeast(0.45).is_reached(0.4));
        assert!(Target::AtMost(1.3).is_reached(1.2) && !Target::AtMost(1.3).is_reached(1.4));
        assert!((Target::AtMost(2.0).part_reached(4.0) - 0.5).abs() < 1e-9);
    }
}

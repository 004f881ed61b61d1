//! The gate: a call is judged by the policy and by what people have granted, and where that asks, a person is asked in
//! a round that survives restarts (`docs/approvals.md`).
//!
//! The caller runs its tool itself, after [`Ruling::Allow`] and with the arguments that come with it. A call that waits
//! is found again by what it is: the same session, tool and arguments take an answer that was given meanwhile, once.
//!
//! ```
//! use sayso::gate::{Call, Gates, Ruling};
//! use sayso::policy::{PolicyFiles, ToolName};
//! use sayso::{Answer, Json, Options, People, Principal, Response, Sayso};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let sayso = Sayso::open(Options::at(folder.path())).await?;
//! let gate = Gates::new(&sayso, PolicyFiles::none()).of(Principal::agent("shop"));
//! let call = Call::new("session-1", ToolName::parse("bank:transfer")?, Json::parse(r#"{"amount":120}"#)?);
//!
//! let Ruling::Ask(round) = gate.judge(&call).await? else { panic!("no rule allows it, so a person is asked") };
//! // The program may end here, and ask the same again tomorrow.
//! let approval = Answer { digest: Some(round.digest), ..Answer::one("call", Response::consent()) };
//! sayso.people().answer(round.round_id, approval, "approved").await?;
//!
//! let Ruling::Allow(allowed) = gate.judge(&call).await? else { panic!("it was approved") };
//! assert_eq!(allowed.arguments.as_str(), r#"{"amount":120}"#);
//! assert!(matches!(gate.judge(&call).await?, Ruling::Ask(_)), "one approval, one call");
//! # Ok(())
//! # }
//! ```

mod asking;
mod call;
mod dispatch;
mod held;
mod permit;
mod reviewed;
mod state;
mod told;
mod turn;

use std::sync::Arc;
use std::time::Duration;

use sayso_core::error::Error;
use sayso_core::id::{GrantId, RoundId};
use sayso_core::json::Json;
use sayso_core::policy::{Basis, Decision, Mode, Policy, RuleRef, Verdict};
use sayso_core::principal::Principal;
use sayso_core::wire;
use tokio::time::Instant;

use crate::local_desk::LocalDesk;
use crate::open::Sayso;
use crate::owner::Owner;
use crate::policy::PolicyFiles;
use crate::words;

pub use call::{Call, definition_of};
pub(crate) use call::{operation, session_prefix};
pub(crate) use held::Held;
pub use turn::{Admitted, Asked, Weighed};

/// The key of the call in its round.
pub const CALL_KEY: &str = "call";

/// How often one judgement starts over because somebody else was faster.
const TRIES_MAX: usize = 16;

/// The gates of one process: one policy, and what their callers wait for.
#[derive(Clone)]
pub struct Gates {
    sayso: Sayso,
    policy: Arc<PolicyFiles>,
    owner: Arc<Owner>,
    held: Held,
}

impl Gates {
    /// Gates that judge by these files, as they are at each call.
    pub fn new(sayso: &Sayso, policy: PolicyFiles) -> Self {
        let owner = Arc::new(sayso.inner.owners.another());
        Self { sayso: sayso.clone(), policy: Arc::new(policy), owner, held: Held::default() }
    }

    /// The gate for an authenticated agent.
    pub fn of(&self, agent: Principal) -> Gate {
        let desk = LocalDesk { sayso: self.sayso.clone(), caller: agent, owner: self.owner.clone() };
        Gate { desk, policy: self.policy.clone(), held: self.held.clone(), mode: None }
    }
}

/// The gate for one agent's calls.
#[derive(Clone)]
pub struct Gate {
    pub(crate) desk: LocalDesk,
    policy: Arc<PolicyFiles>,
    pub(crate) held: Held,
    mode: Option<Mode>,
}

/// What becomes of a call. That nobody decided (it expired, was cancelled or dismissed, or nobody could be asked) is an
/// error and never a denial.
#[derive(Debug, Clone)]
pub enum Ruling {
    /// It may run now, once.
    Allow(Allowed),
    /// It must not run.
    Deny(Denied),
    /// A person is asked, in this round.
    Ask(Box<wire::Round>),
}

/// What a call runs on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum By {
    /// The rules, or the mode `autonomous` in their place.
    Policy {
        /// Whether it was the mode.
        mode: bool,
    },
    /// Somebody's earlier word; its use is recorded.
    Grant(GrantId),
    /// A person's answer in this round.
    Person(RoundId),
    /// The program that has the tool says that it changes nothing, and no rule is about it.
    Program,
}

/// A call that may run.
#[derive(Debug, Clone)]
pub struct Allowed {
    /// What it runs with.
    pub arguments: Json,
    /// Whether these are not the ones that were proposed.
    pub is_changed: bool,
    /// What that rests on.
    pub by: By,
    /// The rules that decided or asked.
    pub rules: Vec<RuleRef>,
}

/// A call that must not run.
#[derive(Debug, Clone)]
pub struct Denied {
    /// Why, in the words of whoever denied it.
    pub reason: Option<String>,
    /// The round in which a person denied it; none where the policy did.
    pub round: Option<RoundId>,
    /// The rules that denied or asked.
    pub rules: Vec<RuleRef>,
}

impl Allowed {
    /// What the agent is told.
    pub fn words(&self) -> String {
        words::allowed(matches!(self.by, By::Person(_)), self.is_changed.then_some(&self.arguments))
    }
}

impl Denied {
    /// What the agent is told.
    pub fn words(&self) -> String {
        let reason = self.reason.as_deref();
        if self.round.is_some() { words::declined(reason) } else { words::denied_by(&self.rules, reason) }
    }

    fn by_policy(verdict: Verdict) -> Self {
        let reason = match verdict.basis {
            Basis::Error(reason) => Some(reason),
            _ => verdict.reason,
        };
        Self { reason, round: None, rules: verdict.rules }
    }
}

impl Ruling {
    /// The word for it on the wire.
    pub fn decision(&self) -> Decision {
        match self {
            Self::Allow(_) => Decision::Allow,
            Self::Deny(_) => Decision::Deny,
            Self::Ask(_) => Decision::Ask,
        }
    }
}

impl Gate {
    /// The gate in a session of this mode, instead of the policy's. `guarded` is refused where there is no policy: nothing
    /// is judged then ([`Gate::check`]).
    #[must_use]
    pub fn in_mode(self, mode: Mode) -> Self {
        Self { mode: Some(mode), ..self }
    }

    /// Whether it can judge at all: an [`Error::Model`] in the mode `guarded` without a policy.
    pub fn check(&self) -> Result<(), Error> {
        self.check_mode(&self.policy.current())
    }

    fn check_mode(&self, policy: &Policy) -> Result<(), Error> {
        if self.mode == Some(Mode::Guarded) && policy.is_empty() {
            let words = "the mode `guarded` needs a policy, since it denies what no rule allows";
            return Err(Error::Model(words.to_owned()));
        }
        Ok(())
    }

    /// Judges a call and waits for nobody. A round that is asked goes on, and so does one that was asked for the same
    /// call before.
    pub async fn judge(&self, call: &Call) -> Result<Ruling, Error> {
        Ok(self.rule(call, false).await?.0)
    }

    /// Judges a call, and where a person is asked waits for the answer, at most for `wait` where that is given: then the
    /// round goes on. `on_pause` hears of each round once it is stored.
    pub async fn pass(
        &self,
        call: &Call,
        wait: Option<Duration>,
        on_pause: impl Fn(&wire::Round),
    ) -> Result<Ruling, Error> {
        let until = wait.map(|wait| Instant::now() + wait);
        let (mut ruling, mut hold) = self.rule(call, true).await?;
        for _ in 0..TRIES_MAX {
            let Ruling::Ask(round) = ruling else { return Ok(ruling) };
            on_pause(&round);
            let Some(row) = self.answered(round.round_id, until).await? else { return Ok(Ruling::Ask(round)) };
            // What takes this one's place is held before it is stored, too.
            (ruling, hold) = match self.dispatch(call, &row, true).await? {
                Some(next) => next,
                None => {
                    drop(hold);
                    self.rule(call, true).await?
                }
            };
        }
        drop(hold);
        Ok(ruling)
    }
}

use std::sync::Arc;
use std::time::Duration;

use sayso::policy::{Mode, PolicyFiles};

use crate::jsonrpc::Launch;
use crate::tools::Hold;

/// When the gateway makes a call again by itself, because a person has answered after its server gave up waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Replay {
    /// Where the tool says that it is read-only or idempotent; prompts and resources are read-only by nature.
    #[default]
    Declared,
    /// Always: whoever says so knows that the server's calls may run twice.
    Always,
    /// Never: the answer waits until the agent calls again.
    Never,
}

/// What judges the calls of a gateway before they reach the upstream (`docs/policy.md`).
#[derive(Debug, Clone)]
pub struct Gate {
    /// The rules, read again when they change.
    pub policy: Arc<PolicyFiles>,
    /// The mode of this gateway, in the place of the policy's own.
    pub mode: Option<Mode>,
    /// The session that a grant would be for: this one client connection.
    pub session: String,
}

/// How a gateway is run.
#[derive(Debug, Clone)]
pub struct GatewayOptions {
    /// The server's name, as people see it; no colon.
    pub name: String,
    /// How the upstream is started.
    pub upstream: Arc<dyn Launch>,
    /// How long a tool call is held.
    pub hold: Hold,
    /// When a call is made again for a late answer.
    pub replay: Replay,
    /// How long the gateway stays for paused calls after the client has left.
    pub linger: Duration,
    /// Whether the agent gets a tool to ask a person by itself.
    pub ask_user: bool,
    /// What judges the calls; none where every call passes.
    pub gate: Option<Gate>,
    /// Whether what the agent says with `resume` counts as the person's verdict, recorded as relayed by it. The store must
    /// have been opened so, too ([`sayso::Options::trusting_agent_relay`]).
    pub trust_agent_relay: bool,
    /// Where people answer, such as `http://127.0.0.1:7717`, as far as it is known.
    pub inbox: Option<String>,
}

/// How a gateway ended, for whoever runs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GatewayReport {
    /// Why it ended.
    pub exit: GatewayExit,
    /// Lines that the upstream printed where only messages belong; they were skipped.
    pub skipped_lines: u64,
}

/// Why a gateway ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GatewayExit {
    /// The client left and nothing was open any more.
    ClientLeft,
    /// The client left, and nobody answered what was open while the gateway lingered.
    LingerOver,
    /// It was told to stop.
    Stopped,
    /// The client sent a line over the limit.
    ClientBroken,
}

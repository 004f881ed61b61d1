use std::time::Duration;

/// How long a tool call is held before its pending result ends the client's request, counted from its arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// This long, whatever the client.
    Fixed(Duration),
    /// Longer for clients that are known to wait, else as by default.
    Auto,
}

impl Hold {
    /// Below the 60 seconds after which unknown clients give up.
    pub const DEFAULT: Self = Self::Fixed(Duration::from_secs(45));

    /// How long for a client of this name.
    pub(crate) fn for_client(self, client: Option<&str>) -> Duration {
        match (self, client) {
            (Self::Fixed(hold), _) => hold,
            // These wait for hours unless they are told otherwise (measured; see docs/gateway.md).
            (Self::Auto, Some("claude-code" | "Visual Studio Code")) => Duration::from_secs(30 * 60),
            // Its default tool time-out is 300 seconds.
            (Self::Auto, Some("codex-mcp-client" | "inspector-client")) => Duration::from_secs(240),
            (Self::Auto, _) => Duration::from_secs(45),
        }
    }
}

//! The gate of a server, for an agent's calls.

use std::sync::Arc;
use std::time::Duration;

use sayso::policy::Decision;
use sayso::wire::{Gated, NewGate, Round};
use sayso_core::error::Error;
use sayso_core::limits::WAIT_MS_MAX;
use tokio::time::{Instant, sleep};

use super::call::{Call, PAUSE_MIN, longer};
use super::{ClientOptions, Link};

/// The gate of a server, which judges by its own policy. Cheap to clone.
#[derive(Clone)]
pub struct GateClient {
    link: Arc<Link>,
}

impl GateClient {
    /// Reaches the server with an agent's token. Nothing is sent before something is asked for.
    pub fn new(options: &ClientOptions) -> Result<Self, Error> {
        Ok(Self { link: Arc::new(Link::to(options)?) })
    }

    /// Judges a call and waits for nobody. An answer that is lost on the way is spent: the same call asks again.
    pub async fn judge(&self, call: &NewGate) -> Result<Gated, Error> {
        self.link.call(Call::send("/v1/gate", call)?.once()).await
    }

    /// Judges a call, and where a person is asked waits for the answer, at most for `wait`, also while the server
    /// restarts: then the round goes on. `on_pause` hears of each round once it is stored.
    pub async fn pass(&self, call: &NewGate, wait: Duration, on_pause: impl Fn(&Round)) -> Result<Gated, Error> {
        let until = Instant::now() + wait;
        let mut gated = self.judge(call).await?;
        let (mut told, mut pause) = (None, PAUSE_MIN);
        loop {
            let Some(round) = gated.round.as_ref().filter(|_| gated.verdict == Decision::Ask) else { return Ok(gated) };
            if told.replace(round.round_id) != Some(round.round_id) {
                on_pause(round);
            }
            let left = until.saturating_duration_since(Instant::now()).min(Duration::from_millis(WAIT_MS_MAX));
            if left.is_zero() {
                return Ok(gated);
            }
            let path = format!("/v1/gate?wait={}ms", left.as_millis());
            match self.link.call::<Gated>(Call::send(path, call)?.held(left).once()).await {
                Ok(next) => (gated, pause) = (next, PAUSE_MIN),
                // The question is stored, whatever becomes of the server meanwhile.
                Err(Error::Timeout | Error::Unavailable(_)) => {
                    sleep(pause.min(until.saturating_duration_since(Instant::now()))).await;
                    pause = longer(pause);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

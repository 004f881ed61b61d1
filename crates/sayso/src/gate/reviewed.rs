use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use sayso_core::policy::ToolName;
use sayso_core::principal::Principal;
use sayso_core::round::Digest;

use super::Call;

/// Tools whose definition is remembered. Past this all are forgotten, as a restart forgets them: what is judged next
/// counts as first seen.
const TOOLS_MAX: usize = 16_384;

/// A tool, in one agent's session.
type Known = (Principal, String, ToolName);

/// The definitions under which tools were last judged, or last approved, in this process.
#[derive(Clone, Default)]
pub(super) struct Reviewed(Arc<Mutex<HashMap<Known, Digest>>>);

impl Reviewed {
    /// The call's definition, where it is another than the session knows. The first is taken as it is.
    pub(super) fn changed(&self, caller: &Principal, call: &Call) -> Option<Digest> {
        let now = call.definition();
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&key(caller, call)).filter(|reviewed| **reviewed != now).map(|_| now)
    }

    /// The definition under which this call was judged is the one that its session knows from now on.
    pub(super) fn review(&self, caller: &Principal, call: &Call) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= TOOLS_MAX {
            known.clear();
        }
        known.insert(key(caller, call), call.definition());
    }
}

fn key(caller: &Principal, call: &Call) -> Known {
    (caller.clone(), call.session.clone(), call.tool.clone())
}

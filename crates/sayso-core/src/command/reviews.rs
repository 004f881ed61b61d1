//! Which definition of a tool was last reviewed, for one agent. There is no event: what a person approved, and what the
//! policy decided alone, has its own.

use super::apply::{Decided, Stop, Work};
use super::{Reply, View, Write};
use crate::error::Error;
use crate::limits::TOOLS_REVIEWED_MAX;
use crate::principal::Principal;
use crate::round::Digest;

pub(super) fn record<V: View>(work: &mut Work<V>, by: &Principal, tool: &str, definition: Digest) -> Decided<V> {
    match work.view.reviewed(by, tool).map_err(Stop::Read)? {
        Some(stored) if stored == definition => return Ok(Reply::Done),
        Some(_) => {}
        None if work.view.tools_reviewed(by).map_err(Stop::Read)? >= TOOLS_REVIEWED_MAX => {
            let message = format!("of one agent at most {TOOLS_REVIEWED_MAX} tools are known");
            return Err(Error::Limit(message).into());
        }
        None => {}
    }
    work.writes.push(Write::Reviewed { by: by.clone(), tool: tool.to_owned(), definition, at: work.now });
    Ok(Reply::Done)
}

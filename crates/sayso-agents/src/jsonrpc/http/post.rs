//! A plain exchange of JSON, for what is no MCP: one text goes out, one comes back.

use hyper::Method;

use super::endpoint::Endpoint;
use super::exchange::Ask;
use super::fault::HttpFault;

/// What was answered, of whatever status.
pub struct Posted {
    /// The status.
    pub status: u16,
    /// The body; of an answer that is no success it is not kept, as it may repeat what was sent.
    pub text: String,
}

impl Endpoint {
    /// Posts a JSON text and reads the whole answer, at most 16 MiB of it.
    pub async fn post(&self, text: String) -> Result<Posted, HttpFault> {
        let answer = self.ask(Ask { method: Method::POST, headers: Vec::new(), message: Some(text) }).await?;
        let status = answer.status;
        if status.is_redirection() {
            return Err(HttpFault::Redirected(status.as_u16()));
        }
        let text = if status.is_success() { answer.text(&self.address).await? } else { String::new() };
        Ok(Posted { status: status.as_u16(), text })
    }
}

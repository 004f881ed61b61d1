use std::sync::Arc;

use sayso::Error;
use sayso::kit::Server;

use crate::jsonrpc::{Endpoint, Program, Transport};

/// The way to a server. One that cannot be reached from here is an [`Error::Model`]; nothing is started yet.
pub fn reach(server: &Server) -> Result<Arc<dyn Transport>, Error> {
    Ok(match server {
        Server::Stdio(server) => Arc::new(Program(server.command.iter().map(Into::into).collect())),
        Server::Http(server) => Arc::new(Endpoint::new(server)?),
    })
}

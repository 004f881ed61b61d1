//! A `sayso serve` that a command works with, in the place of a data folder.

use clap::Args as ClapArgs;
use sayso::Error;
use sayso_http::client::ClientOptions;

use crate::args::Place;
use crate::error::CommandError;
use crate::{credential, output};

/// Which server, if one.
#[derive(Debug, ClapArgs)]
pub struct Remote {
    /// Keep the rounds at a `sayso serve` instead of in the data folder; needs --token-file with an agent's token
    #[arg(long, value_name = "URL")]
    pub server: Option<String>,
    /// Allow a --server on another machine; the traffic is not encrypted
    #[arg(long, requires = "server")]
    server_anywhere: bool,
}

impl Remote {
    /// How the server is reached; none where the command works on a data folder or database.
    pub fn options(&self, place: &Place) -> Result<Option<ClientOptions>, CommandError> {
        let Some(server) = &self.server else { return Ok(None) };
        let Some(file) = &place.token_file else {
            return Err(CommandError::Usage {
                message: "--server needs a token to ask with".to_owned(),
                help: "pass --token-file FILE; `sayso token new --kind agent --name NAME` on the server's machine \
                       makes one"
                    .to_owned(),
            });
        };
        let options = ClientOptions::new(server, credential::read_token(file)?);
        if !self.server_anywhere {
            return Ok(Some(options));
        }
        output::note("warning: whoever is on the way to the server can read the token and every answer");
        Ok(Some(options.unencrypted_to_anywhere()))
    }

    /// What to do about a server that cannot be reached, or refuses the token.
    pub fn advise(&self, error: Error) -> CommandError {
        let server = self.server.as_deref().unwrap_or_default();
        let help = match &error {
            Error::Unavailable(_) => format!("start `sayso serve`, and see that {server} reaches it"),
            Error::Forbidden(_) => "use an agent's token: a person's answers, and never asks".to_owned(),
            Error::Validation { fields, .. } if fields.iter().all(|field| field.pointer == "/server") => {
                "let a tunnel listen here (ssh -L 7717:127.0.0.1:7717 HOST), or add --server-anywhere if the network is \
                 yours"
                    .to_owned()
            }
            Error::Unauthenticated(_) => {
                "`sayso token new --kind agent --name NAME` on the server's machine makes a token".to_owned()
            }
            _ => return error.into(),
        };
        CommandError::Advised { error, help }
    }
}

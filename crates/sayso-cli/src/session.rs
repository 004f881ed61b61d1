//! An opened store, and who this command acts as in it.

use sayso::{Channel, Error, LocalPeople, People as _, Principal, RoundFilter, RoundId, Sayso, Status, wire};
use sayso_core::json::visible;

use crate::account;
use crate::args::Place;
use crate::credential::{self, Stdin, Terminals};
use crate::data_folder::Missing;
use crate::error::CommandError;
use crate::store;

/// The shortest piece of an id that may stand for it: below this, two rounds of one day soon look the same.
const ID_CHARS_MIN: usize = 6;

/// The rounds of a store as one authenticated caller.
pub struct Session {
    /// The opened store.
    pub sayso: Sayso,
    /// Who acts: the owner at a terminal, or whoever the token speaks for.
    pub caller: Principal,
}

impl Session {
    /// Checks who is calling, then opens the store; refused, it has touched nothing.
    pub async fn open(place: &Place, stdin: Stdin, missing: Missing) -> Result<Self, CommandError> {
        let secret = match &place.token_file {
            Some(file) => Some(credential::read_token(file)?),
            None => {
                credential::check_local(Terminals::of_process(), stdin)?;
                None
            }
        };
        let store = store::resolve(place)?;
        store.check(missing)?;
        let owner = account::owner(place.account.as_deref());
        let sayso = Sayso::open(store.options().person(owner.clone())).await?;
        let caller = match secret {
            Some(secret) => sayso.authenticate(&secret).await?,
            None => owner,
        };
        Ok(Self { sayso, caller })
    }

    /// The person's verbs, as this caller on the command line.
    pub fn people(&self) -> LocalPeople {
        self.sayso.people_as(self.caller.clone(), Channel::Cli)
    }

    /// The round that `text` names: a whole id, or at least six characters that only one pending round's id begins or
    /// ends with; where no pending one fits, one of the newest.
    pub async fn round(&self, text: &str) -> Result<wire::Round, CommandError> {
        if let Ok(id) = RoundId::parse(text) {
            return self.people().show(id).await.map_err(CommandError::about(id));
        }
        let piece = text.strip_prefix("rnd_").unwrap_or(text).to_ascii_uppercase();
        if piece.len() < ID_CHARS_MIN || !piece.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(CommandError::Advised {
                error: Error::field(
                    "/id",
                    "must be a round's id, or six characters or more that it begins or ends with",
                ),
                help: "`sayso list` prints the ids".to_owned(),
            });
        }
        let mut found = self.pending(&piece).await?;
        if found.is_empty() {
            let newest = self.people().list(RoundFilter::default()).await?;
            found = newest.rounds.into_iter().filter(|round| is_named(round, &piece)).collect();
        }
        match found.len() {
            1 => found.pop().ok_or_else(|| Error::NotFound("round").into()),
            0 => Err(Error::NotFound("round").into()),
            _ => Err(CommandError::Advised {
                error: Error::field("/id", format!("{} names {} rounds", visible(text), found.len())),
                help: format!(
                    "give more of the id, one of: {}",
                    found.iter().take(5).map(|round| round.round_id.to_string()).collect::<Vec<_>>().join(", ")
                ),
            }),
        }
    }

    async fn pending(&self, piece: &str) -> Result<Vec<wire::Round>, CommandError> {
        let mut found = Vec::new();
        let mut before = None;
        loop {
            let filter = RoundFilter { status: Some(Status::Pending), before, ..RoundFilter::default() };
            let page = self.people().list(filter).await?;
            found.extend(page.rounds.into_iter().filter(|round| is_named(round, piece)));
            match page.next_cursor {
                Some(cursor) => before = Some(cursor),
                None => return Ok(found),
            }
        }
    }
}

fn is_named(round: &wire::Round, piece: &str) -> bool {
    let id = round.round_id.to_string();
    let body = id.strip_prefix("rnd_").unwrap_or(&id);
    body.starts_with(piece) || body.ends_with(piece)
}

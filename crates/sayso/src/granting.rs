//! Approving a call and allowing more like it, in one transaction; and what a grant was used for.

use sayso_core::command::{Command, Reply};
use sayso_core::error::Error;
use sayso_core::event::{Event, EventBody};
use sayso_core::id::{GrantId, RoundId};
use sayso_core::limits::{GRANT_USES_PAGES_MAX, PAGE_ROWS_MAX};
use sayso_core::policy::Grant;
use sayso_core::response::Action;
use sayso_core::wire::{self, Answer};

use crate::NewGrant;
use crate::people::{LocalPeople, People, Submitting};

impl LocalPeople {
    /// Approves a round as it was shown and allows calls to come: both are stored, or neither. Where `new` has an id, a
    /// repeat of the same answer gives no second grant.
    pub async fn approve_and_grant(
        &self,
        round: RoundId,
        answer: Answer,
        key: &str,
        new: NewGrant,
    ) -> Result<wire::Round, Error> {
        let is_as_shown = |response: &wire::Response| response.action == Action::Accept && response.content.is_none();
        if !answer.responses.0.iter().all(|(_, response)| is_as_shown(response)) {
            return Err(Error::field(
                "/responses",
                "approves other than what was shown; more is allowed only as shown",
            ));
        }
        let id = new.id;
        let granting = self.granting(NewGrant { round: Some(round), ..new }).await?;
        let Submitting { question, command } = self.submitting(round, &answer, key).await?;
        if self.has_granted(id, round).await? {
            return self.answer(round, answer, key).await;
        }
        let submission = match &command {
            Command::Submit { submission, .. } => submission.clone(),
            _ => return Err(Error::Corrupt("round")),
        };
        match self.sayso.store().commit(vec![command, granting]).await {
            Ok(replies) => match replies.into_iter().next() {
                Some(Reply::Round(row)) => Ok(question.shown(&row)),
                _ => Err(Error::Corrupt("round")),
            },
            // The same form was sent twice at the same moment.
            Err(Error::Conflict { .. }) if self.has_granted(id, round).await? => self.answer(round, answer, key).await,
            Err(error @ Error::Unavailable(_)) => Err(error),
            Err(error) => Err(self.refuse(round, submission, error).await),
        }
    }

    async fn has_granted(&self, id: Option<GrantId>, round: RoundId) -> Result<bool, Error> {
        let Some(id) = id else { return Ok(false) };
        let known = self.sayso.store().grant(id).await?;
        Ok(known.is_some_and(|grant| grant.round == Some(round) && grant.granted_by == self.caller))
    }

    /// What calls ran on a grant: the events of its use, the last one first, and where the next page begins. A page is
    /// short, or empty, where others' events fill what one page looks at.
    pub async fn grant_uses(&self, grant: &Grant, before: Option<u64>) -> Result<(Vec<Event>, Option<u64>), Error> {
        self.check_person()?;
        let is_first = before.is_none();
        let mut before = match before {
            Some(seq) => seq,
            None => self.sayso.last_event().await?.saturating_add(1),
        };
        let rows = u64::try_from(PAGE_ROWS_MAX).unwrap_or(u64::MAX);
        let mut uses = Vec::new();
        for _ in 0..GRANT_USES_PAGES_MAX {
            let after = before.saturating_sub(rows.saturating_add(1));
            let events = self.sayso.store().events_after(after, PAGE_ROWS_MAX).await?;
            for event in events.into_iter().rev().filter(|event| event.seq < before) {
                match event.event.body {
                    EventBody::GrantUsed { grant_id } if grant_id == grant.id => uses.push(event),
                    EventBody::GrantAdded { grant_id } if grant_id == grant.id => return Ok((uses, None)),
                    _ => continue,
                }
                if is_first && u32::try_from(uses.len()).is_ok_and(|found| found >= grant.uses) {
                    return Ok((uses, None));
                }
                if let Some(last) = uses.last().filter(|_| uses.len() == PAGE_ROWS_MAX) {
                    let next = last.seq;
                    return Ok((uses, Some(next)));
                }
            }
            before = after.saturating_add(1);
            if after == 0 {
                return Ok((uses, None));
            }
        }
        Ok((uses, Some(before)))
    }
}

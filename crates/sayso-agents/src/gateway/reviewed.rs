//! Which definition of a tool was last reviewed, by the store: read once for each tool that is called, and again once the
//! upstream has listed its tools anew. What is not stored is not remembered either.

use sayso::policy::{Basis, Decision, Verdict};
use sayso::{Digest, Error, PolicyRuling, Step, words};
use sayso_core::round::OperationKind;

use super::gate::{Judgement, Subject};
use super::session::Session;

impl Session {
    /// As [`Session::judge`], with what was reviewed of the tool. That can only add a question: a denial stands whether or
    /// not it can be read, and nothing else does. Prompts and resources have no definitions.
    pub(super) async fn judge_reviewed(&mut self, subject: &mut Subject) -> Result<Judgement, Error> {
        let judged = self.judge(subject);
        if subject.kind != OperationKind::Tool || judged.verdict.decision == Decision::Deny {
            return Ok(judged);
        }
        // One that is no longer listed is another than it was, too.
        let now = subject.definition.unwrap_or_else(|| Digest::of_text("null"));
        match self.last_reviewed(subject).await? {
            // The first is taken as it is. Where there is none, nothing is known to compare the next one with.
            None => subject.unreviewed = subject.definition,
            Some(reviewed) if reviewed == now => {}
            Some(_) => {
                subject.unreviewed = Some(now);
                subject.changed_definition = Some(now);
                return Ok(self.judge(subject));
            }
        }
        Ok(judged)
    }

    async fn last_reviewed(&mut self, subject: &Subject) -> Result<Option<Digest>, Error> {
        let name = subject.tool.name();
        if let Some(known) = self.reviewed.get(name) {
            return Ok(Some(*known));
        }
        let stored = self.desk.reviewed(&subject.tool.to_string()).await?;
        self.remember(subject, stored);
        Ok(stored)
    }

    /// Of tools that are listed: of others a client may name any number. That there is nothing yet is not remembered, since
    /// another process may store the first.
    pub(super) fn remember(&mut self, subject: &Subject, stored: Option<Digest>) {
        if let (Some(stored), Some(_)) = (stored, subject.definition) {
            self.reviewed.insert(subject.tool.name().to_owned(), stored);
        }
    }

    /// Stores what must be there before the call is asked about: the first definition of its tool, which is taken as it is.
    /// Every other one is reviewed when a call under it is allowed.
    pub(super) async fn store_before_asking(&mut self, subject: &mut Subject) -> Result<(), Error> {
        match subject.changed_definition {
            Some(_) => Ok(()),
            None => self.store_reviewed(subject).await,
        }
    }

    /// Stores the definition under which a call runs that a person has approved.
    pub(super) async fn store_reviewed(&mut self, subject: &mut Subject) -> Result<(), Error> {
        self.store_before(subject, None).await
    }

    /// Stores what must be there before a call runs of which nobody was asked: what the mode alone lets run, and the
    /// definition under which it does. Nothing is written where both are known.
    pub(super) async fn store_before_running(&mut self, subject: &mut Subject, verdict: &Verdict) -> Result<(), Error> {
        let ruling = (verdict.basis == Basis::Mode).then(|| Self::ruling(subject, verdict));
        self.store_before(subject, ruling).await
    }

    async fn store_before(&mut self, subject: &mut Subject, ruling: Option<PolicyRuling>) -> Result<(), Error> {
        let tool = subject.tool.to_string();
        let reviewed = subject.unreviewed.map(|definition| Step::Reviewed { tool, definition });
        let steps: Vec<_> = ruling.map(Step::Ruled).into_iter().chain(reviewed).collect();
        if steps.is_empty() {
            return Ok(());
        }
        self.desk.settle(steps).await?;
        let stored = subject.unreviewed.take();
        self.remember(subject, stored);
        Ok(())
    }
}

/// What the agent reads of a call that does not run because what was reviewed could not be read or stored.
pub(super) fn unavailable_words(error: &Error) -> String {
    match error {
        Error::Limit(_) => format!("{} ({error})", words::APPROVAL_UNAVAILABLE),
        _ => words::APPROVAL_UNAVAILABLE.to_owned(),
    }
}

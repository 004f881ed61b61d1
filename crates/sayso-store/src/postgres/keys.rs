//! Which rows a command will look at. What is named here is loaded up front; what is forgotten costs a second look, and
//! nothing else.

use std::collections::BTreeSet;

use sayso_core::command::{Command, RoundExecution};
use sayso_core::id::{ExecutionId, GrantId, RoundId, TokenId};

/// One thing that is looked up.
#[derive(Debug, Clone)]
pub(super) enum Key {
    Round(RoundId),
    Unfinished(ExecutionId),
    Operation(ExecutionId, String),
    Creation(String, String),
    Execution(ExecutionId),
    Owner(String),
    Content(RoundId),
    TokenByHash([u8; 32]),
    Token(TokenId),
    Grant(GrantId),
    Sessions(String),
    /// By agent and tool.
    Reviewed(String, String),
    /// By agent.
    ToolsReviewed(String),
}

/// What is to be loaded. Sets, so that rows are asked for, and locked, in the order of their keys.
#[derive(Debug, Default)]
pub(super) struct Keys {
    /// Rounds, each with the lease of whoever holds it.
    pub(super) rounds: BTreeSet<RoundId>,
    /// Of these rounds, those whose executions are read too.
    pub(super) with_execution: BTreeSet<RoundId>,
    /// Of these rounds, those that may finish, and with them an execution that ends with its last round.
    pub(super) finishing: BTreeSet<RoundId>,
    /// Executions by their own ids.
    pub(super) executions: BTreeSet<ExecutionId>,
    /// Executions of which every unfinished round is read.
    pub(super) unfinished: BTreeSet<ExecutionId>,
    /// Executions that begin with their command: nothing of them is stored yet.
    pub(super) begun: BTreeSet<ExecutionId>,
    pub(super) owners: BTreeSet<String>,
    pub(super) contents: BTreeSet<RoundId>,
    pub(super) operations: BTreeSet<(ExecutionId, String)>,
    /// By principal and key.
    pub(super) creations: BTreeSet<(String, String)>,
    pub(super) tokens: BTreeSet<TokenId>,
    pub(super) grants: BTreeSet<GrantId>,
    pub(super) token_hashes: BTreeSet<[u8; 32]>,
    /// Principals of which every session and one-time link is read.
    pub(super) sessions: BTreeSet<String>,
    /// By agent and tool.
    pub(super) reviewed: BTreeSet<(String, String)>,
    /// Agents whose tools are counted: only where one of them is new, so that no command names them.
    pub(super) tools_reviewed: BTreeSet<String>,
}

impl Keys {
    /// What these commands will look at, as far as they say.
    pub(super) fn of<'a>(commands: impl Iterator<Item = &'a Command>) -> Self {
        let mut keys = Self::default();
        for command in commands {
            keys.add_command(command);
        }
        keys
    }

    /// What was found missing while the commands were applied.
    pub(super) fn missing(missing: Vec<Key>) -> Self {
        let mut keys = Self::default();
        for key in missing {
            keys.add(key);
        }
        keys
    }

    /// Whether all of it is of a kind that is remembered.
    pub(super) fn can_be_guessed(&self) -> bool {
        self.unfinished.is_empty()
            && self.operations.is_empty()
            && self.tokens.is_empty()
            && self.grants.is_empty()
            && self.token_hashes.is_empty()
            && self.sessions.is_empty()
            && self.reviewed.is_empty()
            && self.tools_reviewed.is_empty()
    }

    fn add(&mut self, key: Key) {
        match key {
            Key::Round(id) => drop(self.rounds.insert(id)),
            Key::Unfinished(id) => drop(self.unfinished.insert(id)),
            Key::Operation(id, operation) => drop(self.operations.insert((id, operation))),
            Key::Creation(principal, key) => drop(self.creations.insert((principal, key))),
            Key::Execution(id) => drop(self.executions.insert(id)),
            Key::Owner(owner) => drop(self.owners.insert(owner)),
            Key::Content(id) => drop(self.contents.insert(id)),
            Key::TokenByHash(hash) => drop(self.token_hashes.insert(hash)),
            Key::Token(id) => drop(self.tokens.insert(id)),
            Key::Grant(id) => drop(self.grants.insert(id)),
            Key::Reviewed(agent, tool) => drop(self.reviewed.insert((agent, tool))),
            Key::ToolsReviewed(agent) => drop(self.tools_reviewed.insert(agent)),
            Key::Sessions(principal) => drop(self.sessions.insert(principal)),
        }
    }

    fn add_command(&mut self, command: &Command) {
        match command {
            Command::CreateRound(new) => {
                if let Some(creation) = &new.creation {
                    self.creations.insert((new.asked_by.to_string(), creation.key.clone()));
                }
                if let Some(fence) = &new.fence {
                    self.owners.insert(fence.owner.clone());
                }
                match &new.execution {
                    RoundExecution::Existing(id) | RoundExecution::Suspending(id) => {
                        self.executions.insert(*id);
                        self.operations.insert((*id, new.logical_operation_id.clone()));
                    }
                    RoundExecution::New { id, .. } => drop(self.begun.insert(*id)),
                }
            }
            Command::CreateRecord { new, .. } => {
                self.rounds.insert(new.id);
                if let Some(creation) = &new.creation {
                    self.creations.insert((new.asked_by.to_string(), creation.key.clone()));
                }
                let (RoundExecution::Existing(id) | RoundExecution::Suspending(id) | RoundExecution::New { id, .. }) =
                    &new.execution;
                self.executions.insert(*id);
                self.operations.insert((*id, new.logical_operation_id.clone()));
            }
            Command::Submit { round, .. } | Command::RecordRefusal { round, .. } => self.add_ending(*round, false),
            Command::Resolve { round, .. }
            | Command::Fail { round, .. }
            | Command::FailRecovery { round, .. }
            | Command::Expire { round } => self.add_ending(*round, true),
            Command::Collect { round, .. } => {
                self.add_ending(*round, true);
                self.contents.insert(*round);
            }
            Command::StartDelivery { round, .. } => {
                self.rounds.insert(*round);
                self.contents.insert(*round);
            }
            Command::Claim { round, .. } | Command::MarkDelivered { round, .. } | Command::CompleteUrl { round } => {
                self.rounds.insert(*round);
            }
            Command::StartExecution { execution, .. } => drop(self.begun.insert(*execution)),
            Command::Finish { execution, .. } | Command::MarkCollected { execution } => {
                self.executions.insert(*execution);
            }
            Command::Orphan { execution, owner } => {
                self.executions.insert(*execution);
                self.unfinished.insert(*execution);
                self.owners.insert(owner.clone());
            }
            Command::Cancel { execution, .. } => {
                self.executions.insert(*execution);
                self.unfinished.insert(*execution);
            }
            Command::AddGrant { grant, not_by_starter_of, .. } => {
                self.grants.insert(grant.id);
                self.executions.extend(not_by_starter_of);
            }
            Command::UseGrant { grant, .. } | Command::RevokeGrant { grant, .. } => drop(self.grants.insert(*grant)),
            Command::RecordReview { by, tool, .. } => drop(self.reviewed.insert((by.to_string(), tool.clone()))),
            Command::RevokeToken { token, .. } => drop(self.tokens.insert(*token)),
            Command::UseLogin { login_hash, .. } => drop(self.token_hashes.insert(*login_hash)),
            Command::RenewOwner { .. }
            | Command::ReleaseOwner { .. }
            | Command::RecordRuling { .. }
            | Command::AddToken { .. } => {}
        }
    }

    /// A round whose execution is written when it moves on.
    fn add_ending(&mut self, round: RoundId, finishes: bool) {
        self.rounds.insert(round);
        self.with_execution.insert(round);
        if finishes {
            self.finishing.insert(round);
        }
    }
}

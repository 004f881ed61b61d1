//! What the statements found, as the rows of the batch: also that there is no such row.

use std::sync::Arc;

use sayso_core::command::Operation;
use sayso_core::id::{ExecutionId, GrantId, RoundId, TokenId};
use sayso_core::round::{Digest, OperationKind};
use tokio_postgres::Row;

use super::super::keys::Keys;
use super::super::memory::Rows;
use super::super::rows;
use super::super::value::{Columns, Corrupt};

pub(super) fn executions(keys: &Keys, loaded: &mut Rows, found: &[Row]) -> Result<(), Corrupt> {
    loaded.begun.extend(&keys.begun);
    for id in &keys.executions {
        loaded.executions.entry(*id).or_insert(Ok(None));
    }
    for row in found {
        let columns = Columns::of(row, "execution");
        let id = columns.id(0, ExecutionId::from_bytes)?;
        loaded.revs.insert(id, columns.get(rows::EXECUTION_COLUMN_COUNT)?);
        loaded.executions.insert(id, rows::read_execution(row).map(|row| Some(Arc::new(row))));
    }
    Ok(())
}

pub(super) fn counts(loaded: &mut Rows, found: &[Row]) -> Result<(), Corrupt> {
    for row in found {
        let columns = Columns::of(row, "execution");
        if let Some(Ok(Some(execution))) = loaded.executions.get_mut(&columns.id(0, ExecutionId::from_bytes)?) {
            let execution = Arc::make_mut(execution);
            (execution.pending_inputs, execution.pending_approvals) = (columns.count(1)?, columns.count(2)?);
        }
    }
    Ok(())
}

pub(super) fn rounds<'a>(keys: &Keys, loaded: &mut Rows, found: impl Iterator<Item = &'a Row>) -> Result<(), Corrupt> {
    for id in &keys.rounds {
        loaded.rounds.entry(*id).or_insert(Ok(None));
    }
    for row in found {
        let columns = Columns::of(row, "round");
        let id = columns.id(0, RoundId::from_bytes)?;
        let execution = columns.id(1, ExecutionId::from_bytes)?;
        loaded.rounds.insert(id, rows::read_round(row).map(Arc::new).map(Some));
        loaded.members.entry(execution).or_default().insert(id);
        let ends_with_round = matches!(loaded.executions.get(&execution), Some(Ok(Some(row))) if row.ends_with_round);
        if ends_with_round && keys.finishing.contains(&id) {
            loaded.complete.insert(execution);
        }
    }
    loaded.complete.extend(&keys.unfinished);
    Ok(())
}

/// Whoever has no row does not live.
pub(super) fn owners(keys: &Keys, loaded: &mut Rows, found: &[Row]) -> Result<(), Corrupt> {
    let holders = keys.rounds.iter().filter_map(|id| match loaded.rounds.get(id) {
        Some(Ok(Some(round))) => round.fence.as_ref().map(|fence| fence.owner.clone()),
        _ => None,
    });
    for owner in holders.chain(keys.owners.iter().cloned()).collect::<Vec<_>>() {
        loaded.owners.entry(owner).or_insert(None);
    }
    for row in found {
        let columns = Columns::of(row, "owner");
        loaded.owners.insert(columns.get(0)?, Some(columns.time(1)?));
    }
    Ok(())
}

pub(super) fn contents(loaded: &mut Rows, found: &[Row]) -> Result<(), Corrupt> {
    for row in found {
        let columns = Columns::of(row, "answer");
        let id = columns.id(0, RoundId::from_bytes)?;
        let answer = if columns.is_null(1) { Ok(None) } else { columns.json(1).map(Some) };
        // Stored from a text of ours: anything else is as unreadable as the answer would be.
        let state = columns.get::<Option<&[u8]>>(2)?.map(|bytes| String::from_utf8(bytes.to_vec())).transpose();
        loaded.answers.insert(id, state.as_ref().map_or(Err(columns.corrupt()), |_| answer));
        loaded.request_states.insert(id, state.unwrap_or_default());
    }
    Ok(())
}

pub(super) fn operations(keys: &Keys, loaded: &mut Rows, found: &[Row]) -> Result<(), Corrupt> {
    for key in &keys.operations {
        loaded.operations.entry(key.clone()).or_insert(Ok(None));
    }
    for row in found {
        let columns = Columns::of(row, "round");
        let operation = || {
            Ok(Operation {
                last_index: columns.count(2)?,
                server: columns.get(3)?,
                operation_kind: columns.word(4, OperationKind::parse)?,
                operation_name: columns.get(5)?,
            })
        };
        let key = (columns.id(0, ExecutionId::from_bytes)?, columns.get(1)?);
        loaded.operations.insert(key, operation().map(Some));
    }
    Ok(())
}

pub(super) fn creations(keys: &Keys, loaded: &mut Rows, found: &[Row]) -> Result<(), Corrupt> {
    for key in &keys.creations {
        loaded.creations.entry(key.clone()).or_insert(Ok(None));
    }
    for row in found {
        let columns = Columns::of(row, "creation");
        let creation = || Ok((columns.id(2, RoundId::from_bytes)?, columns.hash(3)?));
        loaded.creations.insert((columns.get(0)?, columns.get(1)?), creation().map(Some));
    }
    Ok(())
}

pub(super) fn tokens(keys: &Keys, loaded: &mut Rows, found: &[Row]) -> Result<(), Corrupt> {
    for id in &keys.tokens {
        loaded.tokens.entry(*id).or_insert(Ok(None));
    }
    for hash in &keys.token_hashes {
        loaded.tokens_by_hash.entry(*hash).or_insert(None);
    }
    for row in found {
        let columns = Columns::of(row, "token");
        let id = columns.id(0, TokenId::from_bytes)?;
        loaded.tokens.insert(id, rows::read_token(row).map(Some));
        loaded.tokens_by_hash.insert(columns.hash(3)?, Some(id));
    }
    Ok(())
}

pub(super) fn grants(keys: &Keys, loaded: &mut Rows, found: &[Row]) -> Result<(), Corrupt> {
    for id in &keys.grants {
        loaded.grants.entry(*id).or_insert(Ok(None));
    }
    for row in found {
        let id = Columns::of(row, "grant").id(0, GrantId::from_bytes)?;
        loaded.grants.insert(id, rows::read_grant(row).map(Some));
    }
    Ok(())
}

pub(super) fn sessions(keys: &Keys, loaded: &mut Rows, found: &[Row]) -> Result<(), Corrupt> {
    for principal in &keys.sessions {
        loaded.sessions.entry(principal.clone()).or_default();
    }
    for row in found {
        let columns = Columns::of(row, "token");
        let id = columns.id(0, TokenId::from_bytes)?;
        loaded.sessions.entry(columns.get(2)?).or_default().insert(id);
        loaded.tokens.insert(id, rows::read_token(row).map(Some));
    }
    Ok(())
}

pub(super) fn reviewed(keys: &Keys, loaded: &mut Rows, found: &[Row]) -> Result<(), Corrupt> {
    for key in &keys.reviewed {
        loaded.reviewed.entry(key.clone()).or_insert(Ok(None));
    }
    for row in found {
        let columns = Columns::of(row, "reviewed");
        let tool = String::from_utf8(columns.get::<&[u8]>(1)?.to_vec()).map_err(|_| columns.corrupt())?;
        let review = || Ok((columns.hash(2).map(Digest::from_bytes)?, columns.time(3)?));
        loaded.reviewed.insert((columns.get(0)?, tool), review().map(Some));
    }
    Ok(())
}

/// Whoever has no row has no tools.
pub(super) fn tools_reviewed(keys: &Keys, loaded: &mut Rows, found: &[Row]) -> Result<(), Corrupt> {
    for agent in &keys.tools_reviewed {
        loaded.tools_reviewed.insert(agent.clone(), 0);
    }
    for row in found {
        let columns = Columns::of(row, "reviewed");
        let count = usize::try_from(columns.get::<i64>(1)?).map_err(|_| columns.corrupt())?;
        loaded.tools_reviewed.insert(columns.get(0)?, count);
    }
    Ok(())
}

//! A row for tests of what handles rows.

use std::sync::Arc;

use sayso_core::id::{ExecutionId, RoundId};
use sayso_core::principal::{Channel, Principal};
use sayso_core::response::Action;
use sayso_core::round::{Answered, Delivery, Digest, Facts, Failure, Fence, FenceToken, OperationKind, Round, Status};
use sayso_core::time::UnixMs;

/// A row in which everything is there, of a server of this name.
pub(crate) fn answered(server: &str) -> Round {
    let facts = Facts {
        id: RoundId::from_parts(1, 1),
        execution_id: ExecutionId::from_parts(1, 2),
        logical_operation_id: "book-1".to_owned(),
        server: server.to_owned(),
        operation_kind: OperationKind::Prompt,
        operation_name: "book".to_owned(),
        asked_by: Principal::agent("it's ada"),
        delivery: Delivery::Live,
        index: 3,
        limit: 8,
        created_at: UnixMs(1_796_000_000_123),
        deadline: Some(UnixMs(1_796_000_000_999)),
        digest: Digest::from_bytes([3; 32]),
        has_approval: true,
    };
    Round {
        facts: Arc::new(facts),
        status: Status::Failed,
        rev: 5,
        fence: Some(Fence { owner: "own_a".to_owned(), token: FenceToken(u128::MAX) }),
        delivery_attempts: 2,
        answer_key: Some(("answer-1".to_owned(), [9; 32])),
        answered: Some(Answered {
            principal: Principal::person("local:ada"),
            channel: Channel::Inbox,
            at: UnixMs(1_796_000_000_456),
            action: Some(Action::Decline),
        }),
        collect_key: Some("collect-1".to_owned()),
        delivery_started_at: Some(UnixMs(1_796_000_000_500)),
        delivered_at: Some(UnixMs(1_796_000_000_600)),
        finished_at: Some(UnixMs(1_796_000_000_700)),
        url_completed_at: Some(UnixMs(1_796_000_000_650)),
        failure: Some(Failure::new(Failure::EXPIRED, "the deadline passed")),
    }
}

//! Which definition of a tool was last reviewed: kept for each agent, as the last of them that was recorded.

use sayso_core::command::{Command, Reply};
use sayso_core::principal::{Principal, PrincipalKind};
use sayso_core::round::{Delivery, Digest};

use super::Subject;
use super::bench::{Bench, agent};

/// A tool's name is a server's own word, and may hold anything.
const TOOL: &str = "shop:b\u{0}\u{fc}cher/\u{1f4d6}";

fn review(by: &Principal, tool: &str, definition: &str) -> Command {
    Command::RecordReview { by: by.clone(), tool: tool.to_owned(), definition: Digest::of_text(definition) }
}

pub(super) async fn the_last_definition_that_was_reviewed_is_kept<S: Subject>(bench: &Bench<S>) {
    assert_eq!(bench.store.reviewed(&agent(), TOOL).await, Ok(None));
    for definition in ["first", "second", "second", "first"] {
        bench.advance_ms(1);
        assert!(matches!(bench.run(review(&agent(), TOOL, definition)).await, Ok(Reply::Done)));
        assert_eq!(bench.store.reviewed(&agent(), TOOL).await, Ok(Some(Digest::of_text(definition))));
    }
    assert_eq!(bench.reopen().await.reviewed(&agent(), TOOL).await, Ok(Some(Digest::of_text("first"))));
    assert!(bench.events().await.is_empty(), "what was approved has its own event");
}

pub(super) async fn what_one_agent_reviewed_is_nothing_to_another<S: Subject>(bench: &Bench<S>) {
    let service = Principal { kind: PrincipalKind::Service, ..agent() };
    bench.run(review(&agent(), TOOL, "its")).await.expect("stored");
    for other in [&service, &Principal::agent("other")] {
        assert_eq!(bench.store.reviewed(other, TOOL).await, Ok(None));
    }
    assert_eq!(bench.store.reviewed(&agent(), "shop:other").await, Ok(None));
    bench.run(review(&service, TOOL, "another")).await.expect("stored");
    assert_eq!(bench.store.reviewed(&agent(), TOOL).await, Ok(Some(Digest::of_text("its"))));
}

pub(super) async fn a_review_is_stored_with_its_unit_or_not_at_all<S: Subject>(bench: &Bench<S>) {
    let pending = bench.asked(Delivery::Resumable).await.id;
    let stray = Command::StartDelivery { round: pending, fence: bench.fence("nobody") };
    let unit = vec![review(&agent(), "shop:a", "a"), review(&agent(), "shop:b", "b"), stray];
    bench.store.commit(unit).await.expect_err("nothing was answered yet");
    assert_eq!(bench.store.reviewed(&agent(), "shop:a").await, Ok(None));
    let unit = vec![review(&agent(), "shop:a", "a"), review(&agent(), "shop:b", "b"), review(&agent(), "shop:a", "c")];
    bench.store.commit(unit).await.expect("stored");
    assert_eq!(bench.store.reviewed(&agent(), "shop:a").await, Ok(Some(Digest::of_text("c"))));
    assert_eq!(bench.store.reviewed(&agent(), "shop:b").await, Ok(Some(Digest::of_text("b"))));
}

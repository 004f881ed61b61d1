//! The audit trail.

use sayso_core::command::{Command, PolicyRuling, Reply};
use sayso_core::event::EventBody;
use sayso_core::principal::Channel;
use sayso_core::round::{Delivery, Failure};

use super::Subject;
use super::bench::{BOTH, Bench, SEALED, TYPED, ada, agent, submission, submit};

/// One of everything that leaves an event on rounds.
async fn a_busy_day<S: Subject>(bench: &Bench<S>) {
    for delivery in BOTH {
        let (id, fence) = bench.deliverable(delivery).await;
        bench.start(id, &fence).await.expect("started");
        bench.advance_ms(3);
        bench.delivered(id, &fence).await.expect("delivered");
        bench.resolve(id, &fence).await.expect("resolved");
        assert!(bench.moved(submit(id, submission("late", 9))).await.is_err());
        let withdrawn = bench.asked(delivery).await;
        bench.moved(Command::CompleteUrl { round: withdrawn.id }).await.expect("noted");
        let failure = Failure::new(Failure::WITHDRAWN, "because");
        bench.fail(withdrawn.id, withdrawn.fence.as_ref(), failure).await.expect("failed");
        let execution = bench.asked(delivery).await.execution_id;
        bench.ended(Command::Cancel { execution, principal: ada() }).await.expect("cancelled");
    }
}

pub(super) async fn events_are_numbered_without_gaps_and_linked_by_hash<S: Subject>(bench: &Bench<S>) {
    assert_eq!(bench.store.last_event().await, Ok(0));
    a_busy_day(bench).await;
    let events = bench.events().await;
    bench.check_chain().await;
    let last = bench.store.last_event().await.expect("is read");
    assert_eq!(usize::try_from(last), Ok(events.len()));
    let page = bench.store.events_after(3, 2).await.expect("events");
    assert_eq!(page, events[3..5], "a page starts after its cursor");
    assert_eq!(bench.store.events_after(last, 10).await, Ok(Vec::new()));
    assert_eq!(bench.store.events_after(u64::MAX, 10).await, Ok(Vec::new()));
}

pub(super) async fn an_event_names_who_did_it_and_never_what_was_typed<S: Subject>(bench: &Bench<S>) {
    a_busy_day(bench).await;
    for event in bench.events().await {
        let printed = format!("{event:?}");
        assert!(!printed.contains(TYPED) && !printed.contains("sealed"), "{printed}");
        let by = event.event.principal;
        match event.event.body {
            EventBody::ExecutionCreated | EventBody::RoundCreated => assert_eq!(by, Some(agent())),
            EventBody::Answered | EventBody::ResponseRefused { .. } => {
                assert_eq!((by, event.event.channel), (Some(ada()), Some(Channel::Library)));
            }
            EventBody::Input { submitted_by } => assert_eq!((by, submitted_by), (Some(ada()), ada())),
            _ => {}
        }
    }
}

pub(super) async fn what_a_policy_decides_alone_is_an_event_of_its_own<S: Subject>(bench: &Bench<S>) {
    let rule = "operator never".to_owned();
    let ruling = PolicyRuling { tool: "bank:close".to_owned(), approved: false, rule };
    let command = Command::RecordRuling { by: agent(), ruling };
    assert!(matches!(bench.run(command).await, Ok(Reply::Done)));
    bench.check_chain().await;
    let events = bench.events().await;
    let [stored] = events.as_slice() else { panic!("{events:?}") };
    let event = &stored.event;
    assert_eq!((event.round_id, event.execution_id, event.principal.clone()), (None, None, Some(agent())));
    assert_eq!((event.at, event.channel), (bench.now().await, Some(Channel::Service)));
    let written = serde_json::to_string(&event.body).expect("is written");
    let expected = r#"{"event":"approval","request_key":"call","approved":false,"decided_by":"policy operator never","tool":"bank:close"}"#;
    assert_eq!(written, expected);
}

pub(super) async fn the_opaque_state_is_handed_over_byte_for_byte_and_erased_at_the_end<S: Subject>(bench: &Bench<S>) {
    let (id, fence) = bench.deliverable(Delivery::Resumable).await;
    let start = || Command::StartDelivery { round: id, fence: fence.clone() };
    assert_eq!(bench.store.request_state(id).await.expect("is read").as_deref(), Some(SEALED), "reading takes nothing");
    for _ in 0..2 {
        let content = bench.handed(start()).await.expect("handed over");
        assert_eq!(content.request_state.as_deref(), Some(SEALED));
    }
    let round = bench.answered(Delivery::Resumable).await;
    let first = bench.collect(round.id, "once").await.expect("collected");
    assert_eq!(first.request_state.as_deref(), Some(SEALED));
    let again = bench.collect(round.id, "once").await.expect("collected again");
    assert_eq!(again.request_state, None, "erased when the round was finished");
    assert_eq!(bench.store.request_state(round.id).await, Ok(None));
}

//! `submit_responses`.

use sayso_core::command::{Command, Verdict};
use sayso_core::error::{Error, ErrorCode};
use sayso_core::limits::LEASE_MS;
use sayso_core::principal::{Channel, Principal};
use sayso_core::response::Action;
use sayso_core::round::{Delivery, Digest, Failure, Status, Submission};

use super::Subject;
use super::bench::{BOTH, Bench, CONFLICT, INVALID, STATE, ada, code, failure_of, json, submission, submit};

pub(super) async fn one_answer_wins_and_the_others_are_told_who<S: Subject>(bench: &Bench<S>) {
    for delivery in BOTH {
        let round = bench.asked(delivery).await;
        bench.advance_ms(7);
        let first = Submission { channel: Channel::Inbox, action: Some(Action::Accept), ..submission("first", 1) };
        let accepted = bench.moved(submit(round.id, first)).await.expect("accepted");
        assert_eq!((accepted.status, accepted.rev), (Status::ResponseValidated, 2));
        bench.advance_ms(1);
        let second = Submission { principal: Principal::person("bob"), ..submission("second", 1) };
        let Err(Error::Conflict { winner: Some(winner), .. }) = bench.moved(submit(round.id, second)).await else {
            panic!("the second loses")
        };
        assert_eq!((winner.principal, winner.channel), (ada(), Channel::Inbox));
        assert_eq!((winner.at, winner.action), (bench.now().await.plus_ms(-1), Some(Action::Accept)));
        let stored = bench.store.answer(round.id).await.expect("is read").expect("is stored");
        let Command::Submit { submitted, effective, .. } = submit(round.id, submission("first", 1)) else {
            unreachable!("a submission")
        };
        assert_eq!((stored.submitted, stored.effective), (submitted, effective), "byte for byte");
    }
}

pub(super) async fn the_key_is_compared_before_the_payload_and_in_every_later_state<S: Subject>(bench: &Bench<S>) {
    for delivery in BOTH {
        let (id, fence) = bench.deliverable(delivery).await;
        for step in 0..4 {
            let now = match step {
                0 => bench.row(id).await,
                1 => bench.start(id, &fence).await.expect("started"),
                2 => bench.delivered(id, &fence).await.expect("delivered"),
                _ => bench.resolve(id, &fence).await.expect("resolved"),
            };
            assert_eq!(bench.moved(submit(id, submission("key", 1))).await, Ok(now), "the same key, the same record");
            let stale = Submission { digest: Some(Digest::of_text("other")), ..submission("key", 1) };
            assert!(bench.moved(submit(id, stale)).await.is_ok(), "the key comes first");
            let other_answer = submission("key", 2);
            let other_person = Submission { principal: Principal::person("bob"), ..submission("key", 1) };
            let other_key = submission("other", 1);
            for refused in [other_answer, other_person, other_key] {
                let Err(Error::Conflict { winner: Some(winner), .. }) = bench.moved(submit(id, refused)).await else {
                    panic!("another answer is told who won")
                };
                assert_eq!(winner.principal, ada());
            }
        }
    }
}

pub(super) async fn a_failed_round_takes_no_answer_and_says_why<S: Subject>(bench: &Bench<S>) {
    for delivery in BOTH {
        let (answered, fence) = bench.deliverable(delivery).await;
        bench.fail(answered, Some(&fence), Failure::new("gave_up", "because")).await.expect("failed");
        let pending = bench.asked(delivery).await;
        let request = Failure::new(Failure::WITHDRAWN, "because");
        bench.fail(pending.id, pending.fence.as_ref(), request).await.expect("failed");
        for (id, key, failed_as) in
            [(answered, "key", "gave_up"), (answered, "other", "gave_up"), (pending.id, "key", Failure::WITHDRAWN)]
        {
            let refused = bench.moved(submit(id, submission(key, 1))).await;
            let Err(Error::State { status: Status::Failed, failure: Some(failure), .. }) = refused else {
                panic!("{refused:?}")
            };
            assert_eq!(failure.code, failed_as);
        }
    }
}

pub(super) async fn a_deadline_counts_to_its_last_millisecond<S: Subject>(bench: &Bench<S>) {
    for (late_ms, accepted) in [(0, true), (1, false)] {
        for delivery in BOTH {
            let mut new = bench.asking(delivery);
            new.deadline = Some(bench.now().await.plus_ms(10));
            let round = bench.create(new).await.expect("stored");
            let events = bench.events().await.len();
            bench.advance_ms(10 + late_ms);
            let answered = bench.moved(submit(round.id, submission("key", 1))).await;
            let row = bench.row(round.id).await;
            if accepted {
                assert_eq!(answered.expect("in time").status, Status::ResponseValidated);
                continue;
            }
            let Err(Error::State { failure: Some(failure), .. }) = answered else { panic!("{answered:?}") };
            assert_eq!(failure.code, Failure::EXPIRED);
            assert_eq!((row.status, failure_of(&row)), (Status::Failed, Some(Failure::EXPIRED)));
            assert_eq!((row.answered, row.finished_at), (None, Some(bench.now().await)));
            assert_eq!(bench.store.answer(round.id).await, Ok(None));
            let names = bench.event_names(events).await;
            assert!(names.contains(&"failed") && names.contains(&"response_refused"), "{names:?}");
        }
    }
}

pub(super) async fn a_live_round_is_answered_only_while_its_owner_lives<S: Subject>(bench: &Bench<S>) {
    let round = bench.asked(Delivery::Live).await;
    bench.advance_ms(LEASE_MS - 1);
    let in_time = bench.asked(Delivery::Resumable).await;
    bench.answer(in_time.id).await;
    bench.advance_ms(1);
    let refused = bench.moved(submit(round.id, submission("key", 1))).await;
    assert_eq!(refused.as_ref().err().map(Error::code), Some(CONFLICT));
    assert!(matches!(refused, Err(Error::Conflict { winner: None, .. })));
    assert_eq!(bench.row(round.id).await, round, "the round is as it was");
    bench.renew("own_opener").await;
    bench.advance_ms(LEASE_MS - 1);
    assert_eq!(bench.answer(round.id).await.status, Status::ResponseValidated, "renewed late, and in time by 1 ms");

    let resumable = bench.asked(Delivery::Resumable).await;
    bench.advance_ms(1000 * LEASE_MS);
    bench.answer(resumable.id).await;
    let released = bench.asked(Delivery::Live).await;
    bench.run(Command::ReleaseOwner { owner: "own_opener".to_owned() }).await.expect("released");
    assert_eq!(code(bench.moved(submit(released.id, submission("key", 1))).await), CONFLICT);
}

pub(super) async fn a_digest_must_be_that_of_what_is_pending<S: Subject>(bench: &Bench<S>) {
    for delivery in BOTH {
        let round = bench.asked(delivery).await;
        let with = |digest| Submission { digest: Some(digest), ..submission("key", 1) };
        assert_eq!(bench.moved(submit(round.id, with(Digest::of_text("other")))).await, Err(Error::Stale));
        assert_eq!(bench.row(round.id).await, round);
        bench.moved(submit(round.id, with(round.digest))).await.expect("accepted");
    }
}

pub(super) async fn approving_from_a_surface_needs_the_digest_of_what_was_shown<S: Subject>(bench: &Bench<S>) {
    let channels = [Channel::Http, Channel::Inbox, Channel::Cli, Channel::Thread, Channel::Library, Channel::Mcp];
    for (channel, needs) in channels.into_iter().zip([true, true, true, false, false, false]) {
        let mut new = bench.asking(Delivery::Resumable);
        new.has_approval = true;
        let round = bench.create(new).await.expect("stored");
        let approving = |digest| {
            let frame = Submission { digest, channel, approves: true, ..submission("key", 1) };
            let verdict = Verdict { request_key: "call_7".to_owned(), is_approval: true, accepted: true };
            Command::Submit {
                round: round.id,
                submission: Box::new(frame),
                verdicts: vec![verdict],
                submitted: json(r#"{"call_7":{"action":"accept"}}"#),
                effective: json(r#"{"call_7":{"action":"accept"}}"#),
            }
        };
        let events = bench.events().await.len();
        if needs {
            assert_eq!(code(bench.moved(approving(None)).await), INVALID);
            assert_eq!(bench.row(round.id).await, round);
        }
        bench.moved(approving(Some(round.digest))).await.expect("approved");
        let names = bench.event_names(events).await;
        assert_eq!(names.iter().filter(|name| **name == "approval").count(), 1, "{names:?}");
        assert!(!names.contains(&"input"), "a verdict is not data: {names:?}");
    }
}

pub(super) async fn a_refused_answer_leaves_an_event_and_nothing_else<S: Subject>(bench: &Bench<S>) {
    for delivery in BOTH {
        let round = bench.answered(delivery).await;
        let before = (bench.row(round.id).await, bench.execution(round.execution_id).await);
        let events = bench.events().await.len();
        assert_eq!(code(bench.moved(submit(round.id, submission("other", 2))).await), CONFLICT);
        assert_eq!((bench.row(round.id).await, bench.execution(round.execution_id).await), before);
        let left = bench.events().await.split_off(events);
        assert_eq!(left.len(), 1);
        let event = &left[0].event;
        assert_eq!((event.body.name(), event.round_id), ("response_refused", Some(round.id)));
        assert_eq!((&event.principal, event.channel), (&Some(ada()), Some(Channel::Library)));
        assert_eq!(event.execution_id, Some(round.execution_id));
    }
}

pub(super) async fn a_payload_that_does_not_fit_is_reported_last<S: Subject>(bench: &Bench<S>) {
    let invalid = |round, frame| Command::RecordRefusal {
        round,
        submission: Box::new(Submission { answer_hash: [0; 32], ..frame }),
        code: ErrorCode::ManagedInputInvalid.as_str(),
    };
    for delivery in BOTH {
        let round = bench.asked(delivery).await;
        let events = bench.events().await.len();
        bench.run(invalid(round.id, submission("key", 0))).await.expect("only the payload is wrong");
        let stale = Submission { digest: Some(Digest::of_text("other")), ..submission("key", 0) };
        assert_eq!(bench.run(invalid(round.id, stale)).await, Err(Error::Stale), "the digest comes first");
        assert_eq!(bench.row(round.id).await, round);
        bench.answer(round.id).await;
        for key in ["key", "other"] {
            let refused = bench.run(invalid(round.id, submission(key, 0))).await;
            assert!(matches!(refused, Err(Error::Conflict { winner: Some(_), .. })), "the state comes first");
        }
        assert_eq!(bench.event_names(events).await.iter().filter(|name| **name == "response_refused").count(), 4);

        let mut new = bench.asking(delivery);
        new.deadline = Some(bench.now().await.plus_ms(10));
        let overdue = bench.create(new).await.expect("stored");
        bench.advance_ms(11);
        assert_eq!(code(bench.run(invalid(overdue.id, submission("key", 0))).await), STATE);
        assert_eq!(failure_of(&bench.row(overdue.id).await), Some(Failure::EXPIRED));
    }
    let live = bench.asked(Delivery::Live).await;
    bench.expire_leases();
    assert_eq!(code(bench.run(invalid(live.id, submission("key", 0))).await), CONFLICT, "nobody is connected");
}

pub(super) async fn of_fifty_answers_at_once_one_wins<S: Subject>(bench: &Bench<S>) {
    let round = bench.asked(Delivery::Resumable).await;
    let mut answers = tokio::task::JoinSet::new();
    for n in 0..50_u8 {
        let store = bench.store.clone();
        let answer = submit(round.id, submission(&format!("key-{n}"), n));
        answers.spawn(async move { (n, store.commit(vec![answer]).await) });
    }
    let outcomes = answers.join_all().await;
    let won: Vec<_> = outcomes.iter().filter(|(_, outcome)| outcome.is_ok()).collect();
    assert_eq!(won.len(), 1);
    let lost = |(_, outcome): &&(u8, Result<_, Error>)| matches!(outcome, Err(Error::Conflict { winner: Some(_), .. }));
    assert_eq!(outcomes.iter().filter(lost).count(), 49);
    let row = bench.row(round.id).await;
    assert_eq!(row.answer_key, Some((format!("key-{}", won[0].0), [won[0].0; 32])));
}

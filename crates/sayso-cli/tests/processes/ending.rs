//! When every process is gone: what the clients were told and what is stored agree, and nothing is without an end.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sayso::clock::{Clock as _, ManualClock, SystemClock};
use sayso::doctor::{self, Severity};
use sayso::{Options, People as _, Principal, RoundFilter, Sayso, Status, Sweeper, UnixMs, limits, wire};

use crate::scene::Scene;
use crate::{CALLERS, GATEWAY_KILLS};

const LEASE: Duration = Duration::from_millis(limits::LEASE_MS.unsigned_abs());

async fn all_rounds(sayso: &Sayso) -> Vec<wire::Round> {
    let (mut all, mut before) = (Vec::new(), None);
    loop {
        let page = sayso.people().list(RoundFilter { before, ..RoundFilter::default() }).await.unwrap();
        all.extend(page.rounds);
        match page.next_cursor {
            Some(cursor) => before = Some(cursor),
            None => return all,
        }
    }
}

/// What a round asks, as the clients call it.
fn question_of(round: &wire::Round) -> String {
    let (_, request) = &round.requests.0[0];
    match (&request.question, &request.message) {
        (Some(question), _) => question.clone(),
        (_, Some(message)) => message.split(' ').find(|word| word.starts_with("item-")).unwrap().to_owned(),
        _ => panic!("{round:?}"),
    }
}

pub async fn check(scene: &Scene) {
    // The leases of those that were killed run out, for this process at once.
    let UnixMs(now) = SystemClock.now();
    let clock = Arc::new(ManualClock::at(UnixMs(now + 2 * limits::LEASE_MS)));
    let options = Options::database(&scene.store).person(Principal::person("local:test")).clock(clock);
    let sayso = Sayso::open(options).await.unwrap();
    let mut sweeper = Sweeper::default();
    for times in 0..3 {
        sayso.sweep(&mut sweeper, times * LEASE).await.unwrap();
    }

    let rounds = all_rounds(&sayso).await;
    let (accepted, received) = (scene.accepted.lock().unwrap().clone(), scene.received.lock().unwrap().clone());
    let mut asked: HashMap<String, usize> = HashMap::new();
    let mut ended: HashMap<&str, usize> = HashMap::new();
    for round in &rounds {
        let question = question_of(round);
        *asked.entry(question.clone()).or_default() += 1;
        *ended.entry(round.failure.as_ref().map_or("resolved", |failure| &failure.code)).or_default() += 1;
        let over_http = question.starts_with("question");
        match (&round.failure, round.status) {
            (None, Status::Resolved) => assert!(accepted.contains_key(&question), "{question} was never accepted"),
            (Some(failure), Status::Failed) => {
                assert!(!over_http, "{question} failed as {failure:?}");
                assert!(!failure.code.is_empty() && !failure.message.is_empty(), "{question} does not say why");
            }
            (_, status) => panic!("{question} is {status:?} and has no end"),
        }
    }
    assert!(asked.values().all(|times| *times == 1), "a question was stored twice");
    for n in 0..scene.over_http {
        let question = format!("question {n}");
        let values = received.get(&question).unwrap_or_else(|| panic!("nobody was handed the answer of {question}"));
        let won = &accepted[&question];
        assert!(values.iter().all(|value| value == won), "{question} was answered {won:?} and handed as {values:?}");
    }
    let mut booked = 0;
    for n in 0..scene.through_gateways {
        let item = format!("item-{n}");
        if let Some(streets) = received.get(&item) {
            assert_eq!(streets.as_slice(), std::slice::from_ref(&accepted[&item]), "{item} went elsewhere, or twice");
            booked += 1;
        }
    }
    let refused = scene.refused.lock().unwrap().clone();
    let lost = scene.lost.load(Ordering::SeqCst);
    assert_eq!(booked + refused.len() + lost, scene.through_gateways, "every call came to something");
    let found = doctor::examine(&Options::database(&scene.store), 0).await.unwrap();
    for check in ["chain", "rows", "reading"] {
        let wrong = found.iter().find(|one| one.check == check && one.severity != Severity::Ok);
        assert!(wrong.is_none(), "{wrong:?}");
    }
    // A caller has one call in flight, and perhaps one before it whose end was not stored when the gateway was killed.
    let failed = rounds.iter().filter(|round| round.failure.is_some()).count();
    assert!(failed <= GATEWAY_KILLS * CALLERS * 2, "{ended:?}");
    eprintln!(
        "{} rounds: {ended:?}; through gateways {booked} booked, {lost} lost with their gateway, {} told why: {:?}; {} \
         requests made again",
        rounds.len(),
        refused.len(),
        refused.first(),
        scene.repeated.load(Ordering::SeqCst)
    );
}

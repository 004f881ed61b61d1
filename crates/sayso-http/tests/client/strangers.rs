//! Others' tokens, others' workers, others' rounds.

use sayso::{ClaimOf, Desk, Error, Fence, FenceToken, Step};
use sayso_core::round::Delivery;
use sayso_http::client::{Client, ClientOptions};

use crate::rig::{Rig, ask};

#[tokio::test]
async fn only_an_agents_token_connects() {
    let rig = Rig::new().await;
    let connect = |token: &str| Client::connect(ClientOptions::new(format!("http://{}", rig.address), token));
    assert!(matches!(connect(&rig.person).await, Err(Error::Forbidden(_))));
    assert!(matches!(connect("sayso_agent_00").await, Err(Error::Unauthenticated(_))));
    assert!(matches!(connect("two\nlines").await, Err(Error::Unauthenticated(_))));
    assert!(connect(&rig.agent).await.is_ok());
}

#[tokio::test]
async fn another_token_or_worker_is_a_conflict_and_another_agent_sees_nothing() {
    let rig = Rig::new().await;
    let (client, colleague) = (rig.client().await, rig.client().await);
    let stranger = ClientOptions::new(format!("http://{}", rig.address), &rig.other_agent);
    let stranger = Client::connect(stranger).await.unwrap();
    assert_ne!(client.owner_id(), colleague.owner_id());

    let opened = client.open(ask(Delivery::Live), None).await.unwrap();
    let (round, fence) = (opened.round.round_id, opened.fence.unwrap());
    rig.answer(round).await;
    let wrong_token = Fence { token: FenceToken(fence.token.0 ^ 1), ..fence.clone() };
    let wrong_owner = Fence { owner: colleague.owner_id().to_owned(), ..fence.clone() };
    for wrong in [wrong_token, wrong_owner] {
        assert!(matches!(colleague.start(round, wrong.clone()).await, Err(Error::Conflict { .. })));
        assert!(matches!(colleague.renew(round, wrong.clone()).await, Err(Error::Conflict { .. })));
        let settled = colleague.settle(vec![Step::Delivered(round, wrong)]).await;
        assert!(matches!(settled, Err(Error::Conflict { .. })), "{settled:?}");
    }
    assert!(matches!(colleague.claim(round, ClaimOf::default(), None).await, Err(Error::Conflict { .. })));
    assert_eq!(stranger.start(round, fence.clone()).await.unwrap_err(), Error::NotFound("round"));
    assert_eq!(stranger.settle(vec![Step::Delivered(round, fence.clone())]).await, Err(Error::NotFound("round")));
    client.start(round, fence).await.unwrap();
}

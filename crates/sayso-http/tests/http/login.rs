use sayso_http::ServeOptions;

use crate::served::{Reply, Served, admin, get, post};

async fn log_in(served: &Served, token: &str) -> Reply {
    post("/login").form(&[("token", token)]).send(served).await
}

#[tokio::test]
async fn a_link_logs_in_once_however_often_it_is_looked_at() {
    let served = Served::new().await;
    let secret = served.sayso.new_login(&admin()).await.unwrap().secret;
    for _ in 0..3 {
        let page = get(&format!("/login?token={secret}")).send(&served).await;
        assert!(page.page(200).contains("<button") && page.text.contains(&secret));
        assert_eq!(page.header("set-cookie"), "");
    }
    let reply = log_in(&served, &secret).await;
    assert_eq!((reply.status.as_u16(), reply.header("location")), (303, "/"));
    let cookie = reply.header("set-cookie").to_owned();
    assert!(cookie.contains("; Path=/; HttpOnly; SameSite=Lax; Max-Age=") && !cookie.contains("Secure"), "{cookie}");
    let session = cookie.strip_prefix("sayso_session=").unwrap().split(';').next().unwrap();
    assert!(get("/").session(session).send(&served).await.page(200).contains("Waiting for you"));

    let again = log_in(&served, &secret).await;
    assert!(again.page(401).contains("used or is too old"));
    assert_eq!(again.header("set-cookie"), "");
    for wrong in ["", "nonsense", session, &served.person] {
        log_in(&served, wrong).await.page(401);
    }

    let out = post("/logout").session(session).form(&[]).send(&served).await;
    assert_eq!((out.status.as_u16(), out.header("location")), (303, "/login"));
    assert!(out.header("set-cookie").contains("Max-Age=0"));
    assert_eq!(get("/").session(session).send(&served).await.status, 303);
    let how = get("/login").session(session).send(&served).await;
    assert!(how.page(200).contains("sayso login"));
}

#[tokio::test]
async fn a_cookie_for_https_is_sent_over_https_only() {
    let options = ServeOptions { public_url: Some("https://sayso.example.com/".to_owned()), ..ServeOptions::default() };
    let served = Served::with(options).await;
    let secret = served.sayso.new_login(&admin()).await.unwrap().secret;
    assert!(log_in(&served, &secret).await.header("set-cookie").ends_with("; Secure"));
}

//! A database whose disk is full: what is said, that nothing is half-written, and that it goes on once there is room. The
//! disk is a small one that holds the tables; the server's log has another, since a server without room for its log ends.

use sayso_core::command::Command;
use sayso_core::round::Status;
use sayso_store::{RoundFilter, Store};

use crate::support::cluster::{Cluster, give};
use crate::support::mount::{Accounts, again_in_a_namespace, fill, is_inside, mount, not_tried, unmount};
use crate::support::{answering, asking, json, round_id};
use crate::{check_chain, open, status, unavailable};

const TEST: &str = "disk::a_full_disk_under_the_database_leaves_nothing_half_written_and_it_goes_on_with_room";
/// Rounds that are there when the disk becomes full.
const ASKED: u128 = 20;
/// Answers that fill what room the pages of a table have left before the disk is asked for more.
const TRIED_MAX: u128 = 200;

/// An answer of two pages, which do not compress.
fn answering_at_length(n: u128) -> Command {
    let mut command = answering(n);
    if let Command::Submit { submitted, effective, .. } = &mut command {
        let words: String = (0..2000_u32).map(|word| format!("{:08x}", word.wrapping_mul(2_654_435_761))).collect();
        let answer = json(&format!(r#"{{"note":{{"action":"accept","content":{{"answer":["{n} {words}"]}}}}}}"#));
        (*submitted, *effective) = (answer.clone(), answer);
    }
    command
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_under_the_database_leaves_nothing_half_written_and_it_goes_on_with_room() {
    if !is_inside() {
        if !again_in_a_namespace(TEST, Accounts::Servers) {
            not_tried(TEST, Accounts::Servers);
        }
        return;
    }
    let disk = tempfile::tempdir().expect("a folder");
    mount(&["-t", "tmpfs", "-o", "size=6m,mode=711", "tmpfs"], disk.path());
    let tables = disk.path().join("tables");
    std::fs::create_dir(&tables).expect("a folder");
    give(&tables);
    let cluster = Cluster::private();
    cluster.sql(&format!("CREATE TABLESPACE small LOCATION '{}'", tables.display())).await;
    let url = format!("{}%20-c%20default_tablespace%3Dsmall", cluster.fresh().await);
    let store = open(&url).await;
    for n in 0..ASKED {
        store.commit(vec![asking(n, 100)]).await.expect("there is room");
    }
    let ballast = disk.path().join("ballast");
    fill(&ballast);

    let (mut accepted, mut n) = (0, 0);
    let refused = loop {
        // Where those that wait are all answered there is still room in the pages: more are asked, until one is refused.
        assert!(n < TRIED_MAX, "the disk is full at last");
        let unit = if n < ASKED { vec![answering_at_length(n)] } else { vec![asking(n, 100), answering_at_length(n)] };
        match store.commit(unit).await {
            Ok(_) => accepted += 1,
            Err(error) => break unavailable::<()>(Err(error)),
        }
        n += 1;
    };
    assert!(refused.contains("the database's disk is full") && refused.contains("nothing was changed"), "{refused}");
    // Nothing of it is there, what was acknowledged is, and reading goes on.
    let before = if n < ASKED { Some(Status::Pending) } else { None };
    assert_eq!(status(store.as_ref(), n).await, before);
    assert_eq!(store.answer(round_id(n)).await, Ok(None));
    let all = RoundFilter { limit: 1000, ..RoundFilter::default() };
    let rounds = store.rounds(all.clone()).await.expect("is read");
    let answered = rounds.iter().filter(|round| round.row.status == Status::ResponseValidated).count();
    assert_eq!(answered, accepted);
    for round in rounds.iter().filter(|round| round.row.status == Status::ResponseValidated) {
        assert!(store.answer(round.row.id).await.expect("is read").is_some());
    }

    // The same process, told the same again, goes on; and so does the chain.
    std::fs::remove_file(&ballast).expect("removed");
    let again = if n < ASKED { vec![answering_at_length(n)] } else { vec![asking(n, 100), answering_at_length(n)] };
    store.commit(again).await.expect("there is room again");
    assert_eq!(status(store.as_ref(), n).await, Some(Status::ResponseValidated));
    let rounds = store.rounds(all).await.expect("is read").len();
    check_chain(store.as_ref(), rounds * 2 + accepted + 1).await;
    drop(store);
    check_chain(open(&url).await.as_ref(), rounds * 2 + accepted + 1).await;
    drop(cluster);
    unmount(disk.path());
}

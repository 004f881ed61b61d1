//! What `sayso doctor` prints, and with which code it ends; on a database, too.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use sayso::{Ask, Options, Principal, Sayso};

use crate::cluster::Cluster;
use crate::folder::{Folder, request};

#[test]
fn a_folder_that_is_well_ends_with_zero_and_one_that_is_not_with_eleven() {
    let folder = Folder::new();
    folder.ask_street();
    let well = folder.script(&["doctor"]).expect_code(0);
    assert!(well.stdout.contains("1 pending") && well.stderr.is_empty(), "{}{}", well.stdout, well.stderr);
    let file = folder.data().join("sayso.sqlite");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let open = folder.script(&["doctor"]).expect_code(13);
    assert!(open.stdout.contains("PROBLEM") && open.stdout.contains("chmod 600"), "{}", open.stdout);
    assert!(open.stderr.contains("1 problems"), "{}", open.stderr);
    let json = folder.script(&["doctor", "--json"]).expect_code(13);
    assert_eq!(json.stderr, "", "the result says it all");
    let report = json.json();
    assert_eq!(report["severity"], "problem");
    let findings = report["findings"].as_array().unwrap();
    assert!(findings.iter().any(|one| one["check"] == "permissions" && one["severity"] == "problem"));
    assert!(findings.iter().any(|one| one["check"] == "chain" && one["severity"] == "ok"));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o644);
}

#[test]
fn a_folder_that_is_not_there_is_not_made() {
    let folder = Folder::new();
    let nowhere = folder.data().join("nowhere");
    let ended = folder.script(&["doctor", "--data", nowhere.to_str().unwrap()]).expect_code(7);
    assert!(ended.stderr.contains("nowhere") && !nowhere.exists(), "{}", ended.stderr);
    fs::create_dir(&nowhere).unwrap();
    fs::write(nowhere.join("sayso.sqlite"), "no database at all").unwrap();
    let ended = folder.script(&["doctor", "--data", nowhere.to_str().unwrap()]).expect_code(13);
    assert!(ended.stdout.contains("not a readable database"), "{}", ended.stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_says_how_it_keeps_what_it_acknowledged() {
    let store = Cluster::shared().fresh().await;
    let look = async |store: &str| {
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_sayso"));
        command.args(["doctor", "--json"]).env_remove("SAYSO_DATA").env("SAYSO_STORE", store);
        let output = command.output().await.unwrap();
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code(), report["findings"].as_array().unwrap().clone())
    };
    let (code, empty) = look(&store).await;
    assert_eq!(code, Some(13));
    assert!(empty.iter().any(|one| one["check"] == "schema" && one["severity"] == "warning"), "{empty:?}");
    assert!(!look(&store).await.1.iter().any(|one| one["check"] == "rounds"), "looking creates no tables");

    let sayso = Sayso::open(Options::database(&store)).await.unwrap();
    let asked = Ask::one("note", request(r#"{"kind":"text","question":"What is it called?"}"#));
    sayso.desk(Principal::agent("booking")).ask(asked, None).await.unwrap();
    sayso.last_event().await.unwrap();
    let (_, found) = look(&store).await;
    let of = |check: &str| {
        let one = found.iter().find(|one| one["check"] == check).unwrap_or_else(|| panic!("{check}: {found:?}"));
        one["detail"].as_str().unwrap().to_owned()
    };
    assert!(of("server").contains("version"));
    assert_eq!(of("listen"), "LISTEN works");
    assert_eq!(of("rounds"), "1: 1 pending");
    assert!(of("chain").starts_with("2 events"), "{}", of("chain"));
    assert!(of("sequencer").contains("none waits"), "{}", of("sequencer"));
    assert!(of("durability").contains("fsync"), "{}", of("durability"));
    assert!(!found.iter().any(|one| one["check"] == "reading"), "{found:?}");
}

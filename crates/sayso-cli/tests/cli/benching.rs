//! `sayso bench`: the object it prints, and that it leaves nothing behind. What it measures depends on the machine.

use crate::folder::Folder;

#[test]
fn a_quick_bench_prints_the_documented_object_and_leaves_nothing() {
    let folder = Folder::new();
    let before = entries(&folder);
    let ended = folder.script(&["bench", "--quick", "--figure", "in_process_64", "--json"]).expect_code(0);
    let object = ended.json();
    let figures = object["figures"].as_object().unwrap();
    assert_eq!(figures.keys().collect::<Vec<_>>(), ["in_process_64"]);
    let figure = figures["in_process_64"].as_object().unwrap();
    assert_eq!(figure.keys().collect::<Vec<_>>(), ["value", "unit", "limit", "ratio"]);
    assert_eq!(figure["unit"], "cycles/s");
    let number = |name: &str| figure[name].as_f64().unwrap();
    assert!(number("value") > 0.0 && number("limit") > 0.0);
    assert!((number("value") / number("limit") - number("ratio")).abs() < 1e-9);
    assert!(object["limits"]["S64"]["value"].is_number());
    assert_eq!(object["quick"], true);
    assert!(ended.stderr.contains("64 waiters"), "{}", ended.stderr);
    assert_eq!(entries(&folder), before);
}

#[test]
fn a_quick_bench_of_the_server_prints_its_figures_beside_their_limits() {
    let folder = Folder::new();
    let figures = ["sequential_http", "wake_http", "http_64", "cpu_http"];
    let ended = folder.script(&["bench", "--quick", "--figure", &figures.join(","), "--json"]).expect_code(0);
    let object = ended.json();
    for name in figures {
        let figure = &object["figures"][name];
        assert!(figure["value"].as_f64().unwrap() > 0.0 && figure["limit"].as_f64().unwrap() > 0.0, "{name}");
    }
    for beside in ["http_1", "wake_http_p99"] {
        assert!(object["also"][beside]["value"].as_f64().unwrap() > 0.0, "{beside}");
    }
}

#[test]
fn a_figure_that_cannot_be_measured_is_refused_before_anything_is() {
    let folder = Folder::new();
    let unknown = folder.script(&["bench", "--figure", "in_process_63"]).expect_code(2);
    assert!(unknown.stderr.contains("in_process_64"), "{}", unknown.stderr);
    let without_database = folder.script(&["bench", "--figure", "postgres_64", "--json"]).expect_code(2);
    assert!(without_database.problem()["detail"].as_str().unwrap().contains("postgres_64"));
}

fn entries(folder: &Folder) -> Vec<std::ffi::OsString> {
    let mut names: Vec<_> = std::fs::read_dir(folder.data()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    names
}

//! A data folder: who can read it, and how long its log is.

use sayso_store::examine::FileFacts;

use super::Finding;

/// SQLite moves the log into the file from about 4 MB on; far above that somebody has kept it from doing so.
const WAL_BYTES_USUAL_MAX: u64 = 64 * 1024 * 1024;

pub(super) fn judge(file: &FileFacts, uid: u32, found: &mut Vec<Finding>) {
    let path = file.path.display();
    if !file.is_file {
        let is_there = file.entries.iter().any(|entry| entry.path == file.path);
        found.push(if is_there {
            let help = "only a plain file is opened; move what is there away";
            Finding::problem("file", format!("{path} is a link or not a file"), help)
        } else {
            let help = "`sayso serve` or an agent's gateway creates it; --data names another folder";
            Finding::warning("file", format!("{path} is not there: no store yet"), help)
        });
        return;
    }
    let before = found.len();
    for entry in &file.entries {
        let path = entry.path.display();
        if entry.uid != uid {
            let detail = format!("{path} belongs to the account {}, not to {uid}", entry.uid);
            found.push(Finding::problem("owner", detail, format!("if it is yours: chown {uid} {path}")));
        }
        // A folder that others may enter shows them names; the files in it are what matters.
        let open_to_others = entry.mode & 0o077;
        let is_folder = Some(entry.path.as_path()) == file.path.parent();
        if open_to_others != 0 && (!is_folder || entry.mode & 0o022 != 0) {
            let detail = format!("others may use {path}: its mode is {:03o}", entry.mode & 0o777);
            let mode = if is_folder { "700" } else { "600" };
            found.push(Finding::problem("permissions", detail, format!("chmod {mode} {path}")));
        }
    }
    if found.len() == before {
        found.push(Finding::ok("permissions", format!("{path} is for its owner alone")));
    }
    if file.without_log {
        let detail = format!(
            "{} bytes of its log could not be read: the newest changes are not in what follows",
            file.wal_bytes
        );
        found.push(Finding::warning("log", detail, "run this as the store's owner, on a disk that can be written"));
    } else if file.wal_bytes > WAL_BYTES_USUAL_MAX {
        let detail = format!("the log beside the file has {} bytes", file.wal_bytes);
        let help =
            "a process has been reading for very long, or was stopped in the middle; it shrinks once all have ended";
        found.push(Finding::warning("log", detail, help));
    } else {
        found.push(Finding::ok("log", format!("{} bytes", file.wal_bytes)));
    }
}

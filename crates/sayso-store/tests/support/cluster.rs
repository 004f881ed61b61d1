//! A PostgreSQL server of the tests' own: in a temporary folder, on a Unix socket only, gone when the tests are.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::fs::{File, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::{CommandExt as _, parent_id};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

const MISSING: &str = "PostgreSQL's programs (initdb, pg_ctl) are neither on PATH nor under /usr/lib/postgresql: install \
    Debian's package `postgresql`, as ./test does; the tests of the PostgreSQL store need a server of their own";

/// Stops the server and removes its folder once the process that it serves has ended, however it ended.
const KEEPER: &str = r#"{
    while [ -d "/proc/$1" ] || kill -0 "$1" 2>/dev/null; do sleep 0.2; done
    "$2" -D "$3/data" -m immediate -w stop
    rm -rf "$3" "$3.lock"
} &"#;

/// A running server.
pub struct Cluster {
    folder: PathBuf,
    programs: PathBuf,
    is_private: bool,
}

impl Cluster {
    /// The one that all tests of this run share: the test runner may give each a process of its own.
    pub fn shared() -> Self {
        let runner = parent_id();
        let folder = std::env::temp_dir().join(format!("sayso-postgres-{runner}"));
        let lock = File::create(folder.with_extension("lock")).expect("a lock");
        lock.lock().expect("locked");
        let cluster = Self { folder, programs: programs(), is_private: false };
        if !cluster.answers() {
            cluster.start_new(runner);
        }
        cluster
    }

    /// One for a test that restarts it.
    pub fn private() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let (process, n) = (std::process::id(), NEXT.fetch_add(1, Ordering::SeqCst));
        let folder = std::env::temp_dir().join(format!("sayso-postgres-{process}-{n}"));
        let cluster = Self { folder, programs: programs(), is_private: true };
        cluster.start_new(process);
        cluster
    }

    /// The URL of a new, empty schema.
    pub async fn fresh(&self) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let schema = format!("case_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::SeqCst));
        self.sql(&format!("CREATE SCHEMA {schema}")).await;
        format!("{}?options=-c%20search_path%3D{schema}", self.url())
    }

    /// The URL of its database.
    pub fn url(&self) -> String {
        format!("postgres://sayso@{}/postgres", self.folder.display().to_string().replace('/', "%2F"))
    }

    /// Where its socket is.
    pub fn folder(&self) -> PathBuf {
        self.folder.clone()
    }

    /// Runs statements as an administrator would.
    pub async fn sql(&self, statements: &str) {
        sql(&self.url(), statements).await;
    }

    /// Restarts the server; `immediate` as a crash does.
    pub fn restart(&self, mode: &str) {
        self.control(&["-m", mode, "restart"]);
    }

    pub fn stop(&self) {
        self.control(&["-m", "immediate", "stop"]);
    }

    pub fn start(&self) {
        self.control(&["start"]);
    }

    fn answers(&self) -> bool {
        std::os::unix::net::UnixStream::connect(self.folder.join(".s.PGSQL.5432")).is_ok()
    }

    fn start_new(&self, serves: u32) {
        // What a run before this one left that was killed together with its keeper.
        let _ = std::fs::remove_dir_all(&self.folder);
        std::fs::create_dir(&self.folder).expect("a folder");
        give(&self.folder);
        let data = self.folder.join("data");
        let mut initdb = self.command("initdb");
        initdb.args(["-U", "sayso", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions", "-D"]);
        finish(initdb.arg(&data));
        let mut keeper = as_account("sh");
        keeper.arg("-c").arg(KEEPER).arg("keeper").arg(serves.to_string());
        keeper.arg(self.programs.join("pg_ctl")).arg(&self.folder);
        // In a group of its own, so that ending the tests' group leaves it to do its work.
        finish(keeper.process_group(0));
        self.start();
    }

    fn control(&self, arguments: &[&str]) {
        // What is tested is what survives the server's end, not the machine's: nothing has to reach the disk.
        let options = format!("-k {} -c listen_addresses= -c fsync=off -c max_connections=300", self.folder.display());
        let mut command = self.command("pg_ctl");
        command.arg("-D").arg(self.folder.join("data")).arg("-l").arg(self.folder.join("log")).args(["-w", "-o"]);
        finish(command.arg(options).args(arguments));
    }

    fn command(&self, program: &str) -> Command {
        as_account(self.programs.join(program))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if self.is_private {
            // The keeper does what this leaves.
            let _ = self
                .command("pg_ctl")
                .arg("-D")
                .arg(self.folder.join("data"))
                .args(["-m", "immediate", "stop"])
                .status();
        }
    }
}

/// Runs statements on a connection of their own.
pub async fn sql(url: &str, statements: &str) {
    let (client, session) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.expect("connects");
    let session = tokio::spawn(session);
    client.batch_execute(statements).await.expect("runs");
    drop(client);
    session.await.expect("ends").expect("ends well");
}

/// The newest installed, unless one is on PATH.
fn programs() -> PathBuf {
    let on_path = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect::<Vec<_>>();
    let mut installed: Vec<PathBuf> =
        std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten().map(|found| found.path()).collect();
    installed
        .sort_by_key(|path| path.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse::<u32>().ok()));
    let installed = installed.into_iter().rev().map(|path| path.join("bin"));
    let has_all = |folder: &Path| folder.join("initdb").is_file() && folder.join("pg_ctl").is_file();
    on_path.into_iter().chain(installed).find(|folder| has_all(folder)).expect(MISSING)
}

/// Gives a folder to the account that servers run as.
pub fn give(folder: &Path) {
    std::fs::set_permissions(folder, Permissions::from_mode(0o700)).expect("a private folder");
    if let Some((user, group)) = account() {
        chown(folder, Some(user), Some(group)).expect("given away");
    }
}

/// PostgreSQL refuses to run as root; then it runs as another account, whose user and group these are.
fn account() -> Option<(u32, u32)> {
    use std::os::unix::fs::MetadataExt as _;
    if std::fs::metadata("/proc/self").map(|about| about.uid()).ok() != Some(0) {
        return None;
    }
    let accounts = std::fs::read_to_string("/etc/passwd").expect("the accounts");
    let ids = |name: &str| {
        let fields = |line: &str| line.split(':').map(str::to_owned).collect::<Vec<_>>();
        let found = accounts.lines().map(fields).find(|fields| fields.first().is_some_and(|first| first == name))?;
        Some((found.get(2)?.parse().ok()?, found.get(3)?.parse().ok()?))
    };
    Some(ids("postgres").or_else(|| ids("nobody")).expect("an account that is not root's"))
}

fn as_account(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Some((user, group)) = account() {
        command.uid(user).gid(group);
    }
    command
}

fn finish(command: &mut Command) {
    let status = command.status().expect("starts");
    assert!(status.success(), "{command:?} failed: {status}");
}

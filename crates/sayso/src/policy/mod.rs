//! Policies in files: a file a layer, read again when it changes.
//!
//! ```
//! use sayso::Json;
//! use sayso::policy::{Context, Decision, PolicyFiles, ToolName};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let file = folder.path().join("policy.toml");
//! std::fs::write(&file, "[[rule]]\nid = \"deploys\"\nask = [\"ops:deploy\"]\n")?;
//! let policy = PolicyFiles::open([file]);
//! let verdict = policy.evaluate(&ToolName::parse("ops:deploy")?, &Json::parse("{}")?, &Context::default());
//! assert_eq!(verdict.decision, Decision::Ask);
//! assert_eq!(verdict.rules[0].id, "deploys");
//! # Ok(())
//! # }
//! ```

mod file;

use std::fs::{self, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sayso_core::json::Json;
use sayso_core::limits::POLICY_BYTES_MAX;
use sayso_core::round::Digest;
use sayso_core::time::UnixMs;
use sayso_store::clock::{Clock, SystemClock};

pub use file::{FileError, read_layer};
pub use sayso_core::policy::*;

/// How long after its last change a file is read again each time, in milliseconds: within a tick of the file system's
/// clock a second change cannot be told from the first.
const SETTLED_MS: i64 = 2_000;

/// The policy that stands in some files, as it is now. What cannot be read denies every call, and says so; an earlier
/// good version is not used in its place.
pub struct PolicyFiles {
    paths: Vec<PathBuf>,
    loaded: Mutex<Loaded>,
    clock: Arc<dyn Clock>,
}

struct Loaded {
    stamps: Option<Vec<Option<Stamp>>>,
    policy: Arc<Policy>,
}

/// What shows that a file is another than before.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let of = |meta: Metadata| Self {
            device: meta.dev(),
            inode: meta.ino(),
            bytes: meta.size(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        };
        fs::metadata(path).ok().map(of)
    }

    fn is_settled(&self, now: UnixMs) -> bool {
        let latest = self.modified.max(self.changed).0.saturating_mul(1000);
        now.since_ms(UnixMs(latest)) > SETTLED_MS
    }
}

impl PolicyFiles {
    /// The policy in these files. Each is one layer; none at all is the policy without rules. Reading cannot fail: what
    /// is wrong with a file is the reason why its policy denies, see [`Policy::faults`].
    pub fn open(paths: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        Self::with_clock(paths, Arc::new(SystemClock))
    }

    /// The policy without rules, of no files.
    pub fn none() -> Self {
        Self::open(Vec::<PathBuf>::new())
    }

    /// As [`PolicyFiles::open`], by another clock.
    pub fn with_clock(paths: impl IntoIterator<Item = impl Into<PathBuf>>, clock: Arc<dyn Clock>) -> Self {
        let paths = paths.into_iter().map(Into::into).collect();
        Self { paths, loaded: Mutex::new(Loaded { stamps: None, policy: Arc::default() }), clock }
    }

    /// The policy as the files say now. Looks at the files, and reads them if one has changed; a look takes microseconds.
    pub fn current(&self) -> Arc<Policy> {
        let mut loaded = self.lock();
        // Taken before reading, so that a change in between is found the next time.
        let stamps: Vec<_> = self.paths.iter().map(|path| Stamp::of(path)).collect();
        let now = self.clock.now();
        let is_settled = stamps.iter().all(|stamp| stamp.is_some_and(|stamp| stamp.is_settled(now)));
        if !is_settled || loaded.stamps.as_ref() != Some(&stamps) {
            *loaded = Loaded { stamps: Some(stamps), policy: Arc::new(read(&self.paths)) };
        }
        Arc::clone(&loaded.policy)
    }

    /// Judges a call by the policy as it is now; see [`Policy::evaluate`].
    pub fn evaluate(&self, tool: &ToolName, arguments: &Json, context: &Context<'_>) -> Verdict {
        self.current().evaluate(tool, arguments, context)
    }

    /// Judges a call and says why; see [`Policy::explain`].
    pub fn explain(&self, tool: &ToolName, arguments: &Json, context: &Context<'_>) -> Explanation {
        self.current().explain(tool, arguments, context)
    }

    /// The version of the policy as it is now; see [`Policy::version`].
    pub fn version(&self) -> Digest {
        self.current().version()
    }

    fn lock(&self) -> MutexGuard<'_, Loaded> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The policy of all files, with a fault for each that is no layer.
fn read(paths: &[PathBuf]) -> Policy {
    paths.iter().fold(Policy::default(), |policy, path| {
        let layer = match read_text(path) {
            Ok(text) => read_layer(&text).map_err(|error| error.to_string()),
            Err(error) => Err(format!("cannot be read: {error}")),
        };
        match layer.and_then(|layer| policy.clone().with_layer(layer).map_err(|error| error.to_string())) {
            Ok(policy) => policy,
            Err(fault) => policy.with_fault(format!("{}: {fault}", path.display())),
        }
    })
}

/// A file's text, of at most [`POLICY_BYTES_MAX`] bytes.
fn read_text(path: &Path) -> io::Result<String> {
    let file = fs::File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no plain file"));
    }
    let mut text = String::new();
    file.take(POLICY_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > POLICY_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it has more than {POLICY_BYTES_MAX} bytes")));
    }
    Ok(text)
}

impl std::fmt::Debug for PolicyFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PolicyFiles").field("paths", &self.paths).finish_non_exhaustive()
    }
}

//! Every limit of the system, its unit last in the name, with the reason for the number.

/// A request schema: four times the largest form seen from a public MCP server.
pub const SCHEMA_BYTES_MAX: usize = 64 * 1024;
/// An answer, all of its requests together: a pasted log, but not an upload.
pub const ANSWER_BYTES_MAX: usize = 256 * 1024;
/// A whole round as asked: sixteen of the largest schemas.
pub const ROUND_BYTES_MAX: usize = 1024 * 1024;
/// Requests in one round: more than this is no longer one sitting for a person.
pub const REQUESTS_MAX: usize = 64;
/// Options of one choice: beyond this a list can no longer be read.
pub const OPTIONS_MAX: usize = 256;
/// A message, question or description shown to a person.
pub const MESSAGE_BYTES_MAX: usize = 16 * 1024;
/// A name: server, operation, request key, label, idempotency key.
pub const NAME_BYTES_MAX: usize = 512;
/// A URL a person is asked to open: what browsers keep whole.
pub const URL_BYTES_MAX: usize = 8 * 1024;
/// The reason given with a decline: a paragraph for an agent to read.
pub const REASON_BYTES_MAX: usize = 4 * 1024;
/// Opaque state an asker wants back: MCP servers seal tens of bytes to a few kilobytes.
pub const REQUEST_STATE_BYTES_MAX: usize = 64 * 1024;
/// The stored result of an operation: the largest line a gateway reads.
pub const RESULT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Rounds one logical operation may ask for, unless the asker says less: the MCP software kits stop at ten too.
pub const ROUND_LIMIT_DEFAULT: u32 = 10;
/// The most an asker may set that limit to.
pub const ROUND_LIMIT_MAX: u32 = 1000;
/// How long a worker's word that it lives is good for, in milliseconds.
pub const LEASE_MS: i64 = 30_000;
/// How often a living worker renews it, in milliseconds: two renewals may be lost.
pub const LEASE_RENEW_MS: u64 = 10_000;
/// The longest a single long poll is held, in milliseconds: below the 60 s at which many clients give up.
pub const WAIT_MS_MAX: u64 = 50_000;
/// Rows of one page of a list.
pub const PAGE_ROWS_MAX: usize = 200;
/// Commands that one commit takes at most: past this a lone command waits too long for its neighbours.
pub const COMMIT_COMMANDS_MAX: usize = 256;
/// Commands that may wait for the writer before callers are held back.
pub const COMMIT_QUEUE_MAX: usize = 4096;
/// A one-time link to the inbox, in milliseconds: long enough to change windows.
pub const LOGIN_LINK_MS: i64 = 10 * 60 * 1000;
/// A browser's session with the inbox, in milliseconds: thirty days.
pub const SESSION_MS: i64 = 30 * 24 * 3600 * 1000;

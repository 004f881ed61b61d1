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
/// A whole run as it waits: the text of a million tokens, twice over for JSON, in what one row still takes easily.
pub const SUSPENDED_STATE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The stored result of an operation: the largest line a gateway reads.
pub const RESULT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Rounds one logical operation may ask for, unless the asker says less: the MCP software kits stop at ten too.
pub const ROUND_LIMIT_DEFAULT: u32 = 10;
/// The most an asker may set that limit to.
pub const ROUND_LIMIT_MAX: u32 = 1000;
/// Expectations of one scripted plan: as many as an operation may ask rounds.
pub const PLAN_EXPECTATIONS_MAX: usize = ROUND_LIMIT_MAX as usize;
/// Levels of a scripted plan: what is deeper was made by a program, and every walk over it may recurse this deep.
pub const PLAN_DEPTH_MAX: usize = 64;
/// How long a worker's word that it lives is good for, in milliseconds.
pub const LEASE_MS: i64 = 30_000;
/// How often a living worker renews it, in milliseconds: two renewals may be lost.
pub const LEASE_RENEW_MS: u64 = 10_000;
/// The longest a single long poll is held, in milliseconds: below the 60 s at which many clients give up.
pub const WAIT_MS_MAX: u64 = 50_000;
/// Rows of one page of a list.
pub const PAGE_ROWS_MAX: usize = 200;
/// Pages of events that one page of a grant's uses looks through: a fraction of a second on a slow disk.
pub const GRANT_USES_PAGES_MAX: usize = 100;
/// Commands that one commit takes at most: past this a lone command waits too long for its neighbours.
pub const COMMIT_COMMANDS_MAX: usize = 256;
/// Commands that may wait for the writer before callers are held back.
pub const COMMIT_QUEUE_MAX: usize = 4096;
/// Abandoned rows that a sweep looks at: those of a large worker at once, in a few megabytes.
pub const SWEEP_ROWS_MAX: usize = 10_000;
/// How long a process may believe what it read of a token, in milliseconds: hundreds of requests of a busy server. Whoever
/// revokes a token waits as long before saying that it is done, which a person does not notice.
pub const TOKEN_BELIEVED_MS: u64 = 25;
/// A one-time link to the inbox, in milliseconds: long enough to change windows.
pub const LOGIN_LINK_MS: i64 = 10 * 60 * 1000;
/// A browser's session with the inbox, in milliseconds: thirty days.
pub const SESSION_MS: i64 = 30 * 24 * 3600 * 1000;

// The gateway.

/// The longest line taken from a peer, in bytes. A longer one means that the peer is broken.
pub const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Lines that may wait for a peer that does not read before the sender is held back.
pub const OUTGOING_LINES_MAX: usize = 256;
/// Requests that one client or one upstream may have open: an agent's turn has tens.
pub const OPEN_REQUESTS_MAX: usize = 4096;
/// Questions that one upstream may have open: beyond this nobody answers them one by one.
pub const OPEN_QUESTIONS_MAX: usize = 64;
/// Results of paused calls that a gateway keeps at hand; the oldest go first, and stay in the store.
pub const RESULTS_KEPT_MAX: usize = 1024;
/// Sessions of MCP clients that one server keeps; past this the one that was used longest ago is forgotten, whose client
/// begins another.
pub const MCP_SESSIONS_MAX: usize = 1024;
/// Sessions that one agent may have of these: more than it runs processes.
pub const MCP_SESSIONS_OF_ONE_MAX: usize = 64;
/// Requests that one such session may have open at once: every question it may ask, and as many waits.
pub const MCP_OPEN_REQUESTS_MAX: usize = 2 * OPEN_QUESTIONS_MAX;

// Reading JSON and schemas.

/// Characters of a pattern that are shown: a longer one tells a person nothing.
pub const PATTERN_SHOWN_CHARS_MAX: usize = 120;
/// Subschemas that one path through an answer may meet once every `$ref` is followed. Without it, 26 definitions that
/// each name the one before twice keep the validator busy for 2^25 steps.
pub const SCHEMA_EXPANSION_MAX: u32 = 4096;
/// Errors reported for one answer: more than a person repairs at once.
pub const FIELD_ERRORS_MAX: usize = 32;
/// Branches of `anyOf` and `oneOf` looked into for a better message.
pub const SCHEMA_BRANCH_DEPTH_MAX: usize = 8;
/// Levels of nesting of a schema's text: six objects within each other.
pub const SCHEMA_DEPTH_MAX: usize = 16;
/// Members of one `properties`: more is no form a person fills in.
pub const SCHEMA_PROPERTIES_MAX: usize = 64;
/// Subschemas in all. The options of a titled enum are not counted: they are cheap, and lists of countries are long.
pub const SUBSCHEMAS_MAX: usize = 256;
/// Levels of groups that a form draws: deeper ones are entered as JSON, which a reader still follows.
pub const FORM_DEPTH_MAX: usize = 3;
/// Fields that a form draws in all, the rows of a list once: more is no longer one sitting.
pub const FORM_FIELDS_MAX: usize = 128;
/// Rows of one list that a form draws: whoever has more has them in a file.
pub const FORM_ROWS_MAX: usize = 32;
/// Approvals that are decided at once: as many as one can have read.
pub const BATCH_MAX: usize = 50;
/// Bytes of arguments that a list shows whole, so that they can be approved from there: a dozen lines.
pub const BATCH_ARGUMENTS_BYTES_MAX: usize = 1024;
/// Lines of either text that a line by line comparison takes: its work is their product.
pub const DIFF_LINES_MAX: usize = 2000;
/// Expressions in all, of `pattern` and `patternProperties`: each may take a megabyte once compiled.
pub const SCHEMA_PATTERNS_MAX: usize = 64;
/// Bytes a compiled pattern may take: `(?:a{1000}){1000}` is refused in two milliseconds.
pub const PATTERN_COMPILED_BYTES_MAX: usize = 1 << 20;
/// References followed from a property to what it is.
pub const SCHEMA_REFERENCES_MAX: usize = 16;
/// Bytes of JSON text that [`crate::json::Json::parse`] reads. Every surface has a smaller limit of its own; this one
/// only makes sure that none is ever missing.
pub const JSON_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Levels of nesting that [`crate::json::Json::parse`] reads. Real forms and tool calls stay under ten, and every
/// walk over a value may recurse this deep.
pub const JSON_DEPTH_MAX: usize = 64;
/// Levels of nesting that can be asked for at most: what `serde_json` still reads on the other side.
pub const JSON_DEPTH_CEILING: usize = 127;
/// Levels of a value that are shown; forms have two or three, and what is deeper is not worth the risk.
pub const REDACTION_DEPTH_MAX: usize = 16;
/// Subschemas looked at for one value before everything counts as secret: the expansion that the schema gate allows.
pub const REDACTION_SCHEMA_STEPS_MAX: usize = 4096;

// Servers over HTTP.

/// Headers of our own choice that go with every request to a server: a credential, and what a proxy wants.
pub const HTTP_HEADERS_MAX: usize = 32;
/// Name and value of such a header: most servers take no more than 8 KiB of all of them.
pub const HTTP_HEADER_BYTES_MAX: usize = 8 * 1024;
/// A server's name for its session; the field's are about forty characters.
pub const HTTP_SESSION_BYTES_MAX: usize = 1024;
/// The id of an event that a stream can go on from.
pub const HTTP_EVENT_ID_BYTES_MAX: usize = 1024;
/// Messages of one session that nobody has read yet before its streams are held back: each may be of the full size.
pub const HTTP_UNREAD_MESSAGES_MAX: usize = 8;
/// Events of one stream: a call that tells its progress every second for a day has fewer.
pub const HTTP_STREAM_EVENTS_MAX: usize = 100_000;

// Policies and grants.

/// A policy file: far more than a thousand rules take.
pub const POLICY_BYTES_MAX: u64 = 1024 * 1024;
/// Rules of one layer: more than anybody can hold in order.
pub const POLICY_RULES_MAX: usize = 1024;
/// Servers that a policy trusts, and tools that it describes.
pub const POLICY_TOOLS_MAX: usize = 1024;
/// Tool patterns of one rule.
pub const TOOL_PATTERNS_MAX: usize = 256;
/// Conditions of one rule or grant: tools have fewer arguments.
pub const CONDITIONS_MAX: usize = 64;
/// Values or patterns that one condition lists.
pub const CONDITION_VALUES_MAX: usize = 256;
/// A text argument that patterns are tried on, in bytes. It bounds the work, which is the pattern's length times this
/// one's; a longer text is taken for one that cannot be judged.
pub const POLICY_TEXT_BYTES_MAX: usize = 64 * 1024;
/// Commands of one compound command: agents chain fewer than ten.
pub const SHELL_SEGMENTS_MAX: usize = 64;
/// The longest a rule lets a person take, in milliseconds: a year. Without a deadline there is no end.
pub const DEADLINE_MS_MAX: i64 = 365 * 24 * 3600 * 1000;
/// Tools of which the reviewed definition is kept, for one agent: a hundred servers of a hundred tools each, and more.
pub const TOOLS_REVIEWED_MAX: usize = 16_384;
/// The longest that the inbox lets a grant be good for, in milliseconds: what is to hold longer has no end.
pub const GRANT_MS_MAX: i64 = 365 * 24 * 3600 * 1000;

// The native loop.

/// Turns of one run of a model, unless somebody says otherwise: past it most models go round in circles.
pub const MODEL_TURNS_DEFAULT: u32 = 50;
/// The most that may be set to.
pub const MODEL_TURNS_MAX: u32 = 1000;
/// Calls of one turn: each may have to be asked about, in one round.
pub const TURN_CALLS_MAX: usize = REQUESTS_MAX;
/// A model's id of a call: those of the field have about thirty characters.
pub const CALL_ID_BYTES_MAX: usize = 256;
/// A tool's name towards a model: what the field's endpoints take.
pub const FUNCTION_NAME_BYTES_MAX: usize = 64;
/// What a tool may answer, in bytes: past it a model reads nothing else any more.
pub const TOOL_RESULT_BYTES_MAX: usize = 256 * 1024;
/// Keys of one key file: a rotation a month, for ten years.
pub const STATE_KEYS_MAX: usize = 128;

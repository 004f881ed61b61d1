-- What every transition touches is narrow; what is asked and what was answered is written once, beside it.
CREATE TABLE rounds (
    id BLOB NOT NULL PRIMARY KEY,
    execution_id BLOB NOT NULL,
    operation TEXT NOT NULL,
    server TEXT NOT NULL,
    operation_kind TEXT NOT NULL,
    operation_name TEXT NOT NULL,
    asked_by TEXT NOT NULL,
    delivery TEXT NOT NULL,
    round_index INTEGER NOT NULL,
    round_limit INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    deadline INTEGER,
    digest BLOB NOT NULL,
    has_approval INTEGER NOT NULL,
    status TEXT NOT NULL,
    rev INTEGER NOT NULL,
    owner TEXT,
    token BLOB,
    delivery_attempts INTEGER NOT NULL,
    answer_key TEXT,
    answer_hash BLOB,
    answered_by TEXT,
    answered_channel TEXT,
    answered_at INTEGER,
    answered_action TEXT,
    collect_key TEXT,
    delivery_started_at INTEGER,
    delivered_at INTEGER,
    finished_at INTEGER,
    url_completed_at INTEGER,
    failure_code TEXT,
    failure_message TEXT
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX rounds_by_operation ON rounds (execution_id, operation, round_index);
CREATE INDEX rounds_pending ON rounds (id) WHERE status = 'pending';
CREATE INDEX rounds_deadline ON rounds (deadline) WHERE status = 'pending' AND deadline IS NOT NULL;
CREATE INDEX rounds_held ON rounds (owner) WHERE owner IS NOT NULL AND status NOT IN ('resolved', 'failed');
CREATE INDEX rounds_late ON rounds (operation)
    WHERE operation >= 'late:' AND operation < 'late;' AND finished_at IS NULL;
CREATE INDEX rounds_withdrawn ON rounds (server, finished_at) WHERE failure_code = 'withdrawn';

CREATE TABLE round_requests (
    round_id BLOB NOT NULL PRIMARY KEY,
    requests TEXT NOT NULL,
    calls TEXT NOT NULL,
    suggestion_of BLOB
) STRICT, WITHOUT ROWID;

-- A row here lives until its round is finished, and not longer.
CREATE TABLE request_states (
    round_id BLOB NOT NULL PRIMARY KEY,
    request_state TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE answers (
    round_id BLOB NOT NULL PRIMARY KEY,
    submitted TEXT NOT NULL,
    effective TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE creations (
    principal TEXT NOT NULL,
    key TEXT NOT NULL,
    round_id BLOB NOT NULL,
    fingerprint BLOB NOT NULL,
    PRIMARY KEY (principal, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE executions (
    id BLOB NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    started_by TEXT NOT NULL,
    owner TEXT,
    ends_with_round INTEGER NOT NULL,
    pending_inputs INTEGER NOT NULL,
    pending_approvals INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    finished_at INTEGER,
    outcome TEXT,
    failure_code TEXT,
    failure_message TEXT,
    collected_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX executions_open ON executions (owner) WHERE owner IS NOT NULL AND outcome IS NULL;

CREATE TABLE results (
    execution_id BLOB NOT NULL PRIMARY KEY,
    result TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- One row a worker process, renewed by one write: the lease of everything it holds.
CREATE TABLE owners (
    owner TEXT NOT NULL PRIMARY KEY,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE tokens (
    id BLOB NOT NULL PRIMARY KEY,
    use TEXT NOT NULL,
    principal TEXT NOT NULL,
    hash BLOB NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
    seq INTEGER NOT NULL PRIMARY KEY,
    at INTEGER NOT NULL,
    execution_id BLOB,
    round_id BLOB,
    principal TEXT,
    channel TEXT,
    body TEXT NOT NULL,
    previous_hash BLOB NOT NULL,
    hash BLOB NOT NULL
) STRICT;

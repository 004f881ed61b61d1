-- What every transition touches is narrow; what is asked and what was answered is written once, beside it. Ids are
-- UUIDv7, so that they sort by the time they were made; moments are Unix milliseconds.
CREATE TABLE rounds (
    id uuid NOT NULL PRIMARY KEY,
    execution_id uuid NOT NULL,
    operation text NOT NULL,
    server text NOT NULL,
    operation_kind text NOT NULL,
    operation_name text NOT NULL,
    asked_by text NOT NULL,
    delivery text NOT NULL,
    round_index bigint NOT NULL,
    round_limit bigint NOT NULL,
    created_at bigint NOT NULL,
    deadline bigint,
    digest bytea NOT NULL,
    has_approval boolean NOT NULL,
    status text NOT NULL,
    rev bigint NOT NULL,
    owner text,
    token uuid,
    delivery_attempts bigint NOT NULL,
    answer_key text,
    answer_hash bytea,
    answered_by text,
    answered_channel text,
    answered_at bigint,
    answered_action text,
    collect_key text,
    delivery_started_at bigint,
    delivered_at bigint,
    finished_at bigint,
    url_completed_at bigint,
    failure_code text,
    failure_message text
);
CREATE UNIQUE INDEX rounds_by_operation ON rounds (execution_id, operation, round_index);
CREATE INDEX rounds_pending ON rounds (id) WHERE status = 'pending';
CREATE INDEX rounds_deadline ON rounds (deadline) WHERE status = 'pending' AND deadline IS NOT NULL;
CREATE INDEX rounds_held ON rounds (owner)
    WHERE owner IS NOT NULL AND delivery = 'live' AND status NOT IN ('resolved', 'failed');
CREATE INDEX rounds_late ON rounds (operation COLLATE "C")
    WHERE operation COLLATE "C" >= 'late:' AND operation COLLATE "C" < 'late;' AND finished_at IS NULL;
CREATE INDEX rounds_withdrawn ON rounds (server, finished_at) WHERE failure_code = 'withdrawn';

CREATE TABLE round_requests (
    round_id uuid NOT NULL PRIMARY KEY,
    requests text NOT NULL,
    calls text NOT NULL,
    suggestion_of uuid
);

-- A row here lives until its round is finished, and not longer. Bytes, since a text of PostgreSQL holds no NUL.
CREATE TABLE request_states (
    round_id uuid NOT NULL PRIMARY KEY,
    request_state bytea NOT NULL
);

CREATE TABLE answers (
    round_id uuid NOT NULL PRIMARY KEY,
    submitted text NOT NULL,
    effective text NOT NULL
);

CREATE TABLE creations (
    principal text NOT NULL,
    key text NOT NULL,
    round_id uuid NOT NULL,
    fingerprint bytea NOT NULL,
    PRIMARY KEY (principal, key)
);

CREATE TABLE executions (
    id uuid NOT NULL PRIMARY KEY,
    kind text NOT NULL,
    started_by text NOT NULL,
    owner text,
    ends_with_round boolean NOT NULL,
    pending_inputs bigint NOT NULL,
    pending_approvals bigint NOT NULL,
    created_at bigint NOT NULL,
    finished_at bigint,
    outcome text,
    failure_code text,
    failure_message text,
    collected_at bigint
);
CREATE INDEX executions_open ON executions (owner) WHERE owner IS NOT NULL AND outcome IS NULL;

CREATE TABLE results (
    execution_id uuid NOT NULL PRIMARY KEY,
    result text NOT NULL
);

-- One row a worker process, renewed by one write: the lease of everything it holds.
CREATE TABLE owners (
    owner text NOT NULL PRIMARY KEY,
    expires_at bigint NOT NULL
);

CREATE TABLE tokens (
    id uuid NOT NULL PRIMARY KEY,
    use text NOT NULL,
    principal text NOT NULL,
    hash bytea NOT NULL UNIQUE,
    created_at bigint NOT NULL,
    expires_at bigint,
    revoked_at bigint
);
CREATE INDEX tokens_ending ON tokens (principal) WHERE use <> 'api' AND revoked_at IS NULL;

-- Written in the transition's own transaction, in no particular place; the sequencer moves them to `events`.
CREATE TABLE new_events (
    position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at bigint NOT NULL,
    execution_id uuid,
    round_id uuid,
    principal text,
    channel text,
    body text NOT NULL
);

CREATE TABLE events (
    seq bigint NOT NULL PRIMARY KEY,
    at bigint NOT NULL,
    execution_id uuid,
    round_id uuid,
    principal text,
    channel text,
    body text NOT NULL,
    previous_hash bytea NOT NULL,
    hash bytea NOT NULL
);

-- The end of the chain, and the process that may lengthen it until its lease runs out.
CREATE TABLE sequencer (
    id smallint NOT NULL PRIMARY KEY,
    last_seq bigint NOT NULL,
    last_hash bytea NOT NULL,
    owner text,
    expires_at bigint NOT NULL
);
INSERT INTO sequencer (id, last_seq, last_hash, owner, expires_at)
    VALUES (1, 0, decode(repeat('00', 32), 'hex'), NULL, 0);

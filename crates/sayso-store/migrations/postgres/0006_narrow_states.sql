-- How often an execution's row was written: whoever wrote it last and finds it the same knows the row without reading it.
ALTER TABLE executions ADD COLUMN rev bigint NOT NULL DEFAULT 0;

-- Events are stored as lists, an array a column: those of a transaction, which wait for their place in the chain, are one row
-- and cost what a row costs.
ALTER TABLE new_events RENAME TO single_new_events;
CREATE TABLE new_events (
    position bigint GENERATED ALWAYS AS IDENTITY,
    at bigint[] NOT NULL,
    execution_id uuid[] NOT NULL,
    round_id uuid[] NOT NULL,
    principal text[] NOT NULL,
    channel text[] NOT NULL,
    body text[] NOT NULL,
    PRIMARY KEY (position)
);
INSERT INTO new_events (at, execution_id, round_id, principal, channel, body)
    SELECT ARRAY[at], ARRAY[execution_id], ARRAY[round_id], ARRAY[principal], ARRAY[channel], ARRAY[body]
    FROM single_new_events ORDER BY position;
DROP TABLE single_new_events;

-- The chain: each list ends with the event `last_seq`, and follows the one of `previous_hash`.
CREATE TABLE event_groups (
    last_seq bigint NOT NULL PRIMARY KEY,
    previous_hash bytea NOT NULL,
    at bigint[] NOT NULL,
    execution_id uuid[] NOT NULL,
    round_id uuid[] NOT NULL,
    principal text[] NOT NULL,
    channel text[] NOT NULL,
    body text[] NOT NULL,
    hash bytea[] NOT NULL
);
INSERT INTO event_groups
    SELECT seq, previous_hash, ARRAY[at], ARRAY[execution_id], ARRAY[round_id], ARRAY[principal], ARRAY[channel],
        ARRAY[body], ARRAY[hash]
    FROM events ORDER BY seq;
DROP TABLE events;
-- Written under load, and read seldom: not worth compressing.
ALTER TABLE new_events ALTER COLUMN body SET STORAGE EXTERNAL;
ALTER TABLE event_groups ALTER COLUMN body SET STORAGE EXTERNAL;
ALTER TABLE event_groups ALTER COLUMN hash SET STORAGE EXTERNAL;

-- For looking at, from outside.
CREATE VIEW events AS
    SELECT last_seq - cardinality(g.at) + e.place AS seq, e.at, e.execution_id, e.round_id, e.principal, e.channel, e.body,
        e.hash
    FROM event_groups g, unnest(g.at, g.execution_id, g.round_id, g.principal, g.channel, g.body, g.hash)
        WITH ORDINALITY AS e (at, execution_id, round_id, principal, channel, body, hash, place);

-- A round in three rows: what never changes, with what is asked, is written once; what was answered is written once, with who
-- answered; the columns that transitions touch are a narrow row, of which each transition writes a whole new version.
CREATE TABLE round_facts (
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
    digest bytea NOT NULL,
    has_approval boolean NOT NULL,
    requests text NOT NULL,
    calls text NOT NULL,
    suggestion_of uuid
);
CREATE TABLE round_states (
    id uuid NOT NULL PRIMARY KEY,
    status text NOT NULL,
    rev bigint NOT NULL,
    owner text,
    token uuid,
    deadline bigint,
    -- The operation, where unfinished rounds are looked for by it: gated calls and late answers.
    sought text,
    delivery_attempts bigint NOT NULL,
    collect_key text,
    answered_at bigint,
    delivery_started_at bigint,
    delivered_at bigint,
    finished_at bigint,
    url_completed_at bigint,
    failure_code text,
    failure_message text,
    -- The server, of rounds that it took back.
    withdrawn_from text
) WITH (fillfactor = 70);
CREATE TABLE round_answers (
    round_id uuid NOT NULL PRIMARY KEY,
    answer_key text NOT NULL,
    answer_hash bytea NOT NULL,
    answered_by text NOT NULL,
    answered_channel text NOT NULL,
    answered_action text,
    submitted text NOT NULL,
    effective text NOT NULL
);
INSERT INTO round_facts
    SELECT id, execution_id, operation, server, operation_kind, operation_name, asked_by, delivery, round_index,
        round_limit, created_at, digest, has_approval, requests, calls, suggestion_of
    FROM rounds JOIN round_requests ON round_id = id ORDER BY id;
INSERT INTO round_states
    SELECT id, status, rev, owner, token, deadline,
        CASE WHEN operation COLLATE "C" >= 'late:' AND operation COLLATE "C" < 'late;'
            OR operation COLLATE "C" >= 'gate:' AND operation COLLATE "C" < 'gate;' THEN operation END,
        delivery_attempts, collect_key, answered_at, delivery_started_at, delivered_at, finished_at, url_completed_at,
        failure_code, failure_message, CASE WHEN failure_code = 'withdrawn' THEN server END
    FROM rounds ORDER BY id;
INSERT INTO round_answers
    SELECT id, answer_key, answer_hash, answered_by, answered_channel, answered_action, submitted, effective
    FROM rounds JOIN answers ON round_id = id WHERE answered_at IS NOT NULL ORDER BY id;
DROP TABLE rounds;
DROP TABLE round_requests;
DROP TABLE answers;
CREATE UNIQUE INDEX rounds_by_operation ON round_facts (execution_id, operation, round_index);
CREATE INDEX rounds_pending ON round_states (id) WHERE answered_at IS NULL AND finished_at IS NULL;
CREATE INDEX rounds_deadline ON round_states (deadline)
    WHERE answered_at IS NULL AND finished_at IS NULL AND deadline IS NOT NULL;
CREATE INDEX rounds_held ON round_states (owner) WHERE owner IS NOT NULL AND finished_at IS NULL;
CREATE INDEX rounds_sought ON round_states (sought COLLATE "C") WHERE sought IS NOT NULL AND finished_at IS NULL;
CREATE INDEX rounds_withdrawn ON round_states (withdrawn_from, finished_at) WHERE withdrawn_from IS NOT NULL;

-- For reading.
CREATE VIEW rounds AS
    SELECT s.id, execution_id, operation, server, operation_kind, operation_name, asked_by, delivery, round_index,
        round_limit, created_at, deadline, digest, has_approval, status, rev, owner, token, delivery_attempts, answer_key,
        answer_hash, answered_by, answered_channel, answered_at, answered_action, collect_key, delivery_started_at,
        delivered_at, finished_at, url_completed_at, failure_code, failure_message, requests, calls, suggestion_of, sought,
        withdrawn_from
    FROM round_states s JOIN round_facts f ON f.id = s.id LEFT JOIN round_answers a ON a.round_id = s.id;

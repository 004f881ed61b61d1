-- A round in two rows of the same number: what never changes, with what is asked, is written once; the few columns that a
-- transition touches are a narrow row of their own, changed in place. What was answered stands with who answered.
CREATE TABLE round_facts (
    n INTEGER NOT NULL PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
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
    digest BLOB NOT NULL,
    has_approval INTEGER NOT NULL,
    requests TEXT NOT NULL,
    calls TEXT NOT NULL,
    suggestion_of BLOB
) STRICT;

CREATE TABLE round_states (
    n INTEGER NOT NULL PRIMARY KEY,
    id BLOB NOT NULL,
    status TEXT NOT NULL,
    rev INTEGER NOT NULL,
    owner TEXT,
    token BLOB,
    deadline INTEGER,
    -- The operation, where unfinished rounds are looked for by it: gated calls and late answers.
    sought TEXT,
    delivery_attempts INTEGER NOT NULL,
    answered_at INTEGER,
    collect_key TEXT,
    delivery_started_at INTEGER,
    delivered_at INTEGER,
    finished_at INTEGER,
    url_completed_at INTEGER,
    failure_code TEXT,
    failure_message TEXT,
    -- The server, of rounds that it took back.
    withdrawn_from TEXT
) STRICT;

CREATE TABLE round_answers (
    n INTEGER NOT NULL PRIMARY KEY,
    answer_key TEXT NOT NULL,
    answer_hash BLOB NOT NULL,
    answered_by TEXT NOT NULL,
    answered_channel TEXT NOT NULL,
    answered_action TEXT,
    submitted TEXT NOT NULL,
    effective TEXT NOT NULL
) STRICT;

INSERT INTO round_facts (id, execution_id, operation, server, operation_kind, operation_name, asked_by, delivery,
        round_index, round_limit, created_at, digest, has_approval, requests, calls, suggestion_of)
    SELECT id, execution_id, operation, server, operation_kind, operation_name, asked_by, delivery, round_index,
        round_limit, created_at, digest, has_approval, requests, calls, suggestion_of
    FROM rounds JOIN round_requests ON round_id = id ORDER BY id;
INSERT INTO round_states
    SELECT n, id, status, rev, owner, token, deadline,
        iif(rounds.operation >= 'late:' AND rounds.operation < 'late;'
            OR rounds.operation >= 'gate:' AND rounds.operation < 'gate;', rounds.operation, NULL),
        delivery_attempts, answered_at, collect_key, delivery_started_at, delivered_at, finished_at, url_completed_at,
        failure_code, failure_message, iif(failure_code = 'withdrawn', rounds.server, NULL)
    FROM round_facts JOIN rounds USING (id) ORDER BY n;
INSERT INTO round_answers
    SELECT n, answer_key, answer_hash, answered_by, answered_channel, answered_action, submitted, effective
    FROM round_facts JOIN rounds USING (id) JOIN answers ON round_id = id WHERE answered_at IS NOT NULL ORDER BY n;
DROP TABLE rounds;
DROP TABLE round_requests;
DROP TABLE answers;

CREATE UNIQUE INDEX rounds_by_operation ON round_facts (execution_id, operation, round_index);
CREATE INDEX rounds_pending ON round_states (id) WHERE answered_at IS NULL AND finished_at IS NULL;
CREATE INDEX rounds_deadline ON round_states (deadline)
    WHERE answered_at IS NULL AND finished_at IS NULL AND deadline IS NOT NULL;
CREATE INDEX rounds_held ON round_states (owner) WHERE owner IS NOT NULL AND finished_at IS NULL;
CREATE INDEX rounds_sought ON round_states (sought) WHERE sought IS NOT NULL AND finished_at IS NULL;
CREATE INDEX rounds_withdrawn ON round_states (withdrawn_from, finished_at) WHERE withdrawn_from IS NOT NULL;

-- For looking at, from outside.
CREATE VIEW rounds AS
    SELECT facts.id, execution_id, operation, server, operation_kind, operation_name, asked_by, delivery, round_index,
        round_limit, created_at, deadline, digest, has_approval, status, rev, owner, token, delivery_attempts, answer_key,
        answer_hash, answered_by, answered_channel, answered_at, answered_action, collect_key, delivery_started_at,
        delivered_at, finished_at, url_completed_at, failure_code, failure_message
    FROM round_facts AS facts JOIN round_states AS states ON states.n = facts.n
        LEFT JOIN round_answers AS answers ON answers.n = facts.n;

-- How many rounds of an execution are pending is what the rounds say.
ALTER TABLE executions DROP COLUMN pending_inputs;
ALTER TABLE executions DROP COLUMN pending_approvals;

-- The events of a transaction are one row or a few: a list of what happened, numbered up to `last_seq`.
CREATE TABLE event_groups (
    last_seq INTEGER NOT NULL PRIMARY KEY,
    previous_hash BLOB NOT NULL,
    events TEXT NOT NULL
) STRICT;
INSERT INTO event_groups
    SELECT seq, previous_hash, json_array(json_object('at', at,
        'execution', iif(execution_id IS NULL, NULL, lower(hex(execution_id))),
        'round', iif(round_id IS NULL, NULL, lower(hex(round_id))),
        'principal', principal, 'channel', channel, 'body', json(body), 'hash', lower(hex(hash))))
    FROM events ORDER BY seq;
DROP TABLE events;

CREATE VIEW events AS
    SELECT last_seq - json_array_length(events) + 1 + each.key AS seq, each.value ->> 'at' AS at,
        unhex(each.value ->> 'execution') AS execution_id, unhex(each.value ->> 'round') AS round_id,
        each.value ->> 'principal' AS principal, each.value ->> 'channel' AS channel, each.value -> 'body' AS body,
        unhex(each.value ->> 'hash') AS hash
    FROM event_groups, json_each(events) AS each;

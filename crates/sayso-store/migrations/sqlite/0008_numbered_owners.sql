-- A worker's name is stored once, and what it holds names its number: a fraction of the room in the rows and indexes that each
-- transition touches. The number outlives the lease, as rounds say who held them.
CREATE TABLE numbered (
    n INTEGER NOT NULL PRIMARY KEY,
    owner TEXT NOT NULL UNIQUE,
    -- Nothing where there is no lease.
    expires_at INTEGER
) STRICT;
INSERT INTO numbered (owner, expires_at) SELECT owner, expires_at FROM owners ORDER BY owner;
INSERT OR IGNORE INTO numbered (owner) SELECT owner FROM round_states WHERE owner IS NOT NULL ORDER BY n;
INSERT OR IGNORE INTO numbered (owner) SELECT owner FROM executions WHERE owner IS NOT NULL ORDER BY id;
DROP TABLE owners;
ALTER TABLE numbered RENAME TO owners;

DROP VIEW rounds;
DROP INDEX rounds_held;
ALTER TABLE round_states ADD COLUMN holder INTEGER;
UPDATE round_states SET holder = (SELECT owners.n FROM owners WHERE owners.owner = round_states.owner)
    WHERE owner IS NOT NULL;
ALTER TABLE round_states DROP COLUMN owner;
CREATE INDEX rounds_held ON round_states (holder) WHERE holder IS NOT NULL AND finished_at IS NULL;

DROP INDEX executions_open;
ALTER TABLE executions RENAME TO execution_states;
ALTER TABLE execution_states ADD COLUMN holder INTEGER;
UPDATE execution_states SET holder = (SELECT n FROM owners WHERE owners.owner = execution_states.owner)
    WHERE owner IS NOT NULL;
ALTER TABLE execution_states DROP COLUMN owner;
CREATE INDEX executions_open ON execution_states (holder) WHERE holder IS NOT NULL AND outcome IS NULL;

-- What takes effect, where that is not what was submitted.
ALTER TABLE round_answers ADD COLUMN instead TEXT;
UPDATE round_answers SET instead = effective WHERE effective <> submitted;
ALTER TABLE round_answers DROP COLUMN effective;

-- For looking at, from outside.
CREATE VIEW rounds AS
    SELECT facts.id, execution_id, operation, server, operation_kind, operation_name, asked_by, delivery, round_index,
        round_limit, created_at, deadline, digest, has_approval, status, rev, owner, token, delivery_attempts, answer_key,
        answer_hash, answered_by, answered_channel, answered_at, answered_action, collect_key, delivery_started_at,
        delivered_at, finished_at, url_completed_at, failure_code, failure_message
    FROM round_facts AS facts JOIN round_states AS states ON states.n = facts.n
        LEFT JOIN round_answers AS answers ON answers.n = facts.n LEFT JOIN owners ON owners.n = states.holder;
CREATE VIEW executions AS
    SELECT id, kind, started_by, owner, ends_with_round, created_at, finished_at, outcome, failure_code, failure_message,
        collected_at
    FROM execution_states LEFT JOIN owners ON owners.n = execution_states.holder;

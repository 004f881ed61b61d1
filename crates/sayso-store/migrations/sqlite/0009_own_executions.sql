-- An execution that was started with a round has no row for as long as the round says all that there is to say of it. Then this
-- is what kind it is; whatever else changes it gives it a row in `execution_states`, which goes before.
ALTER TABLE round_facts ADD COLUMN own_execution TEXT;
DROP INDEX rounds_by_operation;
-- A round is in one of these.
CREATE UNIQUE INDEX rounds_by_operation ON round_facts (execution_id, operation, round_index) WHERE own_execution IS NULL;
CREATE UNIQUE INDEX rounds_by_own_execution ON round_facts (execution_id) WHERE own_execution IS NOT NULL;

-- The worker that a live round or its own execution dies with, for as long as either goes on.
ALTER TABLE round_states ADD COLUMN held INTEGER;
UPDATE round_states SET held = holder
    WHERE holder IS NOT NULL AND finished_at IS NULL
        AND EXISTS (SELECT 1 FROM round_facts WHERE round_facts.n = round_states.n AND delivery = 'live');
DROP INDEX rounds_held;
CREATE INDEX rounds_held ON round_states (held) WHERE held IS NOT NULL;

-- Executions that rounds say: one in a worker is ended by it, any other ends with its round.
CREATE VIEW own_executions AS
    SELECT execution_id AS id, own_execution AS kind, asked_by AS started_by, owner,
        delivery = 'resumable' AS ends_with_round, created_at, iif(delivery = 'resumable', finished_at, NULL) AS finished_at,
        CASE WHEN delivery = 'live' THEN NULL WHEN status = 'resolved' THEN 'completed'
            WHEN failure_code = 'cancelled' THEN 'cancelled' WHEN failure_code IS NOT NULL THEN 'failed' END AS outcome,
        iif(delivery = 'resumable', nullif(failure_code, 'cancelled'), NULL) AS failure_code,
        iif(delivery = 'resumable' AND failure_code <> 'cancelled', failure_message, NULL) AS failure_message,
        NULL AS collected_at, facts.id AS own_round
    FROM round_facts AS facts CROSS JOIN round_states AS states ON states.n = facts.n
        LEFT JOIN owners ON owners.n = holder AND delivery = 'live'
    WHERE own_execution IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM execution_states WHERE execution_states.id = execution_id);

-- Every execution, as it is.
DROP VIEW executions;
CREATE VIEW executions AS
    SELECT id, kind, started_by, owner, ends_with_round, created_at, finished_at, outcome, failure_code, failure_message,
        collected_at, NULL AS own_round
    FROM execution_states LEFT JOIN owners ON owners.n = holder
    UNION ALL
    SELECT * FROM own_executions;

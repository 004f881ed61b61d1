-- An execution that was started only for its round has no row for as long as the round says all that there is to say of it.
-- Then this is what kind it is; whatever else changes it gives it a row in `execution_states`, which goes before.
ALTER TABLE round_facts ADD COLUMN own_execution TEXT;

-- Every execution, as it is.
DROP VIEW executions;
CREATE VIEW executions AS
    SELECT id, kind, started_by, owner, ends_with_round, created_at, finished_at, outcome, failure_code, failure_message,
        collected_at, NULL AS own_round
    FROM execution_states LEFT JOIN owners ON owners.n = holder
    UNION ALL
    SELECT execution_id, own_execution, asked_by, owner, 1, created_at, finished_at,
        CASE WHEN status = 'resolved' THEN 'completed' WHEN failure_code = 'cancelled' THEN 'cancelled'
            WHEN failure_code IS NOT NULL THEN 'failed' END,
        nullif(failure_code, 'cancelled'), iif(failure_code = 'cancelled', NULL, failure_message), NULL, facts.id
    FROM round_facts AS facts CROSS JOIN round_states AS states ON states.n = facts.n
        LEFT JOIN owners ON owners.n = holder AND delivery = 'live'
    WHERE own_execution IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM execution_states WHERE execution_states.id = execution_id);

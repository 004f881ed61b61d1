-- The hops of a delivery change no column that an index depends on: with room left on the page they then touch no index.
-- A round is pending exactly while it is neither answered nor finished.
DROP INDEX rounds_pending;
DROP INDEX rounds_deadline;
DROP INDEX rounds_held;
CREATE INDEX rounds_pending ON rounds (id) WHERE answered_at IS NULL AND finished_at IS NULL;
CREATE INDEX rounds_deadline ON rounds (deadline)
    WHERE answered_at IS NULL AND finished_at IS NULL AND deadline IS NOT NULL;
CREATE INDEX rounds_held ON rounds (owner) WHERE owner IS NOT NULL AND delivery = 'live' AND finished_at IS NULL;
ALTER TABLE rounds SET (fillfactor = 70);
ALTER TABLE executions SET (fillfactor = 70);

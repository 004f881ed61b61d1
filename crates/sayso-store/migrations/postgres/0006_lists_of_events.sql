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

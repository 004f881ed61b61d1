-- The events of a transaction, in a form of our own that takes a quarter of the room: see `sqlite/rows/events.rs`. The hash
-- is that of the last one; those of the others follow from it. `sayso events` shows them.
CREATE TABLE event_lists (
    last_seq INTEGER NOT NULL PRIMARY KEY,
    -- Of the last one.
    at INTEGER NOT NULL,
    previous_hash BLOB NOT NULL,
    hash BLOB NOT NULL,
    events BLOB NOT NULL
) STRICT;
-- `event_list` is the migration's own: it reads the list of objects that was stored before. A list that somebody changed so that
-- it cannot be read stays as it is, to be found by `sayso doctor`, and stops nobody else.
INSERT INTO event_lists
    SELECT last_seq,
        iif(json_valid(events), iif(json_type(events, '$[#-1].at') = 'integer', events ->> '$[#-1].at', 0), 0),
        previous_hash, coalesce(iif(json_valid(events), unhex(events ->> '$[#-1].hash'), NULL), zeroblob(32)),
        coalesce(event_list(events), CAST(events AS BLOB))
    FROM event_groups ORDER BY last_seq;
DROP VIEW events;
DROP TABLE event_groups;

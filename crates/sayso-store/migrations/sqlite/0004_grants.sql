-- What people have allowed beforehand. Ended ones are kept: they say who allowed what ran.
CREATE TABLE grants (
    id BLOB NOT NULL PRIMARY KEY,
    scope TEXT NOT NULL,
    session TEXT,
    agent TEXT,
    round_id BLOB,
    granted_by TEXT NOT NULL,
    granted_at INTEGER NOT NULL,
    expires_at INTEGER,
    uses_max INTEGER,
    uses INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX grants_of_sessions ON grants (session, id) WHERE session IS NOT NULL;
CREATE INDEX grants_of_all ON grants (id) WHERE session IS NULL AND revoked_at IS NULL;
-- Gated calls are found by what they are: a call made again takes the answer given meanwhile.
CREATE INDEX rounds_gated ON rounds (operation)
    WHERE operation >= 'gate:' AND operation < 'gate;' AND finished_at IS NULL;

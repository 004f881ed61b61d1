-- What people have allowed beforehand. Ended ones are kept: they say who allowed what ran.
CREATE TABLE grants (
    id uuid NOT NULL PRIMARY KEY,
    scope text NOT NULL,
    session text,
    agent text,
    round_id uuid,
    granted_by text NOT NULL,
    granted_at bigint NOT NULL,
    expires_at bigint,
    uses_max bigint,
    uses bigint NOT NULL,
    revoked_at bigint
);
CREATE INDEX grants_of_sessions ON grants (session, id) WHERE session IS NOT NULL;
CREATE INDEX grants_of_all ON grants (id) WHERE session IS NULL AND revoked_at IS NULL;
-- Gated calls are found by what they are: a call made again takes the answer given meanwhile.
CREATE INDEX rounds_gated ON rounds (operation COLLATE "C")
    WHERE operation COLLATE "C" >= 'gate:' AND operation COLLATE "C" < 'gate;' AND finished_at IS NULL;

-- What rows are sealed with that notices carry: whoever may read these tables can open them, and nobody else. 244 random bits.
CREATE TABLE notice_key (
    id smallint NOT NULL PRIMARY KEY,
    key bytea NOT NULL
);
INSERT INTO notice_key (id, key)
    VALUES (1, decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex'));

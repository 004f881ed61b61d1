-- What the creator of a round wants kept beside it, written once; most rounds have none.
CREATE TABLE round_details (
    round_id BLOB NOT NULL PRIMARY KEY,
    details TEXT NOT NULL
) STRICT, WITHOUT ROWID;

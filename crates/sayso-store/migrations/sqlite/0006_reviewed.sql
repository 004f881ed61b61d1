-- The definition under which each tool was last reviewed, for each agent: one that changed meanwhile asks again.
CREATE TABLE reviewed (
    agent TEXT NOT NULL,
    tool TEXT NOT NULL,
    definition BLOB NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (agent, tool)
) STRICT, WITHOUT ROWID;

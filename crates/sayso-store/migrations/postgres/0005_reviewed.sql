-- The definition under which each tool was last reviewed, for each agent: one that changed meanwhile asks again. Tools are
-- named by servers, and a text of PostgreSQL holds no NUL.
CREATE TABLE reviewed (
    agent text NOT NULL,
    tool bytea NOT NULL,
    definition bytea NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (agent, tool)
);

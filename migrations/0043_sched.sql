-- +goose Up
-- The task that the conversation is about, by its id; empty = none. It outlives the
-- message that named it, which a summary may take the place of.
ALTER TABLE session ADD COLUMN pin TEXT NOT NULL DEFAULT '';

-- What sub-sessions of one piece of work keep for one another until all of it is told.
CREATE TABLE sub_session_file (
    node TEXT    NOT NULL REFERENCES sub_session (id), -- who wrote it
    name TEXT    NOT NULL,
    text TEXT    NOT NULL,
    at   INTEGER NOT NULL,                             -- Unix milliseconds, UTC
    PRIMARY KEY (node, name)
) STRICT;

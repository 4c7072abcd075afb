-- +goose Up
-- Background work and its dependencies. Package subsession.

-- Work that the model gave to a sub-session. What the sub-session said and did is in message,
-- in a room of its own: "sub:" and the id.
CREATE TABLE sub_session (
    id          TEXT PRIMARY KEY,                           -- sub_ and eight characters
    parent      TEXT    NOT NULL DEFAULT '',                -- the sub-session that asked for it; empty = the room did
    depth       INTEGER NOT NULL,                           -- 1: the room asked for it
    room        TEXT    NOT NULL,
    user        TEXT    NOT NULL DEFAULT '',                -- on whose behalf it was made
    private     INTEGER NOT NULL CHECK (private IN (0, 1)), -- 1: nobody else read the room then
    origin      TEXT    NOT NULL DEFAULT '',                -- the message or event that was worked on then
    objective   TEXT    NOT NULL,
    context     TEXT    NOT NULL DEFAULT '',
    mode        TEXT    NOT NULL CHECK (mode IN ('minimal', 'full', 'base_only', 'none')),
    tools       TEXT    NOT NULL,                           -- JSON array of names
    timeout     INTEGER NOT NULL,                           -- milliseconds of work
    status      TEXT    NOT NULL CHECK (status IN ('pending', 'running', 'waiting', 'completed', 'failed', 'cancelled')),
    result      TEXT    NOT NULL DEFAULT '',
    reason      TEXT    NOT NULL DEFAULT '',                -- why it failed or was cancelled
    rounds      INTEGER NOT NULL DEFAULT 0,                 -- requests to the model
    event       TEXT    NOT NULL DEFAULT '',                -- the system event that reports its end, perhaps with others
    tries       INTEGER NOT NULL DEFAULT 0,                 -- of that event
    created     INTEGER NOT NULL,
    started     INTEGER NOT NULL DEFAULT 0,
    ended       INTEGER NOT NULL DEFAULT 0,
    reported_at INTEGER NOT NULL DEFAULT 0,                 -- when its end was reported to whoever asked for it; 0 = not yet
    integrity   INTEGER NOT NULL DEFAULT 2 CHECK (integrity BETWEEN 0 AND 3) -- of all that it was given and has read (see message)
) STRICT;
CREATE INDEX sub_session_left ON sub_session (status, created) WHERE reported_at = 0;
CREATE INDEX sub_session_by_room ON sub_session (room, created);
CREATE INDEX sub_session_by_event ON sub_session (event) WHERE event <> '';
CREATE INDEX sub_session_by_parent ON sub_session (parent) WHERE parent <> '';

-- A node begins when all that it needs are completed.
CREATE TABLE sub_session_need (
    node  TEXT NOT NULL REFERENCES sub_session (id),
    needs TEXT NOT NULL REFERENCES sub_session (id),
    PRIMARY KEY (node, needs)
) STRICT;
CREATE INDEX sub_session_needed ON sub_session_need (needs);

-- +goose Up
CREATE TABLE room (
    id           TEXT PRIMARY KEY,
    conversation INTEGER NOT NULL DEFAULT 1   -- the current one; older ones stay in message
) STRICT;

CREATE TABLE message (
    id           INTEGER PRIMARY KEY AUTOINCREMENT, -- never reused: prompt epochs point at it
    room         TEXT    NOT NULL REFERENCES room (id),
    conversation INTEGER NOT NULL,
    role         TEXT    NOT NULL CHECK (role IN ('system', 'user', 'assistant', 'tool')),
    event_id     TEXT    NOT NULL DEFAULT '',
    sender       TEXT    NOT NULL DEFAULT '',
    header       TEXT    NOT NULL DEFAULT '',
    text         TEXT    NOT NULL DEFAULT '',
    tail         TEXT    NOT NULL DEFAULT '',
    calls        TEXT    NOT NULL DEFAULT '',       -- JSON array of tool calls, or empty
    call_id      TEXT    NOT NULL DEFAULT '',
    at           INTEGER NOT NULL,                  -- Unix milliseconds, UTC
    retired      INTEGER NOT NULL DEFAULT 0 CHECK (retired IN (0, 1))
) STRICT;

CREATE INDEX message_by_conversation ON message (room, conversation, id) WHERE retired = 0;
CREATE UNIQUE INDEX message_by_event ON message (room, event_id) WHERE event_id <> '';

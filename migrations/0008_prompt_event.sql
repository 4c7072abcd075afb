-- +goose Up
-- What made the prompt of a room anew, for the operator. The newest thousand are kept.
CREATE TABLE prompt_event (
    id      INTEGER PRIMARY KEY,
    room    TEXT    NOT NULL,
    at      INTEGER NOT NULL,   -- Unix milliseconds, UTC
    kind    TEXT    NOT NULL,   -- conversation, prompt, mode, skills, tools, mcp, memory, history, day
    detail  TEXT    NOT NULL    -- why the epoch began
) STRICT;
CREATE INDEX prompt_event_room ON prompt_event (room, id);

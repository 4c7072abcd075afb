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
-- When the model was last asked to make a part of the prompt shorter.
CREATE TABLE condense (
    component TEXT    NOT NULL,   -- tasks, memories, skills
    whose     TEXT    NOT NULL,   -- the room or scope that it belongs to; empty = everybody's
    asked_at  INTEGER NOT NULL,   -- Unix milliseconds, UTC
    PRIMARY KEY (component, whose)
) STRICT;
-- How much the model is to think in a room: off, low, medium, high; empty = as it likes.
ALTER TABLE session ADD COLUMN think TEXT NOT NULL DEFAULT '';

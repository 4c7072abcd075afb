-- +goose Up
-- Two memories that contradict each other, for a person to decide. No text stands here. Package
-- questions. A question is open while both are active in the same scope, unless a person said that both hold.
CREATE TABLE memory_question (
    id           INTEGER PRIMARY KEY AUTOINCREMENT, -- shown to people
    run          TEXT    NOT NULL,                  -- the dream that found it
    scope        TEXT    NOT NULL,
    first        TEXT    NOT NULL,                  -- the older one
    second       TEXT    NOT NULL,
    why          TEXT    NOT NULL,
    both_hold    INTEGER NOT NULL DEFAULT 0,        -- 1: a person said that both hold
    notice_event TEXT    NOT NULL DEFAULT '',       -- the notice that asks it; empty = it waits to be asked
    room         TEXT    NOT NULL DEFAULT '',       -- where
    asked        INTEGER NOT NULL DEFAULT 0         -- when; 0 = not yet
) STRICT;
CREATE UNIQUE INDEX memory_question_pair ON memory_question (first, second);
CREATE INDEX memory_question_by_event ON memory_question (notice_event) WHERE notice_event <> '';

-- +goose Up
-- In which mode a room is, and whether it may change by itself. Empty = assistant.
ALTER TABLE session ADD COLUMN mode TEXT NOT NULL DEFAULT '';
ALTER TABLE session ADD COLUMN mode_auto INTEGER NOT NULL DEFAULT 0 CHECK (mode_auto IN (0, 1));

-- How it came to be so. The newest hundred of each room are kept.
CREATE TABLE mode_switch (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    room      TEXT    NOT NULL,
    at        INTEGER NOT NULL,   -- Unix milliseconds, UTC
    from_mode TEXT    NOT NULL,
    to_mode   TEXT    NOT NULL,
    who       TEXT    NOT NULL,   -- who said !mode; empty = it changed by itself
    why       TEXT    NOT NULL
) STRICT;
CREATE INDEX mode_switch_room ON mode_switch (room, id);

-- +goose Up
-- Which task a room works on. Package objective.
CREATE TABLE objective (
    room  TEXT PRIMARY KEY,
    task  TEXT NOT NULL DEFAULT '',   -- its id; empty = none. It outlives the message that named it
    asked INTEGER NOT NULL DEFAULT 0  -- the newest message in the last request that asked a model
) STRICT;
INSERT INTO objective (room, task, asked) SELECT room, pin, pin_asked FROM session WHERE pin <> '' OR pin_asked <> 0;
ALTER TABLE session DROP COLUMN pin;
ALTER TABLE session DROP COLUMN pin_asked;
ALTER TABLE session DROP COLUMN pin_read;

-- +goose Up
-- What happened in a room, in numbers, and which notes the model was given about it.
-- Counted when it happens: what a conversation loses later does not change it.
CREATE TABLE steering (
    room  TEXT PRIMARY KEY,
    state TEXT NOT NULL       -- JSON; what cannot be read is counted anew
) STRICT;
-- A tool's result that says that nothing came of it.
ALTER TABLE message ADD COLUMN failed INTEGER NOT NULL DEFAULT 0 CHECK (failed IN (0, 1));

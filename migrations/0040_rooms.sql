-- +goose Up
-- An answer that took long does not take the place of the notice that said so, because
-- nobody is told of an edit: it is a new message, under another transaction id.
ALTER TABLE outbox ADD COLUMN anew INTEGER NOT NULL DEFAULT 0 CHECK (anew IN (0, 1));

-- What clients were told about our commands in a room: JSON, command → hash.
ALTER TABLE matrix_room ADD COLUMN commands TEXT NOT NULL DEFAULT '';

-- +goose Up
-- Why the client does not keep up: `bot doctor` is another process and cannot ask it.
ALTER TABLE matrix_sync ADD COLUMN failures INTEGER NOT NULL DEFAULT 0; -- syncs failed since the one stored here
ALTER TABLE matrix_sync ADD COLUMN problem  TEXT    NOT NULL DEFAULT ''; -- what the newest of them said

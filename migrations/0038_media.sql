-- +goose Up
-- The files that came with a message, and what the model gets of them: JSON.
ALTER TABLE message ADD COLUMN files TEXT NOT NULL DEFAULT '';

-- The file that a message of ours is, and where it was uploaded: JSON. It is kept
-- below the data folder, and uploaded once.
ALTER TABLE outbox ADD COLUMN file TEXT NOT NULL DEFAULT '';

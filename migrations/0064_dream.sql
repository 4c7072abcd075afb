-- +goose Up
-- Who dreams holds a lock of the data folder, which ends with its process.
DROP TABLE dream_lease;

-- The summaries of skills stay as they are written.
DELETE FROM dream_chore WHERE kind = 'condense';

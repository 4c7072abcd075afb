-- +goose Up
-- An active entry whose by_id names an active one is said by that one in other words, and is
-- shown by it. What was put together before is looked at again by the next dream.
UPDATE memory SET updated_at = unixepoch() * 1000 WHERE face <> '' AND state = 'active';
DROP INDEX memory_by_face;
ALTER TABLE memory DROP COLUMN face;

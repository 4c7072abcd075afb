-- +goose Up
-- A memory does not name another one that says nearly the same any more.
DROP INDEX memory_by_like;
ALTER TABLE memory DROP COLUMN like_id;

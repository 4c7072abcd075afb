-- +goose Up
-- What stands in files and prompts: entries that are no part of an imported conversation.
CREATE INDEX memory_shown ON memory (scope, n) WHERE state = 'active' AND conversation = '';

-- The earlier entry that says nearly the same; both stay as they are.
ALTER TABLE memory ADD COLUMN like_id TEXT NOT NULL DEFAULT '';
CREATE INDEX memory_by_like ON memory (like_id) WHERE like_id <> '';

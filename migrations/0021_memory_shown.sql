-- +goose Up
-- What stands in files and prompts: entries that are no part of an imported conversation.
CREATE INDEX memory_shown ON memory (scope, n) WHERE state = 'active' AND conversation = '';

-- +goose Up
ALTER TABLE outbox ADD COLUMN mention TEXT NOT NULL DEFAULT '';  -- user ids with spaces between, who are to be told that it is for them

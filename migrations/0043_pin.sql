-- +goose Up
-- The task that the conversation is about, by its id; empty = none. It outlives the
-- message that named it, which a summary may take the place of.
ALTER TABLE session ADD COLUMN pin TEXT NOT NULL DEFAULT '';

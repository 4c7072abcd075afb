-- +goose Up
-- A mode changes when a person asks for it, and not by itself any more.
ALTER TABLE session DROP COLUMN mode_auto;

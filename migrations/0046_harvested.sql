-- +goose Up
-- Of the requests of a dream, how many read conversations before it planned.
ALTER TABLE dream_run ADD COLUMN harvest INTEGER NOT NULL DEFAULT 0;

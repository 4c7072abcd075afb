-- +goose Up
-- How the last scheduled backup went, and the last try to restore one. Package backup.
CREATE TABLE backup_run (
    what    TEXT PRIMARY KEY CHECK (what IN ('backup', 'check')),
    file    TEXT    NOT NULL, -- its path
    at      INTEGER NOT NULL, -- milliseconds
    good_at INTEGER NOT NULL, -- when it last succeeded, in milliseconds; 0 = never
    problem TEXT    NOT NULL  -- why it failed; empty = it succeeded
) STRICT;

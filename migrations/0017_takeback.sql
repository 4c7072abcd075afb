-- +goose Up
-- Events of ours that a homeserver showed so late that we had sent them again:
-- they are taken back.
CREATE TABLE takeback (
    event_id TEXT PRIMARY KEY,
    room     TEXT    NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    next_at  INTEGER NOT NULL DEFAULT 0   -- Unix milliseconds, UTC
) STRICT;

-- +goose Up
-- The prompt of each room as it was last rendered. Package prompt.

-- One row per room: how the prompt epoch of its conversation was rendered. The bytes sent
-- to the model stay the same across a restart.
CREATE TABLE prompt_epoch (
    room          TEXT    PRIMARY KEY,
    conversation  INTEGER NOT NULL,
    layout        TEXT    NOT NULL,
    key           TEXT    NOT NULL, -- hashes of the sources that end the epoch when they change
    prefix        TEXT    NOT NULL, -- the system text; empty in a layout that rebuilds it every time
    sections      TEXT    NOT NULL, -- JSON: the report on the prefix
    shown         TEXT    NOT NULL, -- JSON: what the model has seen of it, and in which message
    nonce         TEXT    NOT NULL, -- of the fences; one per conversation
    first_message INTEGER NOT NULL, -- older messages are left out
    since_message INTEGER NOT NULL, -- tails of older messages are left out
    started_at    INTEGER NOT NULL,
    reason        TEXT    NOT NULL  -- why it began
) STRICT;

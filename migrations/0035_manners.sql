-- +goose Up
-- What a message refers to: the thread it was written in, by its root, and the
-- message that it replies to.
ALTER TABLE inbox ADD COLUMN thread TEXT NOT NULL DEFAULT '';
ALTER TABLE inbox ADD COLUMN reply_to TEXT NOT NULL DEFAULT '';
ALTER TABLE inbox ADD COLUMN brought TEXT NOT NULL DEFAULT ''; -- JSON: what it quotes and the files it has; emptied when the message is done

ALTER TABLE inbox ADD COLUMN incomplete INTEGER NOT NULL DEFAULT 0 CHECK (incomplete IN (0, 1)); -- 1: what it brings is still to be fetched, before it is delivered

ALTER TABLE outbox ADD COLUMN thread TEXT NOT NULL DEFAULT '';  -- the root of the thread it belongs into; empty = the main timeline

-- What people have set for a room. What is not here is as it is by default.
CREATE TABLE room_setting (
    room   TEXT    NOT NULL,
    name   TEXT    NOT NULL,
    value  TEXT    NOT NULL,
    person TEXT    NOT NULL,                     -- who set it
    at     INTEGER NOT NULL,                     -- Unix milliseconds
    PRIMARY KEY (room, name)
) STRICT, WITHOUT ROWID;

-- +goose Up
-- Where the client stands with its homeserver. The token commits together with
-- the inbox rows of the same sync, so that no message is lost or taken twice.
CREATE TABLE matrix_sync (
    user       TEXT    NOT NULL,
    device     TEXT    NOT NULL,                 -- a new device starts from the beginning
    next_batch TEXT    NOT NULL,
    at         INTEGER NOT NULL,                 -- Unix milliseconds, UTC, like every time here
    PRIMARY KEY (user, device)
) STRICT;

CREATE TABLE matrix_room (
    id         TEXT PRIMARY KEY,
    membership TEXT    NOT NULL DEFAULT '' CHECK (membership IN ('', 'invited', 'refused', 'joined', 'left')),
    direct     INTEGER NOT NULL DEFAULT 0 CHECK (direct IN (0, 1)),    -- is_direct or m.direct said so; never the number of members
    encrypted  INTEGER NOT NULL DEFAULT 0 CHECK (encrypted IN (0, 1)), -- sticky: never goes back to 0
    inviter    TEXT    NOT NULL DEFAULT '',
    attempts   INTEGER NOT NULL DEFAULT 0,       -- of the join or refusal that is still to be done
    next_at    INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX matrix_room_to_do ON matrix_room (next_at) WHERE membership IN ('invited', 'refused');

CREATE TABLE inbox (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    id          TEXT    NOT NULL UNIQUE,         -- the event id: a message is taken once
    room        TEXT    NOT NULL,
    sender      TEXT    NOT NULL,
    sender_name TEXT    NOT NULL DEFAULT '',
    text        TEXT    NOT NULL,                -- emptied when the message is done
    private     INTEGER NOT NULL CHECK (private IN (0, 1)),
    sent_at     INTEGER NOT NULL,
    received_at INTEGER NOT NULL,
    state       TEXT    NOT NULL DEFAULT 'new' CHECK (state IN ('new', 'done'))
) STRICT;

CREATE INDEX inbox_to_do ON inbox (seq) WHERE state = 'new';

CREATE TABLE outbox (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    id         TEXT    NOT NULL UNIQUE,          -- also the transaction id, so that sending twice makes one event
    room       TEXT    NOT NULL,
    kind       TEXT    NOT NULL DEFAULT 'text' CHECK (kind IN ('text', 'notice')),
    text       TEXT    NOT NULL DEFAULT '',
    reply_to   TEXT    NOT NULL DEFAULT '',
    state      TEXT    NOT NULL CHECK (state IN ('draft', 'pending', 'sent', 'dead')),
    drafted    INTEGER NOT NULL DEFAULT 0 CHECK (drafted IN (0, 1)), -- 1: the first event of this id carries a draft
    revision   INTEGER NOT NULL DEFAULT 0,       -- how many final texts this id has had
    event_id   TEXT    NOT NULL DEFAULT '',
    attempts   INTEGER NOT NULL DEFAULT 0,
    next_at    INTEGER NOT NULL DEFAULT 0,
    error      TEXT    NOT NULL DEFAULT '',
    created_at INTEGER NOT NULL
) STRICT;

CREATE INDEX outbox_to_do ON outbox (room, seq) WHERE state = 'pending';
CREATE INDEX outbox_by_event ON outbox (event_id) WHERE event_id <> '';

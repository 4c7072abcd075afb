-- +goose Up
-- Events that cannot be read yet wait in the inbox as they came. A key may be
-- days late, and the program may be restarted until then.
CREATE TABLE inbox_new (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    id          TEXT    NOT NULL UNIQUE,         -- the event id: a message is taken once
    room        TEXT    NOT NULL,
    sender      TEXT    NOT NULL,
    sender_name TEXT    NOT NULL DEFAULT '',
    text        TEXT    NOT NULL DEFAULT '',     -- emptied when the message is done
    private     INTEGER NOT NULL DEFAULT 0 CHECK (private IN (0, 1)),
    sent_at     INTEGER NOT NULL,
    received_at INTEGER NOT NULL,
    state       TEXT    NOT NULL DEFAULT 'new' CHECK (state IN (
                    'new',                       -- to be answered
                    'done',                      -- answered, or needs no answer
                    'utd',                       -- cannot be decrypted: waits for its key
                    'failed',                    -- reading it went wrong: is tried again
                    'dead',                      -- given up
                    'redacted')),                -- its sender took it back before it was answered
    raw         TEXT    NOT NULL DEFAULT '',     -- utd, failed and dead: the event
    megolm      TEXT    NOT NULL DEFAULT '',     -- utd: the session whose key is missing
    tries       INTEGER NOT NULL DEFAULT 0,      -- failed: how often
    next_at     INTEGER NOT NULL DEFAULT 0,      -- utd and failed: when to try again; 0 = when the key comes
    error       TEXT    NOT NULL DEFAULT ''
) STRICT;

INSERT INTO inbox_new (seq, id, room, sender, sender_name, text, private, sent_at, received_at, state)
    SELECT seq, id, room, sender, sender_name, text, private, sent_at, received_at, state FROM inbox;
DROP TABLE inbox;
ALTER TABLE inbox_new RENAME TO inbox;

CREATE INDEX inbox_to_do ON inbox (room, seq) WHERE state = 'new';
CREATE INDEX inbox_unread ON inbox (next_at) WHERE state IN ('utd', 'failed');

-- Where a gap ends: the newest event of the room that was seen.
ALTER TABLE matrix_room ADD COLUMN last_event TEXT NOT NULL DEFAULT '';
UPDATE matrix_room SET last_event = coalesce((SELECT id FROM inbox WHERE room = matrix_room.id ORDER BY seq DESC LIMIT 1), '');

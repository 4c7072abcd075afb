-- +goose Up
-- Rooms on the homeserver, and the messages that come in and go out. Package matrix.

-- The position of the client in the sync stream. The token commits together with the inbox
-- rows of the same sync, so that no message is lost or taken twice.
CREATE TABLE matrix_sync (
    user       TEXT    NOT NULL,
    device     TEXT    NOT NULL,                 -- a new device starts from the beginning
    next_batch TEXT    NOT NULL,
    at         INTEGER NOT NULL,
    failures   INTEGER NOT NULL DEFAULT 0,       -- syncs that failed since; bot doctor is another process and reads them here
    problem    TEXT    NOT NULL DEFAULT '',      -- the error of the newest of them
    PRIMARY KEY (user, device)
) STRICT;

CREATE TABLE matrix_room (
    id          TEXT PRIMARY KEY,
    membership  TEXT    NOT NULL DEFAULT '' CHECK (membership IN ('', 'invited', 'refused', 'joined', 'left')),
    encrypted   INTEGER NOT NULL DEFAULT 0 CHECK (encrypted IN (0, 1)), -- it never goes back to 0
    inviter     TEXT    NOT NULL DEFAULT '',
    attempts    INTEGER NOT NULL DEFAULT 0,      -- at a join or refusal that is still to be done
    next_at     INTEGER NOT NULL DEFAULT 0,
    last_event  TEXT    NOT NULL DEFAULT '',     -- the newest event that was seen, where a gap in the timeline ends
    replaces    TEXT    NOT NULL DEFAULT '',     -- the room that this one took the place of
    moved       INTEGER NOT NULL DEFAULT 0 CHECK (moved IN (0, 1)),     -- 1: what belongs to that room was brought along
    direct_with TEXT    NOT NULL DEFAULT '',     -- the user that a direct chat was made for, who never changes; empty = no direct chat
    exposed     INTEGER NOT NULL DEFAULT 0 CHECK (exposed IN (0, 1))    -- 1: another person was a member, or everybody could read it; it never goes back to 0
) STRICT;
CREATE INDEX matrix_room_to_do ON matrix_room (next_at) WHERE membership IN ('invited', 'refused');

-- The tombstone that counts for a room: one for each.
CREATE TABLE matrix_tombstone (
    room        TEXT PRIMARY KEY,
    replacement TEXT NOT NULL,
    sender      TEXT NOT NULL,
    empty       INTEGER NOT NULL CHECK (empty IN (0, 1)), -- 1: nothing was seen of the room before, so there is nothing to move
    state       TEXT NOT NULL CHECK (state IN (
                    'new',                       -- it is unknown whether the replacement names the room as its predecessor
                    'joining',                   -- the same, and the replacement is joined to find out
                    'followed',                  -- it names the room
                    'refused'))                  -- it does not
) STRICT;
CREATE INDEX matrix_tombstone_open ON matrix_tombstone (room) WHERE state IN ('new', 'joining');

-- The threads in which the bot was asked something.
CREATE TABLE matrix_thread (
    room     TEXT    NOT NULL,
    root     TEXT    NOT NULL,
    newest   TEXT    NOT NULL,                   -- the newest event that was seen in it
    spoke_at INTEGER NOT NULL DEFAULT 0,         -- when the bot last said something there; 0 = never
    PRIMARY KEY (room, root)
) STRICT, WITHOUT ROWID;

-- Messages to the bot, and what people do to earlier ones (edits, redactions, reactions, votes).
-- An event that cannot be read yet waits here as it came: its key may be days late.
CREATE TABLE inbox (
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
                    'redacted')),                -- its sender redacted it before it was answered
    raw         TEXT    NOT NULL DEFAULT '',     -- utd, failed and dead: the event
    megolm      TEXT    NOT NULL DEFAULT '',     -- utd: the session whose key is missing
    tries       INTEGER NOT NULL DEFAULT 0,      -- failed: how often
    next_at     INTEGER NOT NULL DEFAULT 0,      -- utd and failed: when to try again; 0 = when the key comes
    error       TEXT    NOT NULL DEFAULT '',
    thread      TEXT    NOT NULL DEFAULT '',     -- the root of the thread that the message was written in
    reply_to    TEXT    NOT NULL DEFAULT '',     -- the message that it replies to
    brought     TEXT    NOT NULL DEFAULT '',     -- JSON: what it quotes and the files it has; emptied when the message is done
    incomplete  INTEGER NOT NULL DEFAULT 0 CHECK (incomplete IN (0, 1)), -- 1: quotes or files are to be fetched before it is delivered
    target      TEXT    NOT NULL DEFAULT '',     -- of a change: the id of the message in the inbox or outbox that it changes
    branch      TEXT    NOT NULL DEFAULT '',     -- the root of the thread that it is answered in; empty = the room itself.
                                                 -- It is decided when the message comes: a later setting or a restart moves no answer
    change      TEXT    NOT NULL DEFAULT '' CHECK (change IN ('', 'edited', 'taken back', 'stop', 'retry', 'voted')),
    unproven    INTEGER NOT NULL DEFAULT 0 CHECK (unproven IN (0, 1)) -- 1: nothing proves which device wrote it, because its room is not encrypted,
                                                 -- and the device rule covers its sender. It does not count as the owner's
) STRICT;
CREATE INDEX inbox_to_do ON inbox (room, seq) WHERE state = 'new';
CREATE INDEX inbox_unread ON inbox (next_at) WHERE state IN ('utd', 'failed');
CREATE INDEX inbox_by_target ON inbox (target) WHERE target <> '';

-- What was said in rooms with others and was not for the bot. It goes to the model with the
-- next message that is.
CREATE TABLE heard (
    seq      INTEGER PRIMARY KEY AUTOINCREMENT,
    event    TEXT    NOT NULL UNIQUE,
    room     TEXT    NOT NULL,
    thread   TEXT    NOT NULL DEFAULT '',        -- the root of the thread it was said in; empty = none
    sender   TEXT    NOT NULL,
    name     TEXT    NOT NULL DEFAULT '',
    text     TEXT    NOT NULL,                   -- emptied once it is given
    at       INTEGER NOT NULL,                   -- as its server says
    heard_at INTEGER NOT NULL,                   -- by the clock of this machine
    given    INTEGER NOT NULL DEFAULT 0 CHECK (given IN (0, 1))
) STRICT;
CREATE INDEX heard_by_room ON heard (room, seq);

-- Messages that their senders redacted and that are still to be forgotten.
CREATE TABLE redaction (
    event TEXT PRIMARY KEY
) STRICT;

CREATE TABLE outbox (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    id         TEXT    NOT NULL UNIQUE,          -- also the transaction id, so that sending twice makes one event
    room       TEXT    NOT NULL,
    kind       TEXT    NOT NULL DEFAULT 'text' CHECK (kind IN ('text', 'notice')),
    text       TEXT    NOT NULL DEFAULT '',      -- of a poll: its question, and once it is closed its result
    reply_to   TEXT    NOT NULL DEFAULT '',
    state      TEXT    NOT NULL CHECK (state IN ('draft', 'pending', 'sent', 'dead')),
    drafted    INTEGER NOT NULL DEFAULT 0 CHECK (drafted IN (0, 1)), -- 1: the first event of this id carries a draft
    revision   INTEGER NOT NULL DEFAULT 0,       -- how many final texts this id has had
    event_id   TEXT    NOT NULL DEFAULT '',
    attempts   INTEGER NOT NULL DEFAULT 0,
    next_at    INTEGER NOT NULL DEFAULT 0,
    error      TEXT    NOT NULL DEFAULT '',
    created_at INTEGER NOT NULL,
    mention    TEXT    NOT NULL DEFAULT '',      -- user ids with spaces between, whom the message mentions
    thread     TEXT    NOT NULL DEFAULT '',      -- the root of its thread; empty = the main timeline
    generation INTEGER NOT NULL DEFAULT 0,       -- how many events of this message were redacted. The next event needs a new
                                                 -- transaction id: for the old one the homeserver would return the old event
    file       TEXT    NOT NULL DEFAULT '',      -- JSON: the file that this message is, and where it was uploaded.
                                                 -- It is kept below the data folder, and uploaded once
    poll       TEXT    NOT NULL DEFAULT '',      -- JSON: the question and the options of a poll; empty = an ordinary message
    closed     INTEGER NOT NULL DEFAULT 0 CHECK (closed IN (0, 1)) -- 1: votes no longer count
) STRICT;
CREATE INDEX outbox_to_do ON outbox (room, seq) WHERE state = 'pending';
CREATE INDEX outbox_by_event ON outbox (event_id) WHERE event_id <> '';

-- Events of the bot that are to be redacted in the room.
CREATE TABLE takeback (
    event_id TEXT PRIMARY KEY,
    room     TEXT    NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    next_at  INTEGER NOT NULL DEFAULT 0,
    reason   TEXT    NOT NULL DEFAULT 'sent twice' -- sent twice: the homeserver showed the first one too late
) STRICT;

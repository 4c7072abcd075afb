-- +goose Up
-- Messages that come in and go out. Package delivery.

-- Messages to the bot, and what people do to earlier ones (edits, redactions, reactions, votes).
-- An event that cannot be decrypted yet is kept as it came: its key may be days late.
CREATE TABLE inbox (
    seq           INTEGER PRIMARY KEY AUTOINCREMENT,
    id            TEXT    NOT NULL UNIQUE,     -- the event id, so that a message is stored once
    room          TEXT    NOT NULL,
    sender        TEXT    NOT NULL,
    text          TEXT    NOT NULL DEFAULT '', -- emptied when the message is done
    private       INTEGER NOT NULL DEFAULT 0 CHECK (private IN (0, 1)),
    sent_at       INTEGER NOT NULL,
    received_at   INTEGER NOT NULL,
    state         TEXT    NOT NULL DEFAULT 'new' CHECK (state IN (
                    'new',                     -- to be answered
                    'done',                    -- answered, or needs no answer
                    'utd',                     -- cannot be decrypted: waits for its key
                    'failed',                  -- reading it went wrong: is tried again
                    'dead',                    -- given up
                    'redacted')),              -- its sender redacted it before it was answered
    raw           TEXT    NOT NULL DEFAULT '', -- utd, failed and dead: the event
    megolm        TEXT    NOT NULL DEFAULT '', -- utd: the session whose key is missing
    tries         INTEGER NOT NULL DEFAULT 0,  -- failed: how often
    next_at       INTEGER NOT NULL DEFAULT 0,  -- utd and failed: the next attempt; 0 = when the key comes
    error         TEXT    NOT NULL DEFAULT '',
    thread        TEXT    NOT NULL DEFAULT '', -- the root of the thread that the message was written in
    reply_to      TEXT    NOT NULL DEFAULT '', -- the message that it replies to
    attachments   TEXT    NOT NULL DEFAULT '', -- JSON: what it quotes and the files it has; emptied when the message is done
    incomplete    INTEGER NOT NULL DEFAULT 0 CHECK (incomplete IN (0, 1)), -- 1: quotes or files are to be fetched before it is delivered
    target        TEXT    NOT NULL DEFAULT '', -- of a change: the id of the message in the inbox or outbox that it changes
    answer_thread TEXT    NOT NULL DEFAULT '', -- the root of the thread that it is answered in; empty = the room itself. It is decided
                                               -- when the message comes: a later setting or a restart moves no answer
    unverified    INTEGER NOT NULL DEFAULT 0 CHECK (unverified IN (0, 1)), -- 1: nothing proves which device wrote it, because its room is
                                                                           -- not encrypted, and the device rule covers its sender. It
                                                                           -- does not count as the owner's
    change        TEXT    NOT NULL DEFAULT '' CHECK (change IN ('', 'edited', 'redacted', 'stop', 'retry', 'voted'))
) STRICT;
CREATE INDEX inbox_to_do ON inbox (room, seq) WHERE state = 'new';
CREATE INDEX inbox_unread ON inbox (next_at) WHERE state IN ('utd', 'failed');
CREATE INDEX inbox_by_target ON inbox (target) WHERE target <> '';

-- Messages in group rooms that did not address the bot. The model gets them with the next
-- message that does.
CREATE TABLE group_message (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    event       TEXT    NOT NULL UNIQUE,
    room        TEXT    NOT NULL,
    thread      TEXT    NOT NULL DEFAULT '', -- the root of the thread it was said in; empty = none
    sender      TEXT    NOT NULL,
    text        TEXT    NOT NULL,            -- emptied once a model got it
    at          INTEGER NOT NULL,            -- as its server says
    received_at INTEGER NOT NULL,            -- by the clock of this machine
    delivered   INTEGER NOT NULL DEFAULT 0 CHECK (delivered IN (0, 1))
) STRICT;
CREATE INDEX group_message_by_room ON group_message (room, seq);

-- Messages that their senders redacted. What was learned from them is still to be forgotten.
CREATE TABLE redacted_message (
    event TEXT PRIMARY KEY
) STRICT;

-- The threads in which the bot was asked something.
CREATE TABLE matrix_thread (
    room     TEXT    NOT NULL,
    root     TEXT    NOT NULL,
    newest   TEXT    NOT NULL,           -- the newest event that was seen in it
    spoke_at INTEGER NOT NULL DEFAULT 0, -- when the bot last said something there; 0 = never
    PRIMARY KEY (room, root)
) STRICT, WITHOUT ROWID;

-- Messages of the bot, with the state of their events on the homeserver.
CREATE TABLE outbox (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    id         TEXT    NOT NULL UNIQUE,                              -- also the transaction id, so that sending twice makes one event
    room       TEXT    NOT NULL,
    kind       TEXT    NOT NULL DEFAULT 'text' CHECK (kind IN ('text', 'notice')),
    text       TEXT    NOT NULL DEFAULT '',                          -- of a poll: its question, and once it is closed its result
    reply_to   TEXT    NOT NULL DEFAULT '',
    state      TEXT    NOT NULL CHECK (state IN ('draft', 'pending', 'sent', 'dead')),
    drafted    INTEGER NOT NULL DEFAULT 0 CHECK (drafted IN (0, 1)), -- 1: the first event of this id carries a draft
    revision   INTEGER NOT NULL DEFAULT 0,                           -- how many final texts this id has had
    event_id   TEXT    NOT NULL DEFAULT '',
    attempts   INTEGER NOT NULL DEFAULT 0,
    next_at    INTEGER NOT NULL DEFAULT 0,
    error      TEXT    NOT NULL DEFAULT '',
    created_at INTEGER NOT NULL,
    mention    TEXT    NOT NULL DEFAULT '',                          -- user ids with spaces between, whom the message mentions
    thread     TEXT    NOT NULL DEFAULT '',                          -- the root of its thread; empty = the main timeline
    generation INTEGER NOT NULL DEFAULT 0,                           -- how many events of this message were redacted. The next event
                                                                     -- needs a new transaction id: for the old one the homeserver would
                                                                     -- return the old event
    file       TEXT    NOT NULL DEFAULT '',                          -- JSON: the file that this message is, and where it was uploaded. It
                                                                     -- is kept below the data folder, and uploaded once
    poll       TEXT    NOT NULL DEFAULT '',                          -- JSON: the question and the options of a poll; empty = an ordinary
                                                                     -- message
    closed     INTEGER NOT NULL DEFAULT 0 CHECK (closed IN (0, 1)),  -- 1: votes no longer count
    message    TEXT    NOT NULL DEFAULT '',                          -- the message that this row is a part of; empty = it is one itself
    part       TEXT    NOT NULL DEFAULT '' CHECK (part IN (
                   '',                                               -- the message itself
                   'file',                                           -- a file that a tool sent; it stays when the answer changes
                   'whole',                                          -- a file with all of a message that is too long
                   'text')),                                         -- a further event of a long message of an earlier version
    -- the transaction id of the next event
    txn        TEXT    NOT NULL GENERATED ALWAYS AS (iif(generation = 0, id, id || '~' || generation)) VIRTUAL
) STRICT;
CREATE INDEX outbox_to_do ON outbox (room, seq) WHERE state = 'pending';
CREATE INDEX outbox_by_event ON outbox (event_id) WHERE event_id <> '';
CREATE UNIQUE INDEX outbox_by_txn ON outbox (txn);
CREATE INDEX outbox_by_message ON outbox (message) WHERE message <> '';

-- Transaction ids of events that were redacted. An event that a sync shows late is redacted, too.
CREATE TABLE redacted_txn (
    txn  TEXT PRIMARY KEY,
    room TEXT NOT NULL
) STRICT;

-- Events of the bot that are to be redacted in the room.
CREATE TABLE pending_redaction (
    event_id TEXT PRIMARY KEY,
    room     TEXT    NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    next_at  INTEGER NOT NULL DEFAULT 0,
    reason   TEXT    NOT NULL DEFAULT 'sent twice' -- sent twice: the homeserver showed the first one too late
) STRICT;

-- Which messages each reply of the bot answers, noted before the model is asked. A message has
-- several replies when it was asked again, a reply several messages when they came together.
CREATE TABLE question_reply (
    seq      INTEGER PRIMARY KEY AUTOINCREMENT,
    question TEXT NOT NULL,
    reply    TEXT NOT NULL,
    UNIQUE (question, reply)
) STRICT;
CREATE INDEX question_reply_by_reply ON question_reply (reply);

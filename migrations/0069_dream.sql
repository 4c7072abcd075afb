-- +goose Up
-- Harvesting memories from messages, and dreaming. Package dream.

-- One row per message of a person: whether it was read for what is worth remembering. It is
-- inserted with the message, and set to done in the transaction that stores what was learned.
CREATE TABLE harvest (
    message INTEGER PRIMARY KEY REFERENCES message (id),
    state   TEXT    NOT NULL DEFAULT 'new' CHECK (state IN ('new', 'done', 'left')), -- left: given up, see reason
    tries   INTEGER NOT NULL DEFAULT 0,   -- that failed because of the model's answer
    pos     INTEGER NOT NULL DEFAULT 0,   -- of a long one, how many bytes are read
    at      INTEGER NOT NULL DEFAULT 0,   -- when it was read, or failed first
    reason  TEXT    NOT NULL DEFAULT ''   -- why it was given up or not read
) STRICT;
CREATE INDEX harvest_new ON harvest (message) WHERE state = 'new';
CREATE INDEX harvest_done ON harvest (at) WHERE state = 'done';

-- +goose StatementBegin
CREATE TRIGGER message_to_harvest AFTER INSERT ON message WHEN NEW.role = 'user' AND NEW.event_id <> '' AND NEW.sender <> '' BEGIN
    INSERT INTO harvest (message) VALUES (NEW.id);
END;
-- +goose StatementEnd

-- One row per dream. This table and those below hold no text of a memory.
CREATE TABLE dream_run (
    id      TEXT    PRIMARY KEY,
    at      INTEGER NOT NULL,
    ended   INTEGER NOT NULL DEFAULT 0,    -- 0 = it is at work, or was cut off
    state   TEXT    NOT NULL CHECK (state IN ('planning', 'applied', 'nothing', 'failed', 'undone')),
    batch   TEXT    NOT NULL DEFAULT '',   -- of memory_op, where its changes are
    mark    INTEGER NOT NULL DEFAULT 0,    -- entries changed before this were compared with all others
    calls   INTEGER NOT NULL DEFAULT 0,    -- requests to the model
    tokens  INTEGER NOT NULL DEFAULT 0,
    reason  TEXT    NOT NULL DEFAULT '',
    harvest INTEGER NOT NULL DEFAULT 0     -- of the requests, those that read conversations before it planned
) STRICT;

-- What a dream did.
CREATE TABLE dream_op (
    run    TEXT    NOT NULL,
    kind   TEXT    NOT NULL CHECK (kind IN ('merge', 'group', 'supersede', 'archive', 'question')),
    entry  TEXT    NOT NULL,
    by_id  TEXT    NOT NULL DEFAULT '',
    why    TEXT    NOT NULL DEFAULT '',
    undone INTEGER NOT NULL DEFAULT 0      -- 1 = a person undid it, so it is not done again
) STRICT;
CREATE INDEX dream_op_by_run ON dream_op (run);
CREATE INDEX dream_op_by_entry ON dream_op (entry, by_id);

-- What a model said of a pair, so that no pair is asked twice. The pair is a salted hash.
CREATE TABLE dream_seen (
    pair    TEXT    NOT NULL,
    model   TEXT    NOT NULL,
    verdict TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    PRIMARY KEY (pair, model)
) STRICT, WITHOUT ROWID;

-- What a dream did to tasks and skills, and what it proposes to people.
CREATE TABLE dream_chore (
    id     INTEGER PRIMARY KEY,
    run    TEXT    NOT NULL,
    kind   TEXT    NOT NULL,              -- complete, priority, rephrase, merge, pause; retire; propose
    item   TEXT    NOT NULL,              -- a task's id, or the name of a skill
    other  TEXT    NOT NULL DEFAULT '',   -- what it was merged into, or is like
    why    TEXT    NOT NULL DEFAULT '',
    before TEXT    NOT NULL DEFAULT '',   -- of a task: its row as JSON; of a skill: what its file was
    after  TEXT    NOT NULL DEFAULT '',
    state  TEXT    NOT NULL CHECK (state IN ('due', 'done', 'back', 'undone', 'left')), -- due, back: a file is still to be moved
    at     INTEGER NOT NULL
) STRICT;
CREATE INDEX dream_chore_by_run ON dream_chore (run);
CREATE INDEX dream_chore_by_item ON dream_chore (item, kind);
CREATE INDEX dream_chore_open ON dream_chore (state) WHERE state IN ('due', 'back');

-- The tasks that a model was last shown for those who read a room, as a salted hash. The
-- model is asked again when there is something else to show.
CREATE TABLE dream_room (
    room    TEXT    NOT NULL,
    readers TEXT    NOT NULL,
    model   TEXT    NOT NULL,
    seen    TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    PRIMARY KEY (room, readers)
) STRICT, WITHOUT ROWID;

-- Two memories that contradict each other, for a person to decide. No text stands here. A
-- question is open while both are active in the same scope, unless a person said that both hold.
CREATE TABLE memory_question (
    id     INTEGER PRIMARY KEY AUTOINCREMENT, -- shown to people
    run    TEXT    NOT NULL,                  -- the dream that found it
    scope  TEXT    NOT NULL,
    first  TEXT    NOT NULL,                  -- the older one
    second TEXT    NOT NULL,
    why    TEXT    NOT NULL,
    both   INTEGER NOT NULL DEFAULT 0,        -- 1: a person said that both hold
    event  TEXT    NOT NULL DEFAULT '',       -- the notice that asks it; empty = it waits to be asked
    room   TEXT    NOT NULL DEFAULT '',       -- where
    asked  INTEGER NOT NULL DEFAULT 0         -- when; 0 = not yet
) STRICT;
CREATE UNIQUE INDEX memory_question_pair ON memory_question (first, second);
CREATE INDEX memory_question_by_event ON memory_question (event) WHERE event <> '';

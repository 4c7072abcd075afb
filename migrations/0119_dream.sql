-- +goose Up
-- What dreams did. Package dream.

-- One row per dream. This table and those below hold no text of a memory.
CREATE TABLE dream_run (
    id             TEXT    PRIMARY KEY,
    at             INTEGER NOT NULL,
    ended          INTEGER NOT NULL DEFAULT 0,  -- 0 = it is at work, or was cut off
    state          TEXT    NOT NULL CHECK (state IN ('planning', 'applied', 'nothing', 'failed', 'undone')),
    batch          TEXT    NOT NULL DEFAULT '', -- of memory_op, where its changes are
    compared_until INTEGER NOT NULL DEFAULT 0,  -- entries changed before this were compared with all others
    calls          INTEGER NOT NULL DEFAULT 0,  -- requests to the model
    tokens         INTEGER NOT NULL DEFAULT 0,
    reason         TEXT    NOT NULL DEFAULT '',
    harvest        INTEGER NOT NULL DEFAULT 0   -- of the requests, those that read conversations before it planned
) STRICT;

-- What a dream did.
CREATE TABLE dream_op (
    run       TEXT    NOT NULL,
    kind      TEXT    NOT NULL CHECK (kind IN ('merge', 'group', 'supersede', 'archive', 'question')),
    entry     TEXT    NOT NULL,
    successor TEXT    NOT NULL DEFAULT '',
    why       TEXT    NOT NULL DEFAULT '',
    undone    INTEGER NOT NULL DEFAULT 0 -- 1 = a person undid it, so it is not done again
) STRICT;
CREATE INDEX dream_op_by_run ON dream_op (run);
CREATE INDEX dream_op_by_entry ON dream_op (entry, successor);

-- What a model said of a pair, so that no pair is asked twice. The pair is a salted hash.
CREATE TABLE dream_verdict (
    pair    TEXT    NOT NULL,
    model   TEXT    NOT NULL,
    verdict TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    PRIMARY KEY (pair, model)
) STRICT, WITHOUT ROWID;

-- What a dream did to tasks and skills, and what it proposes to people.
CREATE TABLE dream_change (
    id     INTEGER PRIMARY KEY,
    run    TEXT    NOT NULL,
    kind   TEXT    NOT NULL,            -- complete, priority, rephrase, merge, pause; retire; propose
    item   TEXT    NOT NULL,            -- a task's id, or the name of a skill
    other  TEXT    NOT NULL DEFAULT '', -- what it was merged into, or is like
    why    TEXT    NOT NULL DEFAULT '',
    before TEXT    NOT NULL DEFAULT '', -- of a task: its row as JSON; of a skill: what its file was
    after  TEXT    NOT NULL DEFAULT '',
    state  TEXT    NOT NULL CHECK (state IN ('due', 'done', 'back', 'undone', 'left')), -- due, back: a file is still to be moved
    at     INTEGER NOT NULL
) STRICT;
CREATE INDEX dream_change_by_run ON dream_change (run);
CREATE INDEX dream_change_by_item ON dream_change (item, kind);
CREATE INDEX dream_change_open ON dream_change (state) WHERE state IN ('due', 'back');

-- The tasks that a model was last shown for those who read a room, as a salted hash. The
-- model is asked again when there is something else to show.
CREATE TABLE dream_task_list (
    room    TEXT    NOT NULL,
    readers TEXT    NOT NULL,
    model   TEXT    NOT NULL,
    seen    TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    PRIMARY KEY (room, readers)
) STRICT, WITHOUT ROWID;

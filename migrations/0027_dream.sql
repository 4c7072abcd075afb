-- +goose Up
-- The entry that stands for this one where room is short; both say the same in other
-- words, both are active and both are found. Empty = it stands for itself.
ALTER TABLE memory ADD COLUMN face TEXT NOT NULL DEFAULT '';
CREATE INDEX memory_by_face ON memory (face) WHERE face <> '';

-- Who dreams at the moment. Whoever was cut off loses it with time.
CREATE TABLE dream_lease (
    one    INTEGER PRIMARY KEY CHECK (one = 1),
    holder TEXT    NOT NULL,
    until  INTEGER NOT NULL
) STRICT;

-- One row per dream. No text of a memory stands here or below.
CREATE TABLE dream_run (
    id     TEXT    PRIMARY KEY,
    at     INTEGER NOT NULL,
    ended  INTEGER NOT NULL DEFAULT 0,     -- 0 = it is at work, or was cut off
    state  TEXT    NOT NULL CHECK (state IN ('planning', 'applied', 'nothing', 'failed', 'undone')),
    batch  TEXT    NOT NULL DEFAULT '',    -- of memory_op, where what it did stands
    mark   INTEGER NOT NULL DEFAULT 0,     -- what was changed before it has been compared with all
    calls  INTEGER NOT NULL DEFAULT 0,
    tokens INTEGER NOT NULL DEFAULT 0,
    reason TEXT    NOT NULL DEFAULT ''
) STRICT;

-- What a dream did, and what it asks.
CREATE TABLE dream_op (
    run    TEXT    NOT NULL,
    kind   TEXT    NOT NULL CHECK (kind IN ('merge', 'group', 'supersede', 'archive', 'question')),
    entry  TEXT    NOT NULL,
    by_id  TEXT    NOT NULL DEFAULT '',
    why    TEXT    NOT NULL DEFAULT '',
    undone INTEGER NOT NULL DEFAULT 0      -- 1 = taken back, so it is not done again
) STRICT;
CREATE INDEX dream_op_by_run ON dream_op (run);
CREATE INDEX dream_op_by_entry ON dream_op (entry, by_id);

-- What a model said of a pair: no pair is asked twice. The pair is a salted hash.
CREATE TABLE dream_seen (
    pair    TEXT    NOT NULL,
    model   TEXT    NOT NULL,
    verdict TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    PRIMARY KEY (pair, model)
) STRICT, WITHOUT ROWID;

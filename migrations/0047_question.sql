-- +goose Up
-- Two memories that cannot both hold, as only a person can decide. No text stands here. A
-- question is open as long as both count and are where they were, unless both hold.
CREATE TABLE memory_question (
    id     INTEGER PRIMARY KEY AUTOINCREMENT, -- what people call it
    run    TEXT    NOT NULL,                  -- the dream that came upon it
    scope  TEXT    NOT NULL,
    first  TEXT    NOT NULL,                  -- the older one
    second TEXT    NOT NULL,
    why    TEXT    NOT NULL,
    both   INTEGER NOT NULL DEFAULT 0,        -- 1: a person said that both hold
    event  TEXT    NOT NULL DEFAULT '',       -- the notice that asks it; empty = it waits to be asked
    room   TEXT    NOT NULL DEFAULT '',       -- where
    asked  INTEGER NOT NULL DEFAULT 0         -- when; 0 = it is not said yet
) STRICT;
CREATE UNIQUE INDEX memory_question_pair ON memory_question (first, second);
CREATE INDEX memory_question_by_event ON memory_question (event) WHERE event <> '';

-- What dreams asked in their reports alone is asked whom it concerns.
INSERT INTO memory_question (run, scope, first, second, why)
    SELECT o.run, m.scope, o.entry, o.by_id, o.why FROM dream_op AS o JOIN memory AS m ON m.id = o.entry
    WHERE o.kind = 'question' GROUP BY o.entry, o.by_id ORDER BY min(o.rowid);
DELETE FROM dream_op WHERE kind = 'question';

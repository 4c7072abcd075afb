-- +goose Up
-- What a dream did to tasks and skills, and what it proposes to people.
CREATE TABLE dream_chore (
    id     INTEGER PRIMARY KEY,
    run    TEXT    NOT NULL,
    kind   TEXT    NOT NULL,              -- complete, priority, rephrase, merge, pause; retire, condense; propose
    item   TEXT    NOT NULL,              -- a task's id, or the name of a skill
    other  TEXT    NOT NULL DEFAULT '',   -- what it was merged into, or is like
    why    TEXT    NOT NULL DEFAULT '',
    before TEXT    NOT NULL DEFAULT '',   -- of a task: its row as JSON; of a skill: what its file was
    after  TEXT    NOT NULL DEFAULT '',
    state  TEXT    NOT NULL CHECK (state IN ('due', 'done', 'back', 'undone', 'left')), -- due, back: a file is still to be moved
    at     INTEGER NOT NULL               -- Unix milliseconds, UTC
) STRICT;
CREATE INDEX dream_chore_by_run ON dream_chore (run);
CREATE INDEX dream_chore_by_item ON dream_chore (item, kind);
CREATE INDEX dream_chore_open ON dream_chore (state) WHERE state IN ('due', 'back');

-- What a model was shown last of a room's tasks, as a salted hash: it is asked again
-- when there is something else to show.
CREATE TABLE dream_room (
    room  TEXT    PRIMARY KEY,
    model TEXT    NOT NULL,
    seen  TEXT    NOT NULL,
    at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- +goose Up
-- A conversation is a room's own or one of its threads. A thread's id is made and read
-- in one place, history.TalkOf; this says whose thread it is. Empty = it is none.
ALTER TABLE room ADD COLUMN branch_of TEXT NOT NULL DEFAULT '';
CREATE INDEX room_branches ON room (branch_of) WHERE branch_of <> '';

-- The thread that a message is answered in, by its root. It is settled when the message
-- comes: a setting that is changed later, or a restart, moves no answer. Empty = the room itself.
ALTER TABLE inbox ADD COLUMN branch TEXT NOT NULL DEFAULT '';

-- The threads that we have been asked in.
CREATE TABLE matrix_thread (
    room     TEXT    NOT NULL,
    root     TEXT    NOT NULL,
    newest   TEXT    NOT NULL,             -- the newest event that was seen in it
    spoke_at INTEGER NOT NULL DEFAULT 0,   -- when we last said something there; Unix milliseconds, 0 = never
    PRIMARY KEY (room, root)
) STRICT, WITHOUT ROWID;

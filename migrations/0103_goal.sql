-- +goose Up
-- Goals with their checkpoints, decisions and artifacts. Package goal.

CREATE TABLE goal (
    id          TEXT PRIMARY KEY,            -- goal_ and eight characters
    room        TEXT    NOT NULL,
    user        TEXT    NOT NULL DEFAULT '', -- on whose behalf it was made
    description TEXT    NOT NULL,
    priority    TEXT    NOT NULL CHECK (priority IN ('high', 'medium', 'low')),
    status      TEXT    NOT NULL CHECK (status IN ('active', 'paused', 'completed', 'abandoned')),
    summary     TEXT    NOT NULL DEFAULT '', -- how it ended
    next        TEXT    NOT NULL DEFAULT '', -- the next step
    created     INTEGER NOT NULL,
    updated     INTEGER NOT NULL,
    ended       INTEGER,
    integrity   INTEGER NOT NULL DEFAULT 2,  -- how far its words are trusted (see message)
    readers     TEXT    NOT NULL DEFAULT ''  -- who may read it
) STRICT;
-- Those who read a room work towards one goal at a time.
CREATE UNIQUE INDEX goal_active ON goal (room, readers) WHERE status = 'active';
CREATE INDEX goal_by_room ON goal (room, updated);

CREATE TABLE goal_checkpoint (
    goal        TEXT    NOT NULL REFERENCES goal (id),
    n           INTEGER NOT NULL, -- counts from 1 in each goal
    description TEXT    NOT NULL,
    status      TEXT    NOT NULL CHECK (status IN ('pending', 'in progress', 'done')),
    changed     INTEGER NOT NULL,
    PRIMARY KEY (goal, n)
) STRICT;

CREATE TABLE goal_decision (
    goal        TEXT    NOT NULL REFERENCES goal (id),
    n           INTEGER NOT NULL,
    description TEXT    NOT NULL,
    rationale   TEXT    NOT NULL DEFAULT '',
    locked      INTEGER NOT NULL DEFAULT 0 CHECK (locked IN (0, 1)),
    PRIMARY KEY (goal, n)
) STRICT;

-- +goose StatementBegin
CREATE TRIGGER goal_decision_not_changed BEFORE UPDATE ON goal_decision WHEN OLD.locked = 1
BEGIN SELECT RAISE(ABORT, 'a locked decision never changes'); END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER goal_decision_not_deleted BEFORE DELETE ON goal_decision WHEN OLD.locked = 1
BEGIN SELECT RAISE(ABORT, 'a locked decision never goes'); END;
-- +goose StatementEnd

CREATE TABLE goal_artifact (
    goal   TEXT    NOT NULL REFERENCES goal (id),
    n      INTEGER NOT NULL,
    type   TEXT    NOT NULL CHECK (type IN ('file', 'test', 'documentation', 'configuration')),
    action TEXT    NOT NULL CHECK (action IN ('created', 'modified', 'deleted')),
    path   TEXT    NOT NULL,
    PRIMARY KEY (goal, n),
    UNIQUE (goal, path)
) STRICT;

-- The last message of a room whose goal markers were read.
CREATE TABLE goal_cursor (
    room    TEXT PRIMARY KEY,
    message INTEGER NOT NULL
) STRICT;

-- +goose Up
CREATE TABLE goal (
    id          TEXT PRIMARY KEY,                -- goal_ and eight characters
    room        TEXT    NOT NULL,
    user        TEXT    NOT NULL DEFAULT '',     -- on whose behalf it was made
    description TEXT    NOT NULL,
    priority    TEXT    NOT NULL CHECK (priority IN ('high', 'medium', 'low')),
    status      TEXT    NOT NULL CHECK (status IN ('active', 'paused', 'completed', 'abandoned')),
    summary     TEXT    NOT NULL DEFAULT '',     -- how it ended
    next        TEXT    NOT NULL DEFAULT '',     -- what is to be done next
    created     INTEGER NOT NULL,                -- Unix milliseconds, UTC, like every time here
    updated     INTEGER NOT NULL,
    ended       INTEGER
) STRICT;

-- A room works towards one goal at a time.
CREATE UNIQUE INDEX goal_active ON goal (room) WHERE status = 'active';
CREATE INDEX goal_by_room ON goal (room, updated);

CREATE TABLE goal_checkpoint (
    goal        TEXT    NOT NULL REFERENCES goal (id),
    n           INTEGER NOT NULL,                -- counts from 1 in each goal
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
CREATE TRIGGER goal_decision_stays BEFORE UPDATE ON goal_decision WHEN OLD.locked = 1
BEGIN SELECT RAISE(ABORT, 'a locked decision never changes'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER goal_decision_kept BEFORE DELETE ON goal_decision WHEN OLD.locked = 1
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

-- What happened to a goal, in order.
CREATE TABLE goal_event (
    id     INTEGER PRIMARY KEY,
    goal   TEXT    NOT NULL REFERENCES goal (id),
    at     INTEGER NOT NULL,
    kind   TEXT    NOT NULL,
    detail TEXT    NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX goal_event_by_goal ON goal_event (goal, id);

-- Up to which message of a room the model's markers have been taken in. What was
-- said before goals were kept is not gone through again.
CREATE TABLE goal_heard (
    room    TEXT PRIMARY KEY,
    message INTEGER NOT NULL
) STRICT;
INSERT INTO goal_heard (room, message) SELECT room, max(id) FROM message GROUP BY room;

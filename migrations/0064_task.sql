-- +goose Up
-- Tasks with their schedules, and goals. Package task.

CREATE TABLE task (
    id          TEXT PRIMARY KEY,                 -- task_ and eight characters
    room        TEXT    NOT NULL,
    user        TEXT    NOT NULL DEFAULT '',      -- who asked for it
    content     TEXT    NOT NULL,
    priority    INTEGER NOT NULL CHECK (priority BETWEEN 1 AND 10),
    status      TEXT    NOT NULL CHECK (status IN ('active', 'paused', 'completed', 'deleted')),
    schedule    TEXT    NOT NULL DEFAULT '',      -- JSON, or empty
    prompt      TEXT    NOT NULL DEFAULT '',
    background  INTEGER NOT NULL DEFAULT 0 CHECK (background IN (0, 1)), -- 1: the result is not said in the room
    reason      TEXT    NOT NULL DEFAULT '',
    created     INTEGER NOT NULL,
    updated     INTEGER NOT NULL,
    completed   INTEGER,
    next_due    INTEGER,
    last_run    INTEGER,
    run_count   INTEGER NOT NULL DEFAULT 0,
    scheduled   INTEGER,                          -- when the schedule was made: the task is not due before, and intervals count from there
    catch_up    TEXT    NOT NULL DEFAULT 'once' CHECK (catch_up IN ('once', 'skip', 'all')),
    failures    INTEGER NOT NULL DEFAULT 0,       -- in a row
    last_result TEXT    NOT NULL DEFAULT '',
    run_mode    TEXT GENERATED ALWAYS AS (CASE WHEN prompt = '' THEN 'reminder'
        WHEN background THEN 'autonomous_silent' ELSE 'autonomous_notify' END) VIRTUAL, -- what happens when the task is due
    asked       TEXT    NOT NULL DEFAULT '',      -- the message or sub-session that it was made for; empty = unknown, or others changed it since.
                                                  -- When that message is redacted, the task is deleted
    integrity   INTEGER NOT NULL DEFAULT 2,       -- how far its words are trusted (see message)
    readers     TEXT    NOT NULL DEFAULT ''       -- who may read it
) STRICT;
CREATE INDEX task_open ON task (room, priority, created, id) WHERE status IN ('active', 'paused');
CREATE INDEX task_by_status ON task (room, status, priority, created, id);
CREATE INDEX task_due ON task (next_due) WHERE status = 'active' AND next_due IS NOT NULL;
CREATE INDEX task_by_asked ON task (asked) WHERE asked <> '';

-- One row that counts the changes of task, whoever makes them. A reader that keeps a list
-- compares this number to see whether the list is still right.
CREATE TABLE task_change (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    n   INTEGER NOT NULL
) STRICT;
INSERT INTO task_change (one, n) VALUES (1, 0);

-- +goose StatementBegin
CREATE TRIGGER task_added AFTER INSERT ON task BEGIN UPDATE task_change SET n = n + 1; END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER task_changed AFTER UPDATE ON task BEGIN UPDATE task_change SET n = n + 1; END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER task_removed AFTER DELETE ON task BEGIN UPDATE task_change SET n = n + 1; END;
-- +goose StatementEnd

-- One row for each time that a task was due.
CREATE TABLE job_run (
    task     TEXT    NOT NULL REFERENCES task (id) ON DELETE CASCADE,
    due      INTEGER NOT NULL,
    state    TEXT    NOT NULL CHECK (state IN ('claimed', 'done', 'failed', 'skipped')),
    attempt  INTEGER NOT NULL DEFAULT 1,
    claimed  INTEGER NOT NULL,
    retry_at INTEGER,                            -- of a claimed one: when it is tried again
    ended    INTEGER,
    result   TEXT    NOT NULL DEFAULT '',        -- the answer, or why there is none
    notice   INTEGER NOT NULL DEFAULT 0,         -- the notice that the task was paused: 1 = to be sent, 2 = sent
    PRIMARY KEY (task, due)
) STRICT, WITHOUT ROWID;
CREATE INDEX job_open ON job_run (due) WHERE state = 'claimed';
CREATE INDEX job_notice ON job_run (due) WHERE notice = 1;

-- A run that waits for its next attempt belongs to the schedule as it was.
-- +goose StatementBegin
CREATE TRIGGER task_rescheduled AFTER UPDATE OF scheduled ON task WHEN new.scheduled IS NOT old.scheduled BEGIN
    UPDATE job_run SET state = 'skipped', retry_at = NULL, ended = new.updated, result = 'the schedule was changed'
        WHERE task = new.id AND state = 'claimed' AND retry_at IS NOT NULL;
END;
-- +goose StatementEnd

CREATE TABLE goal (
    id          TEXT PRIMARY KEY,                -- goal_ and eight characters
    room        TEXT    NOT NULL,
    user        TEXT    NOT NULL DEFAULT '',     -- on whose behalf it was made
    description TEXT    NOT NULL,
    priority    TEXT    NOT NULL CHECK (priority IN ('high', 'medium', 'low')),
    status      TEXT    NOT NULL CHECK (status IN ('active', 'paused', 'completed', 'abandoned')),
    summary     TEXT    NOT NULL DEFAULT '',     -- how it ended
    next        TEXT    NOT NULL DEFAULT '',     -- the next step
    created     INTEGER NOT NULL,
    updated     INTEGER NOT NULL,
    ended       INTEGER,
    integrity   INTEGER NOT NULL DEFAULT 2,      -- how far its words are trusted (see message)
    readers     TEXT    NOT NULL DEFAULT ''      -- who may read it
) STRICT;
-- Those who read a room work towards one goal at a time.
CREATE UNIQUE INDEX goal_active ON goal (room, readers) WHERE status = 'active';
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

-- The last message of a room whose goal markers were read.
CREATE TABLE goal_heard (
    room    TEXT PRIMARY KEY,
    message INTEGER NOT NULL
) STRICT;

-- +goose Up
-- Tasks, their schedules and runs. Package task.

CREATE TABLE task (
    id           TEXT PRIMARY KEY,            -- task_ and eight characters
    room         TEXT    NOT NULL,
    user         TEXT    NOT NULL DEFAULT '', -- who asked for it
    content      TEXT    NOT NULL,
    priority     INTEGER NOT NULL CHECK (priority BETWEEN 1 AND 10),
    status       TEXT    NOT NULL CHECK (status IN ('active', 'paused', 'completed', 'deleted')),
    schedule     TEXT    NOT NULL DEFAULT '', -- JSON, or empty
    prompt       TEXT    NOT NULL DEFAULT '',
    background   INTEGER NOT NULL DEFAULT 0 CHECK (background IN (0, 1)), -- 1: the result is not said in the room
    reason       TEXT    NOT NULL DEFAULT '',
    created      INTEGER NOT NULL,
    updated      INTEGER NOT NULL,
    completed    INTEGER,
    next_due     INTEGER,
    last_run     INTEGER,
    run_count    INTEGER NOT NULL DEFAULT 0,
    scheduled    INTEGER,                     -- when the schedule was made: the task is not due before, and intervals count from there
    catch_up     TEXT    NOT NULL DEFAULT 'once' CHECK (catch_up IN ('once', 'skip', 'all')),
    failures     INTEGER NOT NULL DEFAULT 0,  -- in a row
    last_result  TEXT    NOT NULL DEFAULT '',
    source_event TEXT    NOT NULL DEFAULT '', -- the message or sub-session that it was made for; empty = unknown, or others changed it
                                              -- since. When that message is redacted, the task is deleted
    integrity    INTEGER NOT NULL DEFAULT 2,  -- how far its words are trusted (see message)
    readers      TEXT    NOT NULL DEFAULT ''  -- who may read it
) STRICT;
CREATE INDEX task_open ON task (room, priority, created, id) WHERE status IN ('active', 'paused');
CREATE INDEX task_by_status ON task (room, status, priority, created, id);
CREATE INDEX task_due ON task (next_due) WHERE status = 'active' AND next_due IS NOT NULL;
CREATE INDEX task_by_source_event ON task (source_event) WHERE source_event <> '';

-- A run that waits for its next attempt belongs to the schedule as it was.
-- +goose StatementBegin
CREATE TRIGGER task_rescheduled AFTER UPDATE OF scheduled ON task WHEN new.scheduled IS NOT old.scheduled BEGIN
    UPDATE job_run SET state = 'skipped', retry_at = NULL, ended = new.updated, result = 'the schedule was changed'
        WHERE task = new.id AND state = 'claimed' AND retry_at IS NOT NULL;
END;
-- +goose StatementEnd

-- One row for each time that a task was due.
CREATE TABLE job_run (
    task     TEXT    NOT NULL REFERENCES task (id) ON DELETE CASCADE,
    due      INTEGER NOT NULL,
    state    TEXT    NOT NULL CHECK (state IN ('claimed', 'done', 'failed', 'skipped')),
    attempt  INTEGER NOT NULL DEFAULT 1,
    claimed  INTEGER NOT NULL,
    retry_at INTEGER,                     -- of a claimed one: when it is tried again
    ended    INTEGER,
    result   TEXT    NOT NULL DEFAULT '', -- the answer, or why there is none
    notice   INTEGER NOT NULL DEFAULT 0,  -- the notice that the task was paused: 1 = to be sent, 2 = sent
    PRIMARY KEY (task, due)
) STRICT, WITHOUT ROWID;
CREATE INDEX job_open ON job_run (due) WHERE state = 'claimed';
CREATE INDEX job_notice ON job_run (due) WHERE notice = 1;

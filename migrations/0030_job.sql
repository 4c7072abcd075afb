-- +goose Up
ALTER TABLE task ADD COLUMN scheduled INTEGER;        -- when the schedule was made: it is not due before, and intervals count from there
ALTER TABLE task ADD COLUMN catch_up TEXT NOT NULL DEFAULT 'once' CHECK (catch_up IN ('once', 'skip', 'all'));
ALTER TABLE task ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;      -- in a row
ALTER TABLE task ADD COLUMN last_result TEXT NOT NULL DEFAULT '';

-- What happens when a task falls due follows from what it is.
ALTER TABLE task ADD COLUMN run_mode TEXT GENERATED ALWAYS AS (CASE WHEN prompt = '' THEN 'reminder'
    WHEN background THEN 'autonomous_silent' ELSE 'autonomous_notify' END) VIRTUAL;

-- Until now, background meant "without showing the steps", which nothing shows any
-- more; now it means that nothing is said. Who asked before waits for an answer.
UPDATE task SET background = 0 WHERE background = 1;
UPDATE task SET scheduled = updated WHERE schedule <> '';
-- One moment is due even if it has passed; the others begin with the next start.
UPDATE task SET next_due = unixepoch(json_extract(schedule, '$.at')) * 1000
    WHERE status = 'active' AND schedule <> '' AND json_extract(schedule, '$.schedule_type') = 'once';

-- Each time that a task has fallen due, once.
CREATE TABLE job_run (
    task     TEXT    NOT NULL REFERENCES task (id) ON DELETE CASCADE,
    due      INTEGER NOT NULL,
    state    TEXT    NOT NULL CHECK (state IN ('claimed', 'done', 'failed', 'skipped')),
    attempt  INTEGER NOT NULL DEFAULT 1,
    claimed  INTEGER NOT NULL,
    retry_at INTEGER,                            -- claimed, and waiting to be tried again
    ended    INTEGER,
    result   TEXT    NOT NULL DEFAULT '',        -- what was answered, or why not
    notice   INTEGER NOT NULL DEFAULT 0,         -- that the task was paused: 1 = to be said, 2 = said
    PRIMARY KEY (task, due)
) STRICT, WITHOUT ROWID;

CREATE INDEX job_open ON job_run (due) WHERE state = 'claimed';
CREATE INDEX job_notice ON job_run (due) WHERE notice = 1;

-- What waits to be tried again belongs to the schedule as it was.
-- +goose StatementBegin
CREATE TRIGGER task_rescheduled AFTER UPDATE OF scheduled ON task WHEN new.scheduled IS NOT old.scheduled BEGIN
    UPDATE job_run SET state = 'skipped', retry_at = NULL, ended = new.updated, result = 'the schedule was changed'
        WHERE task = new.id AND state = 'claimed' AND retry_at IS NOT NULL;
END;
-- +goose StatementEnd

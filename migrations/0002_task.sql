-- +goose Up
CREATE TABLE task (
    id         TEXT PRIMARY KEY,                 -- task_ and eight characters
    room       TEXT    NOT NULL,
    user       TEXT    NOT NULL DEFAULT '',      -- who asked for it
    content    TEXT    NOT NULL,
    priority   INTEGER NOT NULL CHECK (priority BETWEEN 1 AND 10),
    status     TEXT    NOT NULL CHECK (status IN ('active', 'paused', 'completed', 'deleted')),
    schedule   TEXT    NOT NULL DEFAULT '',      -- JSON, or empty
    prompt     TEXT    NOT NULL DEFAULT '',
    background INTEGER NOT NULL DEFAULT 0 CHECK (background IN (0, 1)),
    reason     TEXT    NOT NULL DEFAULT '',
    created    INTEGER NOT NULL,                 -- Unix milliseconds, UTC, like every time here
    updated    INTEGER NOT NULL,
    completed  INTEGER,
    next_due   INTEGER,
    last_run   INTEGER,
    run_count  INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX task_open ON task (room, priority, created, id) WHERE status IN ('active', 'paused');
CREATE INDEX task_by_status ON task (room, status, priority, created, id);
CREATE INDEX task_due ON task (next_due) WHERE status = 'active' AND next_due IS NOT NULL;

-- One row that counts the changes of task, whoever makes them. A reader that
-- kept a list asks this small row whether the list still holds.
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

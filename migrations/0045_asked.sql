-- +goose Up
-- The message that a task was made for, as the transport names it, or the sub-session; empty = nobody
-- knows, or others had a say in it since. If it is taken back, so is the task.
ALTER TABLE task ADD COLUMN asked TEXT NOT NULL DEFAULT '';
CREATE INDEX task_by_asked ON task (asked) WHERE asked <> '';

-- +goose Up
-- A message of ours may be a poll. The text of its row is the question until the poll is
-- closed, and then what the poll came to; poll holds what its first event says.
ALTER TABLE outbox ADD COLUMN poll   TEXT    NOT NULL DEFAULT '';  -- JSON: the question and its options; empty = an ordinary message
ALTER TABLE outbox ADD COLUMN closed INTEGER NOT NULL DEFAULT 0 CHECK (closed IN (0, 1)); -- 1: no vote counts any more

-- A vote waits in the inbox as the other changes do.
ALTER TABLE inbox RENAME COLUMN change TO change_before;
ALTER TABLE inbox ADD COLUMN change TEXT NOT NULL DEFAULT '' CHECK (change IN ('', 'edited', 'taken back', 'stop', 'retry', 'voted'));
UPDATE inbox SET change = change_before;
ALTER TABLE inbox DROP COLUMN change_before;

-- +goose Up
-- How many tokens a model counts for one by our estimate, as its server reports them.
CREATE TABLE model_count (
    model   TEXT PRIMARY KEY,   -- as configured
    factor  REAL    NOT NULL,
    answers INTEGER NOT NULL,   -- that it was learned from
    at      INTEGER NOT NULL    -- Unix milliseconds, UTC
) STRICT;

-- What messages were like before a compaction changed them, so that it can be taken back.
CREATE TABLE compaction_before (
    compaction INTEGER NOT NULL,
    message    INTEGER NOT NULL,
    short      TEXT    NOT NULL,
    PRIMARY KEY (compaction, message)
) STRICT, WITHOUT ROWID;

-- When somebody took a compaction back, in Unix milliseconds; 0 = it counts.
ALTER TABLE compaction ADD COLUMN undone INTEGER NOT NULL DEFAULT 0;

-- +goose Up
-- The files that show memories. Package memory/file.

-- One row per scope: what its file held when it was last written or read. The difference
-- between that and the file is what a person did to it.
CREATE TABLE memory_file (
    scope   TEXT    PRIMARY KEY,
    changes INTEGER NOT NULL DEFAULT 0,  -- added to memory_revision.n
    name    TEXT    NOT NULL DEFAULT '', -- relative to the data folder; empty = there was none yet
    hash    TEXT    NOT NULL DEFAULT '', -- of its bytes
    lines   TEXT    NOT NULL DEFAULT ''  -- the entries of its lines, in order, separated by spaces
) STRICT;

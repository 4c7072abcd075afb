-- +goose Up
-- One row per scope: how often its entries or their order changed, and what its
-- file held when it was last written or read. The difference between that and the
-- file is what a person did to it.
CREATE TABLE memory_file (
    scope   TEXT    PRIMARY KEY,
    changes INTEGER NOT NULL DEFAULT 0,
    name    TEXT    NOT NULL DEFAULT '',   -- relative to the data folder; empty = there was none yet
    hash    TEXT    NOT NULL DEFAULT '',   -- of its bytes
    lines   TEXT    NOT NULL DEFAULT ''    -- the entries of its lines, in order, separated by spaces
) STRICT;

-- What was to be forgotten, so that it is not learned again. No text can be read
-- out of it.
CREATE TABLE memory_forgotten (
    hash   TEXT    PRIMARY KEY,            -- of salt, scope and normalised text
    at     INTEGER NOT NULL,
    purged INTEGER NOT NULL DEFAULT 0      -- 1 = no copy is left in the database's own files
) STRICT;
CREATE TABLE memory_salt (
    one  INTEGER PRIMARY KEY CHECK (one = 1),
    salt BLOB    NOT NULL
) STRICT;
INSERT INTO memory_salt (one, salt) VALUES (1, randomblob(32));

-- Messages that their senders took back, and that are still to be forgotten.
CREATE TABLE redaction (
    event TEXT PRIMARY KEY
) STRICT;

CREATE INDEX memory_put_away ON memory (scope, hash) WHERE state = 'archived';
CREATE INDEX memory_by_event ON memory (event) WHERE event <> '';
CREATE INDEX memory_by_successor ON memory (by_id) WHERE by_id <> '';
CREATE INDEX memory_op_by_actor ON memory_op (actor, seq);
CREATE INDEX memory_op_by_undone ON memory_op (undoes) WHERE undoes <> 0;

-- The counter of a scope moves whoever makes the change. Counting what was of use in an
-- answer is none.
-- +goose StatementBegin
CREATE TRIGGER memory_added AFTER INSERT ON memory BEGIN
    INSERT INTO memory_file (scope, changes) VALUES (NEW.scope, 1) ON CONFLICT (scope) DO UPDATE SET changes = changes + 1;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER memory_changed AFTER UPDATE OF scope, text, subject, kind, source, state, by_id, pinned, observed_at, valid_from, valid_to, rev ON memory BEGIN
    INSERT INTO memory_file (scope, changes) VALUES (NEW.scope, 1) ON CONFLICT (scope) DO UPDATE SET changes = changes + 1;
    UPDATE memory_file SET changes = changes + 1 WHERE scope = OLD.scope AND OLD.scope <> NEW.scope;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER memory_removed AFTER DELETE ON memory BEGIN
    UPDATE memory_file SET changes = changes + 1 WHERE scope = OLD.scope;
END;
-- +goose StatementEnd

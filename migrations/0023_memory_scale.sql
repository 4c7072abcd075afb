-- +goose Up
-- How often the entries of a scope that stand in files and prompts changed. It
-- is apart from memory_file, whose rows are as long as the files: each change
-- would write such a row anew. The sum of both counts is what readers compare.
CREATE TABLE memory_changes (
    scope TEXT    PRIMARY KEY,
    n     INTEGER NOT NULL
) STRICT;

-- The lines of an imported conversation stand in no file and no prompt.
DROP TRIGGER memory_added;
DROP TRIGGER memory_changed;
DROP TRIGGER memory_removed;
-- +goose StatementBegin
CREATE TRIGGER memory_added AFTER INSERT ON memory WHEN NEW.conversation = '' BEGIN
    UPDATE memory_changes SET n = n + 1 WHERE scope = NEW.scope;
    INSERT INTO memory_changes (scope, n) SELECT NEW.scope, 1 WHERE NOT EXISTS (SELECT 1 FROM memory_changes WHERE scope = NEW.scope);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER memory_changed AFTER UPDATE OF scope, text, subject, kind, source, state, by_id, pinned, observed_at, valid_from, valid_to, rev ON memory
WHEN OLD.conversation = '' BEGIN
    UPDATE memory_changes SET n = n + 1 WHERE scope IN (OLD.scope, NEW.scope);
    INSERT INTO memory_changes (scope, n) SELECT NEW.scope, 1 WHERE NOT EXISTS (SELECT 1 FROM memory_changes WHERE scope = NEW.scope);
    INSERT INTO memory_changes (scope, n) SELECT OLD.scope, 1 WHERE NOT EXISTS (SELECT 1 FROM memory_changes WHERE scope = OLD.scope);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER memory_removed AFTER DELETE ON memory WHEN OLD.conversation = '' BEGIN
    UPDATE memory_changes SET n = n + 1 WHERE scope = OLD.scope;
    INSERT INTO memory_changes (scope, n) SELECT OLD.scope, 1 WHERE NOT EXISTS (SELECT 1 FROM memory_changes WHERE scope = OLD.scope);
END;
-- +goose StatementEnd

-- Room for what one transaction adds, so that it makes one segment of it: those
-- that are made have to be merged.
INSERT INTO index_fts (index_fts, rank) VALUES ('hashsize', 16777216);

-- A large change that is being taken back, part by part. From the moment that
-- this row is there nothing shows what it takes away.
CREATE TABLE memory_undo (
    batch TEXT    PRIMARY KEY,   -- what is taken back
    by    TEXT    NOT NULL,      -- the batch of the operations that do so
    actor TEXT    NOT NULL,
    total INTEGER NOT NULL,      -- operations
    next  INTEGER NOT NULL       -- those before this one are still to be taken back; 0: the index is still to be merged
) STRICT;

-- The same rows as before, under columns that SQLite prefers to memory_by_scope,
-- by which it goes through all the lines of conversations too.
DROP INDEX memory_shown;
CREATE INDEX memory_shown ON memory (scope, state, conversation, n) WHERE state = 'active' AND conversation = '';

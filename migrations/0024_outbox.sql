-- +goose Up
-- Collections on a Qdrant server that this bot made and that may hold vectors of
-- its memories. While there is one, changes of memories are noted for it.
CREATE TABLE memory_collection (
    name TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

-- What the server has to be told: that these entries are to be as the truth is
-- now, whatever they were. Saying it twice does no harm, so a row leaves when the
-- server has confirmed it. An entry that changes meanwhile gets a row of its own.
CREATE TABLE memory_outbox (
    no    INTEGER PRIMARY KEY AUTOINCREMENT,       -- never reused
    entry TEXT    NOT NULL UNIQUE,                 -- memory.id
    gone  INTEGER NOT NULL CHECK (gone IN (0, 1))  -- it is to be there no longer; this goes first
) STRICT;

CREATE INDEX memory_outbox_gone ON memory_outbox (no) WHERE gone = 1;

-- +goose StatementBegin
CREATE TRIGGER memory_outbox_add AFTER INSERT ON memory
WHEN EXISTS (SELECT 1 FROM memory_collection)
BEGIN
    INSERT INTO memory_outbox (entry, gone) VALUES (new.id, new.state NOT IN ('active', 'superseded', 'archived'));
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER memory_outbox_change AFTER UPDATE OF rev, scope, state ON memory
WHEN EXISTS (SELECT 1 FROM memory_collection)
BEGIN
    DELETE FROM memory_outbox WHERE entry = new.id;
    INSERT INTO memory_outbox (entry, gone) VALUES (new.id, new.state NOT IN ('active', 'superseded', 'archived'));
END;
-- +goose StatementEnd

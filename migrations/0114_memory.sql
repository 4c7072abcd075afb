-- +goose Up
-- Memories and their journal. Package memory.

-- One row per memory. A text is never changed in place: a correction is a row of its own,
-- which successor names. Only forgetting empties a row.
CREATE TABLE memory (
    n            INTEGER PRIMARY KEY,         -- for the indexes; never shown
    id           TEXT    NOT NULL UNIQUE,     -- mem_ and twelve characters
    scope        TEXT    NOT NULL,            -- private:@user, room:!id or shared
    text         TEXT    NOT NULL,            -- one line
    subject      TEXT    NOT NULL DEFAULT '', -- whom or what it is about; in a conversation, who says it
    kind         TEXT    NOT NULL DEFAULT 'fact' CHECK (kind IN ('fact', 'preference', 'event', 'insight')),
    source       TEXT    NOT NULL CHECK (source IN ('user_explicit', 'assistant', 'harvest', 'dreaming_merge', 'file', 'import')),
    state        TEXT    NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'merged', 'superseded', 'archived', 'forgotten')),
    successor    TEXT    NOT NULL DEFAULT '', -- the entry that took its place. Of an active one: the active entry that says the same in
                                              -- other words, and is shown for it
    pinned       INTEGER NOT NULL DEFAULT 0 CHECK (pinned IN (0, 1)),
    hash         TEXT    NOT NULL DEFAULT '', -- of the normalised text; equal means an exact duplicate
    event        TEXT    NOT NULL DEFAULT '', -- the message it was learned from
    quote        TEXT    NOT NULL DEFAULT '', -- its words there
    ref          TEXT    NOT NULL DEFAULT '', -- its name in an import
    conversation TEXT    NOT NULL DEFAULT '', -- entries of one conversation are neighbours
    seq          INTEGER NOT NULL DEFAULT 0,  -- in this order
    observed_at  INTEGER NOT NULL,            -- when it was said
    valid_from   INTEGER,
    valid_to     INTEGER,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    hits         INTEGER NOT NULL DEFAULT 0,  -- answers that used it
    last_hit     INTEGER,
    rev          INTEGER NOT NULL DEFAULT 1,  -- grows with every change
    integrity    INTEGER NOT NULL DEFAULT 2 CHECK (integrity BETWEEN 0 AND 3) -- whose hands its words went through (see message); its
                                                                              -- readers are its scope
) STRICT;
CREATE INDEX memory_by_scope ON memory (scope, state, n);
CREATE INDEX memory_by_hash ON memory (scope, hash);
CREATE INDEX memory_by_conversation ON memory (conversation, seq) WHERE conversation <> '';
CREATE INDEX memory_by_ref ON memory (ref) WHERE ref <> '';
CREATE INDEX memory_by_event ON memory (event) WHERE event <> '';
CREATE INDEX memory_by_successor ON memory (successor) WHERE successor <> '';
-- Entries in files and prompts, which belong to no imported conversation. SQLite prefers these
-- columns to memory_by_scope, by which it reads all the lines of conversations, too.
CREATE INDEX memory_shown ON memory (scope, state, conversation, n) WHERE state = 'active' AND conversation = '';

-- +goose StatementBegin
CREATE TRIGGER memory_added AFTER INSERT ON memory WHEN NEW.conversation = '' BEGIN
    UPDATE memory_revision SET n = n + 1 WHERE scope = NEW.scope;
    INSERT INTO memory_revision (scope, n) SELECT NEW.scope, 1 WHERE NOT EXISTS (SELECT 1 FROM memory_revision WHERE scope = NEW.scope);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER memory_changed AFTER UPDATE OF scope, text, subject, kind, source, state, successor, pinned,
    observed_at, valid_from, valid_to, rev ON memory
WHEN OLD.conversation = '' BEGIN
    UPDATE memory_revision SET n = n + 1 WHERE scope IN (OLD.scope, NEW.scope);
    INSERT INTO memory_revision (scope, n) SELECT NEW.scope, 1 WHERE NOT EXISTS (SELECT 1 FROM memory_revision WHERE scope = NEW.scope);
    INSERT INTO memory_revision (scope, n) SELECT OLD.scope, 1 WHERE NOT EXISTS (SELECT 1 FROM memory_revision WHERE scope = OLD.scope);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER memory_removed AFTER DELETE ON memory WHEN OLD.conversation = '' BEGIN
    UPDATE memory_revision SET n = n + 1 WHERE scope = OLD.scope;
    INSERT INTO memory_revision (scope, n) SELECT OLD.scope, 1 WHERE NOT EXISTS (SELECT 1 FROM memory_revision WHERE scope = OLD.scope);
END;
-- +goose StatementEnd

-- The journal. Rows are only added; forgetting empties the texts in them.
CREATE TABLE memory_op (
    seq    INTEGER PRIMARY KEY AUTOINCREMENT,
    batch  TEXT    NOT NULL,            -- operations of one batch are undone together
    at     INTEGER NOT NULL,
    actor  TEXT    NOT NULL,            -- a Matrix id, or the part of the program: file, harvest, dreaming, import
    op     TEXT    NOT NULL CHECK (op IN ('add', 'retire', 'supersede', 'merge', 'restore', 'archive', 'pin', 'unpin',
                   'move', 'note', 'forget')),
    entry  TEXT    NOT NULL,            -- memory.id
    before TEXT    NOT NULL DEFAULT '', -- JSON of the entry, or empty
    after  TEXT    NOT NULL DEFAULT '',
    undoes INTEGER NOT NULL DEFAULT 0   -- the operation that this one undoes
) STRICT;
CREATE INDEX memory_op_by_entry ON memory_op (entry, seq);
CREATE INDEX memory_op_by_batch ON memory_op (batch);
CREATE INDEX memory_op_by_actor ON memory_op (actor, seq);
CREATE INDEX memory_op_by_undone ON memory_op (undoes) WHERE undoes <> 0;

-- How often the entries of a scope changed. Imported conversations stand in no file and are not
-- counted. Readers compare n plus memory_file.changes; the counts are apart because each change
-- would otherwise rewrite a row as long as the file.
CREATE TABLE memory_revision (
    scope TEXT    PRIMARY KEY,
    n     INTEGER NOT NULL
) STRICT;

-- Hashes of what was forgotten, so that it is not learned again. No text can be read out of them.
CREATE TABLE memory_forgotten (
    hash   TEXT    PRIMARY KEY,       -- of salt, scope and normalised text
    at     INTEGER NOT NULL,
    purged INTEGER NOT NULL DEFAULT 0 -- 1 = no copy is left in the database's own files
) STRICT;

CREATE TABLE memory_salt (
    one  INTEGER PRIMARY KEY CHECK (one = 1),
    salt BLOB    NOT NULL
) STRICT;
INSERT INTO memory_salt (one, salt) VALUES (1, randomblob(32));

-- Further messages that said the same as an entry, besides the one it was learned from.
CREATE TABLE memory_source (
    entry TEXT NOT NULL,
    event TEXT NOT NULL,
    at    INTEGER NOT NULL,
    PRIMARY KEY (entry, event)
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_source_by_event ON memory_source (event);

-- The memories as documents, which package search indexes. Superseded and archived ones are found
-- when the past is asked for.
CREATE VIEW document AS
    SELECT n, id, scope, text, subject, hash, state, conversation, seq, observed_at AS at, rev FROM memory;

-- The changes of documents in their order, by document.id.
CREATE VIEW document_change AS
    SELECT seq, entry AS id FROM memory_op;

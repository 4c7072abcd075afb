-- +goose Up
-- Memories, their journal and files, and the indexes that find them. Package memory.

-- One row per memory. A text is never changed in place: a correction is a row of its own,
-- which by_id names. Only forgetting empties a row.
CREATE TABLE memory (
    n            INTEGER PRIMARY KEY,                  -- for the indexes; never shown
    id           TEXT    NOT NULL UNIQUE,              -- mem_ and twelve characters
    scope        TEXT    NOT NULL,                     -- private:@user, room:!id or shared
    text         TEXT    NOT NULL,                     -- one line
    subject      TEXT    NOT NULL DEFAULT '',          -- whom or what it is about; in a conversation, who says it
    kind         TEXT    NOT NULL DEFAULT 'fact' CHECK (kind IN ('fact', 'preference', 'event', 'insight')),
    source       TEXT    NOT NULL CHECK (source IN ('user_explicit', 'assistant', 'harvest', 'dreaming_merge', 'file', 'import')),
    state        TEXT    NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'merged', 'superseded', 'archived', 'forgotten')),
    by_id        TEXT    NOT NULL DEFAULT '',          -- the entry that took its place. Of an active one: the active entry that says
                                                       -- the same in other words, and is shown for it
    pinned       INTEGER NOT NULL DEFAULT 0 CHECK (pinned IN (0, 1)),
    hash         TEXT    NOT NULL DEFAULT '',          -- of the normalised text; equal means an exact duplicate
    event        TEXT    NOT NULL DEFAULT '',          -- the message it was learned from
    quote        TEXT    NOT NULL DEFAULT '',          -- its words there
    ref          TEXT    NOT NULL DEFAULT '',          -- its name in an import
    conversation TEXT    NOT NULL DEFAULT '',          -- entries of one conversation are neighbours
    seq          INTEGER NOT NULL DEFAULT 0,           -- in this order
    observed_at  INTEGER NOT NULL,                     -- when it was said
    valid_from   INTEGER,
    valid_to     INTEGER,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    hits         INTEGER NOT NULL DEFAULT 0,           -- answers that used it
    last_hit     INTEGER,
    rev          INTEGER NOT NULL DEFAULT 1,           -- grows with every change
    like_id      TEXT    NOT NULL DEFAULT '',          -- the earlier entry that says nearly the same; both stay as they are
    integrity    INTEGER NOT NULL DEFAULT 2 CHECK (integrity BETWEEN 0 AND 3) -- whose hands its words went through (see message); its readers are its scope
) STRICT;
CREATE INDEX memory_by_scope ON memory (scope, state, n);
CREATE INDEX memory_by_hash ON memory (scope, hash) WHERE state = 'active';
CREATE INDEX memory_put_away ON memory (scope, hash) WHERE state = 'archived';
CREATE INDEX memory_by_conversation ON memory (conversation, seq) WHERE conversation <> '';
CREATE INDEX memory_by_ref ON memory (ref) WHERE ref <> '';
CREATE INDEX memory_by_event ON memory (event) WHERE event <> '';
CREATE INDEX memory_by_successor ON memory (by_id) WHERE by_id <> '';
CREATE INDEX memory_by_like ON memory (like_id) WHERE like_id <> '';
-- Entries in files and prompts, which belong to no imported conversation. SQLite prefers these
-- columns to memory_by_scope, by which it reads all the lines of conversations, too.
CREATE INDEX memory_shown ON memory (scope, state, conversation, n) WHERE state = 'active' AND conversation = '';

-- The journal. Rows are only added; forgetting empties the texts in them.
CREATE TABLE memory_op (
    seq    INTEGER PRIMARY KEY AUTOINCREMENT,
    batch  TEXT    NOT NULL,               -- operations of one batch are undone together
    at     INTEGER NOT NULL,
    actor  TEXT    NOT NULL,               -- a Matrix id, or the part of the program: file, harvest, dreaming, import
    op     TEXT    NOT NULL CHECK (op IN ('add', 'retire', 'supersede', 'merge', 'restore', 'archive', 'pin', 'unpin', 'move', 'note', 'forget')),
    entry  TEXT    NOT NULL,               -- memory.id
    before TEXT    NOT NULL DEFAULT '',    -- JSON of the entry, or empty
    after  TEXT    NOT NULL DEFAULT '',
    undoes INTEGER NOT NULL DEFAULT 0      -- the operation that this one undoes
) STRICT;
CREATE INDEX memory_op_by_entry ON memory_op (entry, seq);
CREATE INDEX memory_op_by_batch ON memory_op (batch);
CREATE INDEX memory_op_by_actor ON memory_op (actor, seq);
CREATE INDEX memory_op_by_undone ON memory_op (undoes) WHERE undoes <> 0;

-- A large change that is being undone, part by part. While this row is there, what it
-- takes away is not shown any more.
CREATE TABLE memory_undo (
    batch TEXT    PRIMARY KEY,             -- the batch that is undone
    by    TEXT    NOT NULL,                -- the batch of the operations that do so
    actor TEXT    NOT NULL,
    total INTEGER NOT NULL,                -- operations
    next  INTEGER NOT NULL                 -- those before this one are still to be undone; 0: the index is still to be merged
) STRICT;

-- One row that counts the changes of memory. A reader that keeps a list compares this number
-- to see whether the list is still right.
CREATE TABLE memory_change (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    n   INTEGER NOT NULL
) STRICT;
INSERT INTO memory_change (one, n) VALUES (1, 0);

-- One row per scope: what its file held when it was last written or read. The difference
-- between that and the file is what a person did to it.
CREATE TABLE memory_file (
    scope   TEXT    PRIMARY KEY,
    changes INTEGER NOT NULL DEFAULT 0,    -- added to memory_changes.n
    name    TEXT    NOT NULL DEFAULT '',   -- relative to the data folder; empty = there was none yet
    hash    TEXT    NOT NULL DEFAULT '',   -- of its bytes
    lines   TEXT    NOT NULL DEFAULT ''    -- the entries of its lines, in order, separated by spaces
) STRICT;

-- How often the entries of a scope that stand in files and prompts changed. It is apart from
-- memory_file, whose rows are as long as the files: each change would write such a row anew.
-- The sum of both counts is what readers compare.
CREATE TABLE memory_changes (
    scope TEXT    PRIMARY KEY,
    n     INTEGER NOT NULL
) STRICT;

-- The lines of an imported conversation stand in no file and no prompt, and are not counted.
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

-- Hashes of what was forgotten, so that it is not learned again. No text can be read out of them.
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

-- Further messages that said the same as an entry, besides the one it was learned from.
CREATE TABLE memory_again (
    entry TEXT NOT NULL,
    event TEXT NOT NULL,
    at    INTEGER NOT NULL,
    PRIMARY KEY (entry, event)
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_again_by_event ON memory_again (event);

-- What people and the bot said, so that it can be found again.
CREATE TABLE memory_turn (
    n            INTEGER PRIMARY KEY AUTOINCREMENT,    -- never reused: the index knows a turn by it
    scope        TEXT    NOT NULL,
    event        TEXT    NOT NULL DEFAULT '',
    sender       TEXT    NOT NULL DEFAULT '',
    at           INTEGER NOT NULL,
    conversation TEXT    NOT NULL DEFAULT '',
    seq          INTEGER NOT NULL DEFAULT 0,
    text         TEXT    NOT NULL,
    integrity    INTEGER NOT NULL DEFAULT 2 CHECK (integrity BETWEEN 0 AND 3) -- as in memory
) STRICT;
CREATE UNIQUE INDEX memory_turn_by_event ON memory_turn (scope, event) WHERE event <> '';
CREATE INDEX memory_turn_by_conversation ON memory_turn (scope, conversation, seq);

-- Which turns were added, changed or deleted, each at its last change. Copies in memory follow it.
CREATE TABLE memory_turn_change (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    n   INTEGER NOT NULL UNIQUE            -- memory_turn.n
) STRICT;
-- The triggers delete and insert: with OR REPLACE the conflict clause of the outer statement would hold.
-- +goose StatementBegin
CREATE TRIGGER memory_turn_added AFTER INSERT ON memory_turn BEGIN
    DELETE FROM memory_turn_change WHERE n = new.n;
    INSERT INTO memory_turn_change (n) VALUES (new.n);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER memory_turn_changed AFTER UPDATE ON memory_turn BEGIN
    DELETE FROM memory_turn_change WHERE n = new.n;
    INSERT INTO memory_turn_change (n) VALUES (new.n);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER memory_turn_removed AFTER DELETE ON memory_turn BEGIN
    DELETE FROM memory_turn_change WHERE n = old.n;
    INSERT INTO memory_turn_change (n) VALUES (old.n);
END;
-- +goose StatementEnd

-- The full-text index. All of it can be made again from memory and memory_turn
-- (bot memory reindex). A write to those changes it in the same transaction.
CREATE TABLE index_scope (
    no    INTEGER PRIMARY KEY,
    scope TEXT    NOT NULL UNIQUE,
    docs  INTEGER NOT NULL DEFAULT 0,                  -- documents in it, and their words:
    words INTEGER NOT NULL DEFAULT 0                   -- they tell which terms are rare and which texts are long
) STRICT;

CREATE TABLE index_doc (
    row     INTEGER PRIMARY KEY,                       -- of index_fts: kind, scope and number in one (fts.go)
    doc     INTEGER NOT NULL UNIQUE,                   -- memory.n, or minus memory_turn.n
    rev     INTEGER NOT NULL,                          -- of the entry, as indexed
    place   INTEGER NOT NULL,                          -- its scope and conversation; 0 = none
    seq     INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    session INTEGER NOT NULL,                          -- place and day
    chars   INTEGER NOT NULL,
    words   INTEGER NOT NULL,
    marks   INTEGER NOT NULL                           -- bits: 1 = a question, 2 = it names a time
) STRICT;
CREATE INDEX index_doc_by_place ON index_doc (place, seq, doc) WHERE place <> 0;

-- How many documents of a scope contain a term.
CREATE TABLE index_term (
    scope INTEGER NOT NULL,
    term  TEXT    NOT NULL,
    df    INTEGER NOT NULL,
    PRIMARY KEY (scope, term)
) STRICT, WITHOUT ROWID;

-- The program prepares the terms: they hold letters and digits only, and the tokenizer divides
-- them at spaces. What is forgotten is taken out of the pages by merging them, without
-- secure-delete: with it, SQLite 3.54 damages an index that a long text is taken out of.
CREATE VIRTUAL TABLE index_fts USING fts5(body, near, day, subject, tokenize = "unicode61 remove_diacritics 0");
INSERT INTO index_fts (index_fts, rank) VALUES ('secure-delete', 0);
-- Room for what one transaction adds, so that it makes one segment: segments have to be merged.
INSERT INTO index_fts (index_fts, rank) VALUES ('hashsize', 16777216);

-- The models that vectors were made by. Vectors of different models, or of different length,
-- cannot be compared.
CREATE TABLE memory_space (
    no    INTEGER PRIMARY KEY,
    model TEXT    NOT NULL,
    dim   INTEGER NOT NULL,                -- numbers of a vector
    UNIQUE (model, dim)
) STRICT;

-- The vectors of texts, each made once however many entries have the text. They can be made
-- again (bot memory reindex), but that may take hours or cost money.
CREATE TABLE memory_vector (
    space INTEGER NOT NULL REFERENCES memory_space (no),
    hash  TEXT    NOT NULL,                -- memory.hash
    vec   BLOB    NOT NULL,                -- a signed byte per number, of which only the direction counts; empty = the model has no vector for this text
    UNIQUE (space, hash)
) STRICT;

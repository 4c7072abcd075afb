-- +goose Up
-- What people and the bot said, so that it can be found again.
CREATE TABLE memory_turn (
    n            INTEGER PRIMARY KEY AUTOINCREMENT,    -- never reused: the index knows a turn by it
    scope        TEXT    NOT NULL,
    event        TEXT    NOT NULL DEFAULT '',
    sender       TEXT    NOT NULL DEFAULT '',
    at           INTEGER NOT NULL,                     -- Unix milliseconds, UTC
    conversation TEXT    NOT NULL DEFAULT '',
    seq          INTEGER NOT NULL DEFAULT 0,
    text         TEXT    NOT NULL
) STRICT;

CREATE UNIQUE INDEX memory_turn_by_event ON memory_turn (scope, event) WHERE event <> '';
CREATE INDEX memory_turn_by_conversation ON memory_turn (scope, conversation, seq);

-- The full-text index. All of it can be made again from memory and memory_turn
-- (bot memory reindex). A write to those changes it in the same transaction.
CREATE TABLE index_scope (
    no    INTEGER PRIMARY KEY,
    scope TEXT    NOT NULL UNIQUE,
    docs  INTEGER NOT NULL DEFAULT 0,                  -- documents in it, and their words:
    words INTEGER NOT NULL DEFAULT 0                   -- what is rare and what is long
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
    marks   INTEGER NOT NULL                           -- 1 it asks, 2 it tells a time
) STRICT;

CREATE INDEX index_doc_by_place ON index_doc (place, seq, doc) WHERE place <> 0;

-- In how many documents of a scope a term stands.
CREATE TABLE index_term (
    scope INTEGER NOT NULL,
    term  TEXT    NOT NULL,
    df    INTEGER NOT NULL,
    PRIMARY KEY (scope, term)
) STRICT, WITHOUT ROWID;

-- Terms are prepared by the program and hold letters and digits only, so the
-- tokenizer has nothing to do but divide them at spaces. secure-delete: what is
-- taken out must be gone, not hidden until the next merge.
CREATE VIRTUAL TABLE index_fts USING fts5(body, near, day, subject, tokenize = "unicode61 remove_diacritics 0");
INSERT INTO index_fts (index_fts, rank) VALUES ('secure-delete', 1);

-- +goose Up
-- Past messages, and the full-text index. Package search.

-- What people and the bot said, for search.
CREATE TABLE past_message (
    n            INTEGER PRIMARY KEY AUTOINCREMENT, -- never reused: the index refers to it
    scope        TEXT    NOT NULL,
    event        TEXT    NOT NULL DEFAULT '',
    sender       TEXT    NOT NULL DEFAULT '',
    at           INTEGER NOT NULL,
    conversation TEXT    NOT NULL DEFAULT '',
    seq          INTEGER NOT NULL DEFAULT 0,
    text         TEXT    NOT NULL,
    integrity    INTEGER NOT NULL DEFAULT 2 CHECK (integrity BETWEEN 0 AND 3) -- as in memory
) STRICT;
CREATE UNIQUE INDEX past_message_by_event ON past_message (scope, event) WHERE event <> '';
CREATE INDEX past_message_by_conversation ON past_message (scope, conversation, seq);

-- The full-text index. All of it can be made again from memory and past_message
-- (bot memory reindex). A write to those changes it in the same transaction.
CREATE TABLE index_scope (
    no    INTEGER PRIMARY KEY,
    scope TEXT    NOT NULL UNIQUE,
    docs  INTEGER NOT NULL DEFAULT 0, -- documents in it, and their words:
    words INTEGER NOT NULL DEFAULT 0  -- they tell which terms are rare and which texts are long
) STRICT;

CREATE TABLE index_doc (
    row              INTEGER PRIMARY KEY,     -- rowid in index_fts: kind, scope and number in one (fts.go)
    doc              INTEGER NOT NULL UNIQUE, -- memory.n, or minus past_message.n
    rev              INTEGER NOT NULL,        -- of the entry, as indexed
    conversation     INTEGER NOT NULL,        -- number of its scope and conversation; 0 = none
    seq              INTEGER NOT NULL,
    at               INTEGER NOT NULL,
    conversation_day INTEGER NOT NULL,        -- conversation and day
    chars            INTEGER NOT NULL,
    words            INTEGER NOT NULL,
    flags            INTEGER NOT NULL         -- bits: 1 = a question, 2 = it names a time
) STRICT;
CREATE INDEX index_doc_by_conversation ON index_doc (conversation, seq, doc) WHERE conversation <> 0;

-- How many documents of a scope contain a term.
CREATE TABLE index_term (
    scope INTEGER NOT NULL,
    term  TEXT    NOT NULL,
    df    INTEGER NOT NULL,
    PRIMARY KEY (scope, term)
) STRICT, WITHOUT ROWID;

-- The program writes the terms: letters and digits only, with spaces between, so the tokenizer has
-- nothing to decide. Forgotten text leaves the pages by merging and not by secure-delete: with it,
-- SQLite 3.54 damages an index when a long text is deleted.
CREATE VIRTUAL TABLE index_fts USING fts5(body, day, subject, tokenize = "unicode61 remove_diacritics 0");
INSERT INTO index_fts (index_fts, rank) VALUES ('secure-delete', 0);
-- Room for what one transaction adds, so that it makes one segment: segments have to be merged.
INSERT INTO index_fts (index_fts, rank) VALUES ('hashsize', 16777216);

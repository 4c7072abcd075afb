-- +goose Up
-- The terms of a text are columns of index_doc, so that a search reads one row of each text. Package search.

DROP TABLE index_fts;
DROP TABLE index_doc; -- empty, so it is built anew at the next start

CREATE TABLE index_doc (
    row              INTEGER PRIMARY KEY,     -- rowid in index_fts: scope, kind and number in one (fts.go)
    doc              INTEGER NOT NULL UNIQUE, -- memory.n, or minus past_message.n
    rev              INTEGER NOT NULL,        -- of the entry, as indexed
    conversation     INTEGER NOT NULL,        -- number of its scope and conversation; 0 = none
    seq              INTEGER NOT NULL,
    at               INTEGER NOT NULL,
    conversation_day INTEGER NOT NULL,        -- conversation and day
    chars            INTEGER NOT NULL,
    words            INTEGER NOT NULL,
    flags            INTEGER NOT NULL,        -- bits: 1 = a question, 2 = it names a time, 4 = a standing wish
    body             TEXT    NOT NULL,        -- its terms, with spaces between
    day              TEXT    NOT NULL,        -- terms of when it was said
    subject          TEXT    NOT NULL         -- terms of who said it, or whom it is about
) STRICT;
CREATE INDEX index_doc_by_conversation ON index_doc (conversation, seq, doc) WHERE conversation <> 0;
CREATE INDEX index_doc_wish ON index_doc (row) WHERE flags & 4;

-- Terms are letters and digits only, so the tokenizer has nothing to decide. Forgotten text leaves the pages by merging
-- and not by secure-delete: with it, SQLite 3.54 damages an index when a long text is deleted.
CREATE VIRTUAL TABLE index_fts USING fts5(body, day, subject, content = 'index_doc', content_rowid = 'row',
    tokenize = "unicode61 remove_diacritics 0");
-- Room for what one transaction adds, so that it makes one segment; and four segments of a size become one at once, not
-- sixteen: a search looks up each word in each segment.
INSERT INTO index_fts (index_fts, rank) VALUES ('hashsize', 16777216), ('crisismerge', 4);

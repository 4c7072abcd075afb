-- +goose Up
-- The terms of a text are columns of index_doc, so that a search reads one row of each text. Package search.

DELETE FROM index_doc; -- empty, so it is built anew at the next start
ALTER TABLE index_doc ADD COLUMN body    TEXT NOT NULL DEFAULT ''; -- its terms, with spaces between
ALTER TABLE index_doc ADD COLUMN day     TEXT NOT NULL DEFAULT ''; -- terms of when it was said
ALTER TABLE index_doc ADD COLUMN subject TEXT NOT NULL DEFAULT ''; -- terms of who said it, or whom it is about

DROP TABLE index_fts;
CREATE VIRTUAL TABLE index_fts USING fts5(body, day, subject, content = 'index_doc', content_rowid = 'row',
    tokenize = "unicode61 remove_diacritics 0");
INSERT INTO index_fts (index_fts, rank) VALUES ('hashsize', 16777216), ('crisismerge', 4); -- as in 0116 and 0137

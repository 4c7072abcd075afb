-- +goose Up
-- A row of the search index is not used again for another text, so a search can keep what it read. The full-text table
-- no longer stores lengths, which only its own bm25 reads. Package search.

DELETE FROM index_doc; -- empty, so it is built again at the next start
ALTER TABLE index_scope ADD COLUMN last INTEGER NOT NULL DEFAULT 0; -- the last number of a row in it

DROP TABLE index_fts;
CREATE VIRTUAL TABLE index_fts USING fts5(body, day, subject, content = 'index_doc', content_rowid = 'row', columnsize = 0,
    tokenize = "unicode61 remove_diacritics 0");
INSERT INTO index_fts (index_fts, rank) VALUES ('hashsize', 16777216), ('crisismerge', 4); -- as in 0116 and 0137

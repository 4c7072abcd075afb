-- +goose Up
-- What stands around a text is read from its neighbours when somebody searches. The program
-- fills an index that is empty.
DROP TABLE index_fts;
CREATE VIRTUAL TABLE index_fts USING fts5(body, day, subject, tokenize = "unicode61 remove_diacritics 0");
INSERT INTO index_fts (index_fts, rank) VALUES ('secure-delete', 0);
INSERT INTO index_fts (index_fts, rank) VALUES ('hashsize', 16777216);
DELETE FROM index_doc;
DELETE FROM index_term;
DELETE FROM index_scope;

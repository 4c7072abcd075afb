-- +goose Up
-- A row of the search index is not used again for another text, so a search can keep what it read. Package search.

DELETE FROM index_doc; -- empty, so it is built again at the next start
ALTER TABLE index_scope ADD COLUMN last INTEGER NOT NULL DEFAULT 0; -- the last number of a row in it

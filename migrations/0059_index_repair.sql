-- +goose Up
-- SQLite 3.54 damages a full-text index with secure-delete when it takes out a long text
-- (PRAGMA integrity_check says "checksum mismatch"). What is forgotten is taken out of its pages
-- by merging them instead, so the index does without, and one that may be damaged is made anew.
INSERT INTO index_fts (index_fts, rank) VALUES ('secure-delete', 0);
INSERT INTO index_fts (index_fts) VALUES ('rebuild');

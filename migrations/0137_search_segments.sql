-- +goose Up
-- A search looks up each word in each segment of the index. Four segments of a size become one at once, not sixteen.

INSERT INTO index_fts (index_fts, rank) VALUES ('crisismerge', 4);

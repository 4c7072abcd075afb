-- +goose Up
-- An import looks each line up by its text, in whatever state that is.
DROP INDEX memory_put_away;
DROP INDEX memory_by_hash;
CREATE INDEX memory_by_hash ON memory (scope, hash);

-- +goose Up
-- A compaction is not taken back: what was said stays, and search finds it.
DROP TABLE compaction_before;

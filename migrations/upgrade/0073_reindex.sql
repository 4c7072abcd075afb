-- +goose Up
-- A new full-text index is made in one transaction. What one in parts left goes.
DROP TABLE IF EXISTS fresh_run;
DROP TABLE IF EXISTS fresh_fts;
DROP TABLE IF EXISTS fresh_doc;
DROP TABLE IF EXISTS fresh_term;
DROP TABLE IF EXISTS fresh_scope;
DROP TABLE IF EXISTS stale_fts;
DROP TABLE IF EXISTS stale_doc;
DROP TABLE IF EXISTS stale_term;
DROP TABLE IF EXISTS stale_scope;

DROP TRIGGER memory_turn_added;
DROP TRIGGER memory_turn_changed;
DROP TRIGGER memory_turn_removed;
DROP TABLE memory_turn_change;
DROP TABLE memory_change;

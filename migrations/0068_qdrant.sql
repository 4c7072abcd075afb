-- +goose Up
-- A Qdrant server is compared with the memories by entry and revision.
DROP TRIGGER memory_outbox_add;
DROP TRIGGER memory_outbox_change;
DROP TABLE memory_outbox;
DROP TABLE memory_collection;

-- +goose Up
ALTER TABLE matrix_room DROP COLUMN commands;

-- A file whose answer was sent in parts may be sent again with that answer.
UPDATE outbox SET error = 'taken back' WHERE state = 'dead' AND error = 'sent in parts instead';

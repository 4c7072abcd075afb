-- +goose Up
-- What clients were told about our commands in a room: JSON, command → hash.
ALTER TABLE matrix_room ADD COLUMN commands TEXT NOT NULL DEFAULT '';

-- +goose Up
-- A room that took the place of another one, and whether what belongs to that
-- one has been brought along.
ALTER TABLE matrix_room ADD COLUMN replaces TEXT NOT NULL DEFAULT '';
ALTER TABLE matrix_room ADD COLUMN moved INTEGER NOT NULL DEFAULT 0 CHECK (moved IN (0, 1));

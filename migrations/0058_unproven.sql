-- +goose Up
-- Nothing proves which device wrote a message: its room is not encrypted, and the device rule
-- covers its sender, whose identity is known. It counts as no owner's.
ALTER TABLE inbox ADD COLUMN unproven INTEGER NOT NULL DEFAULT 0 CHECK (unproven IN (0, 1));

-- The same of who answered a question.
ALTER TABLE approval ADD COLUMN unproven INTEGER NOT NULL DEFAULT 0 CHECK (unproven IN (0, 1));

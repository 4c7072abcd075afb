-- +goose Up
-- Whose hands the words of a memory or message went through: 0 foreign, 1 guest, 2 user,
-- 3 owner. Who may read them is their scope. What is there already was said by people who
-- may use the assistant, or was written into a file by hand.
ALTER TABLE memory ADD COLUMN integrity INTEGER NOT NULL DEFAULT 2 CHECK (integrity BETWEEN 0 AND 3);
UPDATE memory SET integrity = 3 WHERE source = 'file';
ALTER TABLE memory_turn ADD COLUMN integrity INTEGER NOT NULL DEFAULT 2 CHECK (integrity BETWEEN 0 AND 3);

-- +goose Up
-- A memory does not name another one that says nearly the same any more.
DROP INDEX memory_by_like;
ALTER TABLE memory DROP COLUMN like_id;

-- Text and quote of a memory never change: they stand in its row, and not in each operation of the journal too.
UPDATE memory_op SET before = json_set(before, '$.text', '', '$.quote', '') WHERE before <> '';
UPDATE memory_op SET after = json_set(after, '$.text', '', '$.quote', '') WHERE after <> '';

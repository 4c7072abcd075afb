-- +goose Up
-- Labels: whose hands a text went through (0 foreign, 1 guest, 2 user, 3 owner), and who may
-- read it ("private:@user:server", "room:!id:server" or "shared"). See package trust.

-- The text of a message with its quotes and files; tail_integrity is that of tail.
ALTER TABLE message ADD COLUMN integrity INTEGER NOT NULL DEFAULT 2 CHECK (integrity BETWEEN 0 AND 3);
ALTER TABLE message ADD COLUMN tail_integrity INTEGER NOT NULL DEFAULT 2 CHECK (tail_integrity BETWEEN 0 AND 3);
ALTER TABLE message ADD COLUMN readers TEXT NOT NULL DEFAULT '';
UPDATE message SET integrity = 0 WHERE files <> '' OR bystanders <> 0 OR role = 'tool';
-- In rooms with others a header names its sender, behind a comma.
UPDATE message SET readers = iif(instr(header, ',') > 0,
    'room:' || (SELECT iif(r.branch_of <> '', r.branch_of, r.id) FROM room AS r WHERE r.id = message.room), 'private:' || sender) WHERE role = 'user' AND sender <> '';
ALTER TABLE message DROP COLUMN bystanders;

-- Who reads the current conversation; empty = nobody has said anything yet.
ALTER TABLE room ADD COLUMN readers TEXT NOT NULL DEFAULT '';
UPDATE room SET readers = coalesce((SELECT m.readers FROM message AS m WHERE m.room = room.id AND m.conversation = room.conversation
    AND m.retired = 0 AND m.role = 'user' AND m.sender <> '' ORDER BY m.id DESC LIMIT 1), '');

-- Of all that the summary was made from.
ALTER TABLE compaction ADD COLUMN integrity INTEGER NOT NULL DEFAULT 2 CHECK (integrity BETWEEN 0 AND 3);

-- Of all that the sub-session was given and has read.
ALTER TABLE sub_session ADD COLUMN integrity INTEGER NOT NULL DEFAULT 2 CHECK (integrity BETWEEN 0 AND 3);

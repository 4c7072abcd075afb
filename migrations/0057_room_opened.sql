-- +goose Up
-- When a room stopped being a direct chat, in Unix seconds; 0 = it is one, or never was. What was
-- said before, and is not kept in message, is not quoted to those who read the room now.
ALTER TABLE session ADD COLUMN opened INTEGER NOT NULL DEFAULT 0;
UPDATE session SET opened = unixepoch() WHERE private = 0 AND EXISTS (SELECT 1 FROM message AS m JOIN room AS r ON r.id = m.room
	WHERE (r.id = session.room OR r.branch_of = session.room) AND m.readers LIKE 'private:%');

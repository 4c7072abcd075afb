-- +goose Up
-- The label of a task and of a goal: how far its words are trusted, and who may read it.
-- What was made before was asked for by people, and is read by who reads the room.
ALTER TABLE task ADD COLUMN integrity INTEGER NOT NULL DEFAULT 2;
ALTER TABLE task ADD COLUMN readers TEXT NOT NULL DEFAULT '';
ALTER TABLE goal ADD COLUMN integrity INTEGER NOT NULL DEFAULT 2;
ALTER TABLE goal ADD COLUMN readers TEXT NOT NULL DEFAULT '';
UPDATE task SET readers = coalesce((SELECT 'private:' || s.person FROM session AS s WHERE s.room = task.room AND s.private = 1 AND s.person <> ''), 'room:' || room);
UPDATE goal SET readers = coalesce((SELECT 'private:' || s.person FROM session AS s WHERE s.room = goal.room AND s.private = 1 AND s.person <> ''), 'room:' || room);

-- Those who read a room work towards one goal at a time.
DROP INDEX goal_active;
CREATE UNIQUE INDEX goal_active ON goal (room, readers) WHERE status = 'active';

-- What a model was shown last is known by room and readers. It is asked again.
DROP TABLE dream_room;
CREATE TABLE dream_room (
    room    TEXT    NOT NULL,
    readers TEXT    NOT NULL,
    model   TEXT    NOT NULL,
    seen    TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    PRIMARY KEY (room, readers)
) STRICT, WITHOUT ROWID;

-- +goose Up
-- A direct chat is one with a person, and private only as long as nobody else could read it.
-- direct_with is the user it was made for, and never changes to somebody else; '' = no direct chat.
ALTER TABLE matrix_room ADD COLUMN direct_with TEXT NOT NULL DEFAULT '';
-- exposed: another person was a member, or everybody could read it. It never goes back to 0.
ALTER TABLE matrix_room ADD COLUMN exposed INTEGER NOT NULL DEFAULT 0 CHECK (exposed IN (0, 1));

-- Who replaced a room overwrote the inviter of the new one. There the account's m.direct decides.
UPDATE matrix_room SET direct_with = inviter
    WHERE direct = 1 AND replaces = '' AND inviter NOT IN (SELECT user FROM matrix_sync);
ALTER TABLE matrix_room DROP COLUMN direct;

-- The tombstone that counts for a room: one for each.
CREATE TABLE matrix_tombstone (
    room        TEXT PRIMARY KEY,
    replacement TEXT NOT NULL,
    sender      TEXT NOT NULL,
    empty       INTEGER NOT NULL CHECK (empty IN (0, 1)), -- 1: nothing was seen of the room before, so there is nothing to move
    state       TEXT NOT NULL CHECK (state IN (
                    'new',         -- whether the replacement names the room as its predecessor is not known
                    'joining',     -- nor here: the replacement is joined to find out
                    'followed',    -- it does
                    'refused'))    -- it does not
) STRICT;
CREATE INDEX matrix_tombstone_open ON matrix_tombstone (room) WHERE state IN ('new', 'joining');

INSERT OR IGNORE INTO matrix_tombstone (room, replacement, sender, empty, state)
    SELECT replaces, id, inviter, moved, CASE moved WHEN 1 THEN 'followed' ELSE 'new' END
    FROM matrix_room WHERE replaces <> '' ORDER BY moved DESC, id;
UPDATE matrix_room SET replaces = ''
    WHERE moved = 0 AND id NOT IN (SELECT replacement FROM matrix_tombstone WHERE room = matrix_room.replaces);

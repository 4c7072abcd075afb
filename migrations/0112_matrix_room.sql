-- +goose Up
-- Memberships, privacy and upgrades of rooms. Package matrix/room.

CREATE TABLE matrix_room (
    id          TEXT PRIMARY KEY,
    membership  TEXT    NOT NULL DEFAULT '' CHECK (membership IN ('', 'invited', 'refused', 'joined', 'left')),
    encrypted   INTEGER NOT NULL DEFAULT 0 CHECK (encrypted IN (0, 1)), -- it never goes back to 0
    inviter     TEXT    NOT NULL DEFAULT '',
    attempts    INTEGER NOT NULL DEFAULT 0,                             -- at a join or refusal that is still to be done
    next_at     INTEGER NOT NULL DEFAULT 0,
    last_event  TEXT    NOT NULL DEFAULT '',                            -- the newest event that was seen, where a gap in the timeline
                                                                        -- ends
    replaces    TEXT    NOT NULL DEFAULT '',                            -- the room that this one took the place of
    moved       INTEGER NOT NULL DEFAULT 0 CHECK (moved IN (0, 1)),     -- 1: what belongs to that room was brought along
    direct_with TEXT    NOT NULL DEFAULT '',                            -- the user that a direct chat was made for, who never changes;
                                                                        -- empty = no direct chat
    exposed     INTEGER NOT NULL DEFAULT 0 CHECK (exposed IN (0, 1))    -- 1: another person was a member, or everybody could read it; it
                                                                        -- never goes back to 0
) STRICT;
CREATE INDEX matrix_room_to_do ON matrix_room (next_at) WHERE membership IN ('invited', 'refused');

-- The tombstone that counts for a room: one for each.
CREATE TABLE matrix_tombstone (
    room        TEXT PRIMARY KEY,
    replacement TEXT NOT NULL,
    sender      TEXT NOT NULL,
    empty       INTEGER NOT NULL CHECK (empty IN (0, 1)), -- 1: nothing was seen of the room before, so there is nothing to move
    state       TEXT NOT NULL CHECK (state IN (
                    'new',                                -- it is unknown whether the replacement names the room as its predecessor
                    'joining',                            -- the same, and the replacement is joined to find out
                    'followed',                           -- it names the room
                    'refused'))                           -- it does not
) STRICT;
CREATE INDEX matrix_tombstone_open ON matrix_tombstone (room) WHERE state IN ('new', 'joining');

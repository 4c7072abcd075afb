-- +goose Up
-- What the model wants to do and a person must allow first, because text was read that is not
-- trusted enough. One row for all such acts of a turn.
CREATE TABLE approval (
    code         TEXT PRIMARY KEY,            -- what people write to answer
    room         TEXT    NOT NULL,
    talk         TEXT    NOT NULL,            -- the conversation it belongs to, see history.Talk
    conversation INTEGER NOT NULL,
    event        TEXT    NOT NULL,            -- the message, or system event, that was worked on
    asker        TEXT    NOT NULL,            -- on whose behalf
    readers      TEXT    NOT NULL,            -- who read the room then
    quote        TEXT    NOT NULL DEFAULT '', -- what the message said
    acts         TEXT    NOT NULL,            -- JSON: the calls, what each covers, and what came of it
    seen         TEXT    NOT NULL DEFAULT '', -- JSON: where the text came from that is not trusted enough
    mark         TEXT    NOT NULL DEFAULT '', -- names that text; another mark = there is more of it
    state        TEXT    NOT NULL CHECK (state IN ('gathering', 'open', 'approved', 'done', 'denied', 'expired', 'void')),
    wide         INTEGER NOT NULL DEFAULT 0 CHECK (wide IN (0, 1)), -- allowed for this conversation
    answered_by  TEXT    NOT NULL DEFAULT '',
    created      INTEGER NOT NULL,            -- Unix milliseconds, UTC, like every time here
    expires      INTEGER NOT NULL DEFAULT 0,  -- 0 = it is not asked yet
    answered     INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX approval_by_event ON approval (room, event);
CREATE INDEX approval_by_state ON approval (state) WHERE state IN ('gathering', 'open', 'approved');
CREATE INDEX approval_granted ON approval (talk, conversation) WHERE wide = 1;

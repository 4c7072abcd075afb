-- +goose Up
-- Tool calls that a person must allow first, because the model read text that is not
-- trusted enough. One row holds all such calls of a turn. Package approval.
CREATE TABLE approval (
    code               TEXT PRIMARY KEY,            -- what people write to answer
    room               TEXT    NOT NULL,
    thread             TEXT    NOT NULL,            -- the conversation it belongs to, see history.Talk
    conversation       INTEGER NOT NULL,
    event              TEXT    NOT NULL,            -- the message or system event that was worked on
    asker              TEXT    NOT NULL,            -- on whose behalf
    readers            TEXT    NOT NULL,            -- who read the room then
    quote              TEXT    NOT NULL DEFAULT '', -- what the message said
    acts               TEXT    NOT NULL,            -- JSON: the calls, what each covers, and what came of it
    sources            TEXT    NOT NULL DEFAULT '', -- JSON: where the text came from that is not trusted enough
    sources_hash       TEXT    NOT NULL DEFAULT '', -- a hash of that text; another hash = there is more of it
    state              TEXT    NOT NULL CHECK (state IN ('gathering', 'open', 'approved', 'done', 'denied', 'expired', 'void')),
    whole_conversation INTEGER NOT NULL DEFAULT 0 CHECK (whole_conversation IN (0, 1)), -- 1: allowed until the conversation ends
    answered_by        TEXT    NOT NULL DEFAULT '',
    created            INTEGER NOT NULL,
    expires            INTEGER NOT NULL DEFAULT 0,  -- 0 = it is not asked yet
    unverified         INTEGER NOT NULL DEFAULT 0 CHECK (unverified IN (0, 1)) -- of the answer, as in inbox
) STRICT;
CREATE INDEX approval_by_event ON approval (room, event);
CREATE INDEX approval_by_state ON approval (state) WHERE state IN ('gathering', 'open', 'approved');
CREATE INDEX approval_granted ON approval (thread, conversation) WHERE whole_conversation = 1;

-- +goose Up
-- The transcript: what was said in each conversation, and its summaries. Package history.
-- Times in these files are in Unix milliseconds, UTC, unless the column says otherwise.

-- A room, or one of its threads. history.TimelineOf makes and reads the id of a thread.
CREATE TABLE room (
    id           TEXT PRIMARY KEY,
    conversation INTEGER NOT NULL DEFAULT 1, -- the current one; older ones stay in message
    thread_of    TEXT NOT NULL DEFAULT '',   -- the room that this thread belongs to; empty = it is a room
    readers      TEXT NOT NULL DEFAULT ''    -- who may read the current conversation; empty = it has no message yet
) STRICT;
CREATE INDEX room_threads ON room (thread_of) WHERE thread_of <> '';

-- Labels say whose hands a text went through (integrity: 0 foreign, 1 guest, 2 user, 3 owner), and
-- who may read it (readers: "private:@user:server", "room:!id:server" or "shared"). See package trust.
CREATE TABLE message (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,                   -- never reused: prompt epochs point at it
    room           TEXT    NOT NULL REFERENCES room (id),
    conversation   INTEGER NOT NULL,
    role           TEXT    NOT NULL CHECK (role IN ('system', 'user', 'assistant', 'tool')),
    event_id       TEXT    NOT NULL DEFAULT '',
    sender         TEXT    NOT NULL DEFAULT '',
    header         TEXT    NOT NULL DEFAULT '',
    text           TEXT    NOT NULL DEFAULT '',
    tail           TEXT    NOT NULL DEFAULT '',
    calls          TEXT    NOT NULL DEFAULT '',                         -- JSON array of tool calls, or empty
    call_id        TEXT    NOT NULL DEFAULT '',
    at             INTEGER NOT NULL,
    retired        INTEGER NOT NULL DEFAULT 0 CHECK (retired IN (0, 1)),
    failed         INTEGER NOT NULL DEFAULT 0 CHECK (failed IN (0, 1)), -- 1: the result of a tool that failed
    compaction     INTEGER NOT NULL DEFAULT 0,                          -- the compaction that summarised and retired the message; 0 =
                                                                        -- none
    short          TEXT    NOT NULL DEFAULT '',                         -- what the model gets in place of text; empty = the text itself
    files          TEXT    NOT NULL DEFAULT '',                         -- JSON: the files of the message, and what the model gets of them
    quoted         TEXT    NOT NULL DEFAULT '',                         -- JSON: [{"event": …, "text": …}], what the message quotes, as
                                                                        -- rendered when it came
    integrity      INTEGER NOT NULL DEFAULT 2 CHECK (integrity BETWEEN 0 AND 3), -- of the text with its quotes and files
    tail_integrity INTEGER NOT NULL DEFAULT 2 CHECK (tail_integrity BETWEEN 0 AND 3), -- of tail
    readers        TEXT    NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX message_by_conversation ON message (room, conversation, id) WHERE retired = 0;
CREATE UNIQUE INDEX message_by_event ON message (room, event_id) WHERE event_id <> '';

-- One row per compaction: which messages the model no longer gets word for word, and what it
-- gets in their place. Nothing is deleted: the messages are marked.
CREATE TABLE compaction (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    room          TEXT    NOT NULL,
    conversation  INTEGER NOT NULL,
    messages      INTEGER NOT NULL, -- how many were summarised
    shortened     INTEGER NOT NULL, -- how many were shortened
    level         TEXT    NOT NULL CHECK (level IN ('micro', 'trim', 'summary', 'extract')),
    reason        TEXT    NOT NULL, -- who or what asked for it
    summary       TEXT    NOT NULL, -- of everything before, earlier summaries included
    details       TEXT    NOT NULL, -- lines kept word for word beside it
    tokens_before INTEGER NOT NULL, -- of the history, by estimate
    tokens_after  INTEGER NOT NULL, -- of summary, details and the rest of the history
    at            INTEGER NOT NULL,
    integrity     INTEGER NOT NULL DEFAULT 2 CHECK (integrity BETWEEN 0 AND 3) -- of all that the summary was made from
) STRICT;
CREATE INDEX compaction_room ON compaction (room, conversation, id);

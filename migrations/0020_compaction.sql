-- +goose Up
-- One row per compaction: what of a conversation the model no longer gets word for word,
-- and what it gets in its place. Nothing is deleted: the messages are marked.
CREATE TABLE compaction (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    room          TEXT    NOT NULL,
    conversation  INTEGER NOT NULL,
    from_message  INTEGER NOT NULL,   -- the first and the last message summarised, of those marked with this id;
    to_message    INTEGER NOT NULL,   -- 0: none, messages were only shortened
    messages      INTEGER NOT NULL,   -- how many were summarised
    shortened     INTEGER NOT NULL,   -- how many were shortened
    level         TEXT    NOT NULL CHECK (level IN ('micro', 'trim', 'summary', 'extract')),
    reason        TEXT    NOT NULL,   -- who or what asked for it
    summary       TEXT    NOT NULL,   -- of everything before, earlier summaries included
    details       TEXT    NOT NULL,   -- lines kept word for word beside it
    tokens_before INTEGER NOT NULL,   -- of the history, by estimate
    tokens_after  INTEGER NOT NULL,   -- of summary, details and what is left of the history
    at            INTEGER NOT NULL    -- Unix milliseconds, UTC
) STRICT;
CREATE INDEX compaction_room ON compaction (room, conversation, id);

-- A message that was summarised is retired; this says by which compaction. 0 = by none.
ALTER TABLE message ADD COLUMN compaction INTEGER NOT NULL DEFAULT 0;
-- What the model gets in the place of text; empty = the text itself.
ALTER TABLE message ADD COLUMN short TEXT NOT NULL DEFAULT '';

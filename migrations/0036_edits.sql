-- +goose Up
-- What people do to something said before waits in the inbox like a message: an edit, a
-- redaction, a reaction that stops or asks again. target is what it is done to: the id of
-- a message in the inbox, or of one of ours in the outbox.
ALTER TABLE inbox ADD COLUMN change TEXT NOT NULL DEFAULT '' CHECK (change IN ('', 'edited', 'taken back', 'stop', 'retry'));
ALTER TABLE inbox ADD COLUMN target TEXT NOT NULL DEFAULT '';
CREATE INDEX inbox_by_target ON inbox (target) WHERE target <> '';

-- How many events of this message were taken back in the room. The next event needs a
-- transaction id of its own: under the old one the homeserver would return the old event.
ALTER TABLE outbox ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;
ALTER TABLE takeback ADD COLUMN reason TEXT NOT NULL DEFAULT 'sent twice';

-- Which messages each reply of ours answers, noted before the model is asked. A message
-- has several replies when it was asked again, a reply several messages when they came together.
CREATE TABLE answered (
    seq      INTEGER PRIMARY KEY AUTOINCREMENT,
    question TEXT NOT NULL,
    reply    TEXT NOT NULL,
    UNIQUE (question, reply)
) STRICT;
CREATE INDEX answered_by_reply ON answered (reply);

-- The messages, besides the one it was learned from, that said the same as an entry.
CREATE TABLE memory_again (
    entry TEXT NOT NULL,
    event TEXT NOT NULL,
    at    INTEGER NOT NULL,                      -- Unix milliseconds, UTC
    PRIMARY KEY (entry, event)
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_again_by_event ON memory_again (event);

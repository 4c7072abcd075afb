-- +goose Up
-- What a row of the outbox is a part of, and the transaction id of its event, are columns: nothing reads them
-- out of ids any more.
ALTER TABLE outbox ADD COLUMN message TEXT NOT NULL DEFAULT ''; -- the message that this row is a part of; empty = it is one itself
ALTER TABLE outbox ADD COLUMN part TEXT NOT NULL DEFAULT '' CHECK (part IN ('', 'file', 'whole', 'text')); -- file: a tool sent it,
    -- and it stands when the answer changes; whole: all of a message that is too long; text: more of one, of an earlier version
ALTER TABLE outbox ADD COLUMN txn TEXT NOT NULL GENERATED ALWAYS AS (iif(generation = 0, id, id || '~' || generation)) VIRTUAL;
CREATE UNIQUE INDEX outbox_by_txn ON outbox (txn);
CREATE INDEX outbox_by_message ON outbox (message) WHERE message <> '';

-- Transaction ids of events that were redacted. An event that a sync shows late is redacted, too.
CREATE TABLE redacted_txn (
    txn  TEXT PRIMARY KEY,
    room TEXT NOT NULL
) STRICT;
INSERT INTO redacted_txn (txn, room)
    WITH RECURSIVE past (id, room, n) AS (
        SELECT id, room, generation - 1 FROM outbox WHERE generation > 0
        UNION ALL SELECT id, room, n - 1 FROM past WHERE n > 0)
    SELECT iif(n = 0, id, id || '~' || n), room FROM past;

UPDATE outbox SET message = substr(id, 1, instr(id, '+file-') - 1), part = 'file' WHERE instr(id, '+file-') > 0;
UPDATE outbox SET message = substr(id, 1, instr(id, '+whole-') - 1), part = 'whole' WHERE instr(id, '+whole-') > 0;
UPDATE outbox SET message = substr(id, 1, instr(id, '+') - 1), part = 'text'
    WHERE part = '' AND poll = '' AND id GLOB '*+[0-9]*' AND substr(id, 1, instr(id, '+') - 1) IN (SELECT id FROM outbox);
UPDATE outbox SET message = substr(id, 1, length(id) - 2), part = 'text'
    WHERE part = '' AND poll = '' AND id GLOB '*-[0-9]' AND substr(id, 1, length(id) - 2) IN (SELECT id FROM outbox);
UPDATE outbox SET message = substr(id, 1, length(id) - 3), part = 'text'
    WHERE part = '' AND poll = '' AND id GLOB '*-[0-9][0-9]' AND substr(id, 1, length(id) - 3) IN (SELECT id FROM outbox);

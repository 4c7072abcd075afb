-- +goose Up
-- What a message quotes, as it was rendered when it was heard, and whether words of
-- people are among it who may not talk to the bot.
ALTER TABLE message ADD COLUMN quoted TEXT NOT NULL DEFAULT '';            -- JSON: [{"event": …, "text": …}]
ALTER TABLE message ADD COLUMN bystanders INTEGER NOT NULL DEFAULT 0 CHECK (bystanders IN (0, 1));
ALTER TABLE message ADD COLUMN unquoted INTEGER NOT NULL DEFAULT 0;        -- the compaction that left the quotes out; 0 = they are sent

-- What was said in rooms with others and was not for the bot. It goes along with the
-- next message that is.
CREATE TABLE heard (
    seq      INTEGER PRIMARY KEY AUTOINCREMENT,
    event    TEXT    NOT NULL UNIQUE,
    room     TEXT    NOT NULL,
    thread   TEXT    NOT NULL DEFAULT '',        -- the root of the thread it was said in; empty = none
    sender   TEXT    NOT NULL,
    name     TEXT    NOT NULL DEFAULT '',
    text     TEXT    NOT NULL,                   -- emptied once it is given
    at       INTEGER NOT NULL,                   -- Unix milliseconds, as its server says
    heard_at INTEGER NOT NULL,                   -- by our clock
    given    INTEGER NOT NULL DEFAULT 0 CHECK (given IN (0, 1))
) STRICT;

CREATE INDEX heard_by_room ON heard (room, seq);

-- How somebody's messages and our answers follow each other, to find programs that
-- answer us and are answered for ever.
CREATE TABLE pace (
    room        TEXT    NOT NULL,
    sender      TEXT    NOT NULL,
    last        TEXT    NOT NULL DEFAULT '',     -- the newest message that was counted
    last_at     INTEGER NOT NULL DEFAULT 0,      -- when it came, Unix milliseconds
    answered_at INTEGER NOT NULL DEFAULT 0,      -- when the newest answer to them was said
    hasty       INTEGER NOT NULL DEFAULT 0,      -- messages in a row that came as a program's do
    turns       TEXT    NOT NULL DEFAULT '',     -- JSON: when the last ones came
    words       TEXT    NOT NULL DEFAULT '',     -- JSON: marks of the words of the last ones, which tell only likeness
    held        TEXT    NOT NULL DEFAULT '',     -- the message at which answering was stopped; empty = it is not
    held_until  INTEGER NOT NULL DEFAULT 0,
    holds       INTEGER NOT NULL DEFAULT 0,      -- how often in a row
    PRIMARY KEY (room, sender)
) STRICT, WITHOUT ROWID;

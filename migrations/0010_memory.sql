-- +goose Up
-- One row per thing remembered. A text is never changed in place: what corrects
-- it is a row of its own, and this one says which. Only forgetting empties a row.
CREATE TABLE memory (
    n            INTEGER PRIMARY KEY,                  -- for the indexes; never shown
    id           TEXT    NOT NULL UNIQUE,              -- mem_ and twelve characters
    scope        TEXT    NOT NULL,                     -- private:@user, room:!id or shared
    text         TEXT    NOT NULL,                     -- one line
    subject      TEXT    NOT NULL DEFAULT '',          -- whom or what it is about; in a conversation, who says it
    kind         TEXT    NOT NULL DEFAULT 'fact' CHECK (kind IN ('fact', 'preference', 'event', 'insight')),
    source       TEXT    NOT NULL CHECK (source IN ('user_explicit', 'assistant', 'harvest', 'dreaming_merge', 'file', 'import')),
    state        TEXT    NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'merged', 'superseded', 'archived', 'forgotten')),
    by_id        TEXT    NOT NULL DEFAULT '',          -- the entry that took its place
    pinned       INTEGER NOT NULL DEFAULT 0 CHECK (pinned IN (0, 1)),
    hash         TEXT    NOT NULL DEFAULT '',          -- of the normalised text; equal means an exact duplicate
    event        TEXT    NOT NULL DEFAULT '',          -- the message it was learned from
    quote        TEXT    NOT NULL DEFAULT '',          -- its words there
    ref          TEXT    NOT NULL DEFAULT '',          -- what an import called it
    conversation TEXT    NOT NULL DEFAULT '',          -- entries of one conversation are neighbours
    seq          INTEGER NOT NULL DEFAULT 0,           -- in this order
    observed_at  INTEGER NOT NULL,                     -- when it was said; Unix milliseconds, UTC, like every time here
    valid_from   INTEGER,
    valid_to     INTEGER,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    hits         INTEGER NOT NULL DEFAULT 0,           -- answers that used it
    last_hit     INTEGER,
    rev          INTEGER NOT NULL DEFAULT 1            -- grows with every change
) STRICT;

CREATE INDEX memory_by_scope ON memory (scope, state, n);
CREATE INDEX memory_by_hash ON memory (scope, hash) WHERE state = 'active';
CREATE INDEX memory_by_conversation ON memory (conversation, seq) WHERE conversation <> '';
CREATE INDEX memory_by_ref ON memory (ref) WHERE ref <> '';

-- Everything that was done to them. Rows are only added; forgetting empties the
-- texts in them.
CREATE TABLE memory_op (
    seq    INTEGER PRIMARY KEY AUTOINCREMENT,
    batch  TEXT    NOT NULL,               -- what was done together is undone together
    at     INTEGER NOT NULL,
    actor  TEXT    NOT NULL,               -- a Matrix id, or what part of the program: file, harvest, dreaming, import
    op     TEXT    NOT NULL CHECK (op IN ('add', 'retire', 'supersede', 'merge', 'restore', 'archive', 'pin', 'unpin', 'move', 'note', 'forget')),
    entry  TEXT    NOT NULL,               -- memory.id
    before TEXT    NOT NULL DEFAULT '',    -- JSON of the entry, or empty
    after  TEXT    NOT NULL DEFAULT '',
    undoes INTEGER NOT NULL DEFAULT 0      -- the operation that this one takes back
) STRICT;

CREATE INDEX memory_op_by_entry ON memory_op (entry, seq);
CREATE INDEX memory_op_by_batch ON memory_op (batch);

-- One row that counts the changes of memory, whoever makes them. A reader that
-- kept a list asks this small row whether the list still holds.
CREATE TABLE memory_change (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    n   INTEGER NOT NULL
) STRICT;
INSERT INTO memory_change (one, n) VALUES (1, 0);

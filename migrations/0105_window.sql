-- +goose Up
-- How many tokens a model reads, and the prompt tier of each room. Package window.

-- The tier that a room's prompt is made for. It changes at boundaries only: a new
-- conversation, another model, another configuration, a compaction.
CREATE TABLE tier_lock (
    room         TEXT    PRIMARY KEY,
    conversation INTEGER NOT NULL,
    tier         INTEGER NOT NULL CHECK (tier BETWEEN 1 AND 5),
    window       INTEGER NOT NULL, -- tokens, when it was locked
    source       TEXT    NOT NULL, -- of the window
    sure         INTEGER NOT NULL, -- 0: a guess, which the model's first answer may correct
    model        TEXT    NOT NULL, -- and its server
    settings     TEXT    NOT NULL, -- what the owner had set
    locked_at    INTEGER NOT NULL,
    reason       TEXT    NOT NULL  -- which boundary it was
) STRICT;

-- The window that a server was last seen to enforce, for when it does not answer.
CREATE TABLE model_window (
    model   TEXT    PRIMARY KEY, -- and its server
    tokens  INTEGER NOT NULL,
    source  TEXT    NOT NULL,
    seen_at INTEGER NOT NULL
) STRICT;

-- How many tokens a model counts for one by our estimate, as its server reports them.
CREATE TABLE token_ratio (
    model   TEXT PRIMARY KEY, -- as configured
    factor  REAL    NOT NULL,
    answers INTEGER NOT NULL, -- that it was learned from
    at      INTEGER NOT NULL
) STRICT;

-- +goose Up
-- How a room's model is asked: settings, prompt, window, approvals, sub-sessions. Packages session and prompt.

-- What a session must know of its room to build a prompt while nobody is talking.
CREATE TABLE session (
    room      TEXT PRIMARY KEY,
    person    TEXT NOT NULL,               -- who wrote last
    private   INTEGER NOT NULL,            -- 1: a direct chat
    heard_at  INTEGER NOT NULL,            -- Unix seconds of the last message
    think     TEXT NOT NULL DEFAULT '',    -- how much the model is to think: off, low, medium, high; empty = its default
    mode      TEXT NOT NULL DEFAULT '',    -- empty = assistant
    pin       TEXT NOT NULL DEFAULT '',    -- the id of the task that the conversation is about; empty = none. It outlives the message that named it
    pin_asked INTEGER NOT NULL DEFAULT 0,  -- the newest message in the last request that asked a model what is worked on,
    pin_read  INTEGER NOT NULL DEFAULT 0,  -- and in the last such request that was answered
    opened    INTEGER NOT NULL DEFAULT 0   -- when the room stopped being a direct chat, in Unix seconds; 0 = it is one, or never was.
                                           -- Older words that are not in message are not quoted to those who read the room now
) STRICT;

-- What people have set for a room. A missing row stands for the default.
CREATE TABLE room_setting (
    room   TEXT    NOT NULL,
    name   TEXT    NOT NULL,
    value  TEXT    NOT NULL,
    person TEXT    NOT NULL,               -- who set it
    at     INTEGER NOT NULL,
    PRIMARY KEY (room, name)
) STRICT, WITHOUT ROWID;

-- How the mode of a room changed. The newest hundred of each room are kept.
CREATE TABLE mode_switch (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    room      TEXT    NOT NULL,
    at        INTEGER NOT NULL,
    from_mode TEXT    NOT NULL,
    to_mode   TEXT    NOT NULL,
    who       TEXT    NOT NULL,            -- who asked for it; empty = nobody
    why       TEXT    NOT NULL
) STRICT;
CREATE INDEX mode_switch_room ON mode_switch (room, id);

-- The tier that a room's prompt is made for. It changes at boundaries only: a new
-- conversation, another model, another configuration, a compaction.
CREATE TABLE tier_lock (
    room         TEXT    PRIMARY KEY,
    conversation INTEGER NOT NULL,
    tier         INTEGER NOT NULL CHECK (tier BETWEEN 1 AND 5),
    window       INTEGER NOT NULL,             -- tokens, when it was locked
    source       TEXT    NOT NULL,             -- of the window
    sure         INTEGER NOT NULL,             -- 0: a guess, which the model's first answer may correct
    model        TEXT    NOT NULL,             -- and its server
    settings     TEXT    NOT NULL,             -- what the owner had set
    locked_at    INTEGER NOT NULL,
    reason       TEXT    NOT NULL,             -- which boundary it was
    candidate    INTEGER NOT NULL DEFAULT 0,   -- a higher tier that the window has been large enough for; 0 = none
    seen         INTEGER NOT NULL DEFAULT 0,   -- how often in a row
    seen_at      INTEGER NOT NULL DEFAULT 0    -- the last time
) STRICT;

-- The window that a server was last seen to enforce, for when it does not answer.
CREATE TABLE model_window (
    model   TEXT    PRIMARY KEY,               -- and its server
    tokens  INTEGER NOT NULL,
    source  TEXT    NOT NULL,
    seen_at INTEGER NOT NULL
) STRICT;

-- How many tokens a model counts for one by our estimate, as its server reports them.
CREATE TABLE model_count (
    model   TEXT PRIMARY KEY,                  -- as configured
    factor  REAL    NOT NULL,
    answers INTEGER NOT NULL,                  -- that it was learned from
    at      INTEGER NOT NULL
) STRICT;

-- One row per room: how the prompt epoch of its conversation was rendered. The bytes sent
-- to the model stay the same across a restart.
CREATE TABLE prompt_epoch (
    room          TEXT    PRIMARY KEY,
    conversation  INTEGER NOT NULL,
    layout        TEXT    NOT NULL,
    key           TEXT    NOT NULL,            -- hashes of the sources that end the epoch when they change
    prefix        TEXT    NOT NULL,            -- the system text; empty in a layout that rebuilds it every time
    sections      TEXT    NOT NULL,            -- JSON: the report on the prefix
    shown         TEXT    NOT NULL,            -- JSON: what the model has seen of it, and in which message
    nonce         TEXT    NOT NULL,            -- of the fences; one per conversation
    first_message INTEGER NOT NULL,            -- older messages are left out
    since_message INTEGER NOT NULL,            -- tails of older messages are left out
    started_at    INTEGER NOT NULL,
    reason        TEXT    NOT NULL             -- why it began
) STRICT;

-- Why the prompt of a room was made anew, for the operator. The newest thousand are kept.
CREATE TABLE prompt_event (
    id      INTEGER PRIMARY KEY,
    room    TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    kind    TEXT    NOT NULL,                  -- conversation, prompt, mode, skills, tools, mcp, memory, history, day
    detail  TEXT    NOT NULL                   -- why the epoch began
) STRICT;
CREATE INDEX prompt_event_room ON prompt_event (room, id);

-- What happened in a room, in numbers, and which notes the model was given about it.
-- It is counted when it happens: a later compaction does not change it.
CREATE TABLE steering (
    room  TEXT PRIMARY KEY,
    state TEXT NOT NULL                        -- JSON; counting starts again when it cannot be read
) STRICT;

-- Which messages each reply of the bot answers, noted before the model is asked. A message has
-- several replies when it was asked again, a reply several messages when they came together.
CREATE TABLE answered (
    seq      INTEGER PRIMARY KEY AUTOINCREMENT,
    question TEXT NOT NULL,
    reply    TEXT NOT NULL,
    UNIQUE (question, reply)
) STRICT;
CREATE INDEX answered_by_reply ON answered (reply);

-- How fast somebody's messages follow the bot's answers. It finds programs that answer the
-- bot, which would go on for ever.
CREATE TABLE pace (
    room        TEXT    NOT NULL,
    sender      TEXT    NOT NULL,
    last        TEXT    NOT NULL DEFAULT '',   -- the newest message that was counted
    last_at     INTEGER NOT NULL DEFAULT 0,    -- when it came
    answered_at INTEGER NOT NULL DEFAULT 0,    -- when the newest answer to the sender was given
    hasty       INTEGER NOT NULL DEFAULT 0,    -- messages in a row that came as fast as a program's
    turns       TEXT    NOT NULL DEFAULT '',   -- JSON: when the last ones came
    words       TEXT    NOT NULL DEFAULT '',   -- JSON: hashes of the words of the last ones, enough to tell likeness
    held        TEXT    NOT NULL DEFAULT '',   -- the message at which answering was stopped; empty = it goes on
    held_until  INTEGER NOT NULL DEFAULT 0,
    holds       INTEGER NOT NULL DEFAULT 0,    -- how often in a row
    PRIMARY KEY (room, sender)
) STRICT, WITHOUT ROWID;

-- Tool calls that a person must allow first, because the model read text that is not
-- trusted enough. One row for all such calls of a turn.
CREATE TABLE approval (
    code         TEXT PRIMARY KEY,             -- what people write to answer
    room         TEXT    NOT NULL,
    talk         TEXT    NOT NULL,             -- the conversation it belongs to, see history.Talk
    conversation INTEGER NOT NULL,
    event        TEXT    NOT NULL,             -- the message or system event that was worked on
    asker        TEXT    NOT NULL,             -- on whose behalf
    readers      TEXT    NOT NULL,             -- who read the room then
    quote        TEXT    NOT NULL DEFAULT '',  -- what the message said
    acts         TEXT    NOT NULL,             -- JSON: the calls, what each covers, and what came of it
    seen         TEXT    NOT NULL DEFAULT '',  -- JSON: where the text came from that is not trusted enough
    mark         TEXT    NOT NULL DEFAULT '',  -- names that text; another mark = there is more of it
    state        TEXT    NOT NULL CHECK (state IN ('gathering', 'open', 'approved', 'done', 'denied', 'expired', 'void')),
    wide         INTEGER NOT NULL DEFAULT 0 CHECK (wide IN (0, 1)), -- allowed for this conversation
    answered_by  TEXT    NOT NULL DEFAULT '',
    created      INTEGER NOT NULL,
    expires      INTEGER NOT NULL DEFAULT 0,   -- 0 = it is not asked yet
    answered     INTEGER NOT NULL DEFAULT 0,
    unproven     INTEGER NOT NULL DEFAULT 0 CHECK (unproven IN (0, 1)) -- of the answer, as in inbox
) STRICT;
CREATE INDEX approval_by_event ON approval (room, event);
CREATE INDEX approval_by_state ON approval (state) WHERE state IN ('gathering', 'open', 'approved');
CREATE INDEX approval_granted ON approval (talk, conversation) WHERE wide = 1;

-- Work that the model gave to a sub-session. What the sub-session said and did is in message,
-- in a room of its own: "sub:" and the id.
CREATE TABLE sub_session (
    id         TEXT PRIMARY KEY,               -- sub_ and eight characters
    workflow   TEXT    NOT NULL,               -- the first of those that depend on each other
    parent     TEXT    NOT NULL DEFAULT '',    -- the sub-session that asked for it; empty = the room did
    depth      INTEGER NOT NULL,               -- 1: the room asked for it
    room       TEXT    NOT NULL,
    user       TEXT    NOT NULL DEFAULT '',    -- on whose behalf it was made
    private    INTEGER NOT NULL CHECK (private IN (0, 1)), -- 1: nobody else read the room then
    asked      TEXT    NOT NULL DEFAULT '',    -- the message or event that was worked on then
    objective  TEXT    NOT NULL,
    context    TEXT    NOT NULL DEFAULT '',
    mode       TEXT    NOT NULL CHECK (mode IN ('minimal', 'full', 'base_only', 'none')),
    tools      TEXT    NOT NULL,               -- JSON array of names
    timeout    INTEGER NOT NULL,               -- milliseconds of work
    due        INTEGER NOT NULL DEFAULT 0,     -- it does not start before this
    status     TEXT    NOT NULL CHECK (status IN ('pending', 'running', 'waiting', 'completed', 'failed', 'cancelled')),
    result     TEXT    NOT NULL DEFAULT '',
    reason     TEXT    NOT NULL DEFAULT '',    -- why it failed or was cancelled
    continued  INTEGER NOT NULL DEFAULT 0,     -- how often its time was up
    rounds     INTEGER NOT NULL DEFAULT 0,     -- requests to the model
    tokens     INTEGER NOT NULL DEFAULT 0,     -- in these
    faults     INTEGER NOT NULL DEFAULT 0,     -- how many of these failed
    event      TEXT    NOT NULL DEFAULT '',    -- the system event that reports its end, perhaps with others
    tries      INTEGER NOT NULL DEFAULT 0,     -- of that event
    created    INTEGER NOT NULL,
    started    INTEGER NOT NULL DEFAULT 0,
    ended      INTEGER NOT NULL DEFAULT 0,
    told       INTEGER NOT NULL DEFAULT 0,     -- when its end was reported to whoever asked for it; 0 = not yet
    timed_out  INTEGER NOT NULL DEFAULT 0 CHECK (timed_out IN (0, 1)), -- 1: it failed because its time was up
    integrity  INTEGER NOT NULL DEFAULT 2 CHECK (integrity BETWEEN 0 AND 3) -- of all that it was given and has read (see message)
) STRICT;
CREATE INDEX sub_session_left ON sub_session (status, created) WHERE told = 0;
CREATE INDEX sub_session_by_room ON sub_session (room, created);
CREATE INDEX sub_session_by_event ON sub_session (event) WHERE event <> '';
CREATE INDEX sub_session_by_parent ON sub_session (parent) WHERE parent <> '';

-- A node begins when all that it needs are completed.
CREATE TABLE sub_session_need (
    node  TEXT NOT NULL REFERENCES sub_session (id),
    needs TEXT NOT NULL REFERENCES sub_session (id),
    PRIMARY KEY (node, needs)
) STRICT;
CREATE INDEX sub_session_needed ON sub_session_need (needs);

-- Files that sub-sessions of one workflow keep for one another until all ends are reported.
CREATE TABLE sub_session_file (
    node TEXT    NOT NULL REFERENCES sub_session (id), -- who wrote it
    name TEXT    NOT NULL,
    text TEXT    NOT NULL,
    at   INTEGER NOT NULL,
    PRIMARY KEY (node, name)
) STRICT;

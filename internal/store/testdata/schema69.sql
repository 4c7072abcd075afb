-- A database of schema version 69, made by the migrations before they became one file for each owner.
CREATE TABLE goose_db_version (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);
CREATE TABLE room (
    id           TEXT PRIMARY KEY,
    conversation INTEGER NOT NULL DEFAULT 1   -- the current one; older ones stay in message
, branch_of TEXT NOT NULL DEFAULT '', readers TEXT NOT NULL DEFAULT '') STRICT;
CREATE TABLE message (
    id           INTEGER PRIMARY KEY AUTOINCREMENT, -- never reused: prompt epochs point at it
    room         TEXT    NOT NULL REFERENCES room (id),
    conversation INTEGER NOT NULL,
    role         TEXT    NOT NULL CHECK (role IN ('system', 'user', 'assistant', 'tool')),
    event_id     TEXT    NOT NULL DEFAULT '',
    sender       TEXT    NOT NULL DEFAULT '',
    header       TEXT    NOT NULL DEFAULT '',
    text         TEXT    NOT NULL DEFAULT '',
    tail         TEXT    NOT NULL DEFAULT '',
    calls        TEXT    NOT NULL DEFAULT '',       -- JSON array of tool calls, or empty
    call_id      TEXT    NOT NULL DEFAULT '',
    at           INTEGER NOT NULL,                  -- Unix milliseconds, UTC
    retired      INTEGER NOT NULL DEFAULT 0 CHECK (retired IN (0, 1))
, failed INTEGER NOT NULL DEFAULT 0 CHECK (failed IN (0, 1)), compaction INTEGER NOT NULL DEFAULT 0, short TEXT NOT NULL DEFAULT '', files TEXT NOT NULL DEFAULT '', quoted TEXT NOT NULL DEFAULT '', unquoted INTEGER NOT NULL DEFAULT 0, integrity INTEGER NOT NULL DEFAULT 2 CHECK (integrity BETWEEN 0 AND 3), tail_integrity INTEGER NOT NULL DEFAULT 2 CHECK (tail_integrity BETWEEN 0 AND 3), readers TEXT NOT NULL DEFAULT '') STRICT;
CREATE TABLE task (
    id         TEXT PRIMARY KEY,                 -- task_ and eight characters
    room       TEXT    NOT NULL,
    user       TEXT    NOT NULL DEFAULT '',      -- who asked for it
    content    TEXT    NOT NULL,
    priority   INTEGER NOT NULL CHECK (priority BETWEEN 1 AND 10),
    status     TEXT    NOT NULL CHECK (status IN ('active', 'paused', 'completed', 'deleted')),
    schedule   TEXT    NOT NULL DEFAULT '',      -- JSON, or empty
    prompt     TEXT    NOT NULL DEFAULT '',
    background INTEGER NOT NULL DEFAULT 0 CHECK (background IN (0, 1)),
    reason     TEXT    NOT NULL DEFAULT '',
    created    INTEGER NOT NULL,                 -- Unix milliseconds, UTC, like every time here
    updated    INTEGER NOT NULL,
    completed  INTEGER,
    next_due   INTEGER,
    last_run   INTEGER,
    run_count  INTEGER NOT NULL DEFAULT 0
, scheduled INTEGER, catch_up TEXT NOT NULL DEFAULT 'once' CHECK (catch_up IN ('once', 'skip', 'all')), failures INTEGER NOT NULL DEFAULT 0, last_result TEXT NOT NULL DEFAULT '', run_mode TEXT GENERATED ALWAYS AS (CASE WHEN prompt = '' THEN 'reminder'
    WHEN background THEN 'autonomous_silent' ELSE 'autonomous_notify' END) VIRTUAL, asked TEXT NOT NULL DEFAULT '', integrity INTEGER NOT NULL DEFAULT 2, readers TEXT NOT NULL DEFAULT '') STRICT;
CREATE TABLE task_change (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    n   INTEGER NOT NULL
) STRICT;
CREATE TABLE prompt_epoch (
    room          TEXT    PRIMARY KEY,
    conversation  INTEGER NOT NULL,
    layout        TEXT    NOT NULL,
    key           TEXT    NOT NULL,   -- hashes of the sources that end the epoch when they change
    prefix        TEXT    NOT NULL,   -- the system text; empty in a layout that rebuilds it every time
    sections      TEXT    NOT NULL,   -- JSON: the report on the prefix
    shown         TEXT    NOT NULL,   -- JSON: what the model has seen of it, and in which message
    nonce         TEXT    NOT NULL,   -- of the fences; one per conversation
    first_message INTEGER NOT NULL,   -- older messages are left out
    since_message INTEGER NOT NULL,   -- tails of older messages are left out
    started_at    INTEGER NOT NULL,   -- Unix milliseconds, UTC
    reason        TEXT    NOT NULL    -- why it began
) STRICT;
CREATE TABLE matrix_sync (
    user       TEXT    NOT NULL,
    device     TEXT    NOT NULL,                 -- a new device starts from the beginning
    next_batch TEXT    NOT NULL,
    at         INTEGER NOT NULL, failures INTEGER NOT NULL DEFAULT 0, problem  TEXT    NOT NULL DEFAULT '',                 -- Unix milliseconds, UTC, like every time here
    PRIMARY KEY (user, device)
) STRICT;
CREATE TABLE matrix_room (
    id         TEXT PRIMARY KEY,
    membership TEXT    NOT NULL DEFAULT '' CHECK (membership IN ('', 'invited', 'refused', 'joined', 'left')),
    encrypted  INTEGER NOT NULL DEFAULT 0 CHECK (encrypted IN (0, 1)), -- sticky: never goes back to 0
    inviter    TEXT    NOT NULL DEFAULT '',
    attempts   INTEGER NOT NULL DEFAULT 0,       -- of the join or refusal that is still to be done
    next_at    INTEGER NOT NULL DEFAULT 0
, last_event TEXT NOT NULL DEFAULT '', replaces TEXT NOT NULL DEFAULT '', moved INTEGER NOT NULL DEFAULT 0 CHECK (moved IN (0, 1)), direct_with TEXT NOT NULL DEFAULT '', exposed INTEGER NOT NULL DEFAULT 0 CHECK (exposed IN (0, 1))) STRICT;
CREATE TABLE outbox (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    id         TEXT    NOT NULL UNIQUE,          -- also the transaction id, so that sending twice makes one event
    room       TEXT    NOT NULL,
    kind       TEXT    NOT NULL DEFAULT 'text' CHECK (kind IN ('text', 'notice')),
    text       TEXT    NOT NULL DEFAULT '',
    reply_to   TEXT    NOT NULL DEFAULT '',
    state      TEXT    NOT NULL CHECK (state IN ('draft', 'pending', 'sent', 'dead')),
    drafted    INTEGER NOT NULL DEFAULT 0 CHECK (drafted IN (0, 1)), -- 1: the first event of this id carries a draft
    revision   INTEGER NOT NULL DEFAULT 0,       -- how many final texts this id has had
    event_id   TEXT    NOT NULL DEFAULT '',
    attempts   INTEGER NOT NULL DEFAULT 0,
    next_at    INTEGER NOT NULL DEFAULT 0,
    error      TEXT    NOT NULL DEFAULT '',
    created_at INTEGER NOT NULL
, mention TEXT NOT NULL DEFAULT '', thread TEXT NOT NULL DEFAULT '', generation INTEGER NOT NULL DEFAULT 0, file TEXT NOT NULL DEFAULT '', poll   TEXT    NOT NULL DEFAULT '', closed INTEGER NOT NULL DEFAULT 0 CHECK (closed IN (0, 1))) STRICT;
CREATE TABLE session (
    room      TEXT PRIMARY KEY,
    person    TEXT NOT NULL,             -- who wrote last
    private   INTEGER NOT NULL,          -- 1: a direct chat
    heard_at  INTEGER NOT NULL           -- unix seconds of the last message
, think TEXT NOT NULL DEFAULT '', mode TEXT NOT NULL DEFAULT '', pin TEXT NOT NULL DEFAULT '', pin_asked INTEGER NOT NULL DEFAULT 0, pin_read INTEGER NOT NULL DEFAULT 0, opened INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE "inbox" (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    id          TEXT    NOT NULL UNIQUE,         -- the event id: a message is taken once
    room        TEXT    NOT NULL,
    sender      TEXT    NOT NULL,
    sender_name TEXT    NOT NULL DEFAULT '',
    text        TEXT    NOT NULL DEFAULT '',     -- emptied when the message is done
    private     INTEGER NOT NULL DEFAULT 0 CHECK (private IN (0, 1)),
    sent_at     INTEGER NOT NULL,
    received_at INTEGER NOT NULL,
    state       TEXT    NOT NULL DEFAULT 'new' CHECK (state IN (
                    'new',                       -- to be answered
                    'done',                      -- answered, or needs no answer
                    'utd',                       -- cannot be decrypted: waits for its key
                    'failed',                    -- reading it went wrong: is tried again
                    'dead',                      -- given up
                    'redacted')),                -- its sender took it back before it was answered
    raw         TEXT    NOT NULL DEFAULT '',     -- utd, failed and dead: the event
    megolm      TEXT    NOT NULL DEFAULT '',     -- utd: the session whose key is missing
    tries       INTEGER NOT NULL DEFAULT 0,      -- failed: how often
    next_at     INTEGER NOT NULL DEFAULT 0,      -- utd and failed: when to try again; 0 = when the key comes
    error       TEXT    NOT NULL DEFAULT ''
, thread TEXT NOT NULL DEFAULT '', reply_to TEXT NOT NULL DEFAULT '', brought TEXT NOT NULL DEFAULT '', incomplete INTEGER NOT NULL DEFAULT 0 CHECK (incomplete IN (0, 1)), target TEXT NOT NULL DEFAULT '', branch TEXT NOT NULL DEFAULT '', change TEXT NOT NULL DEFAULT '' CHECK (change IN ('', 'edited', 'taken back', 'stop', 'retry', 'voted')), unproven INTEGER NOT NULL DEFAULT 0 CHECK (unproven IN (0, 1))) STRICT;
CREATE TABLE prompt_event (
    id      INTEGER PRIMARY KEY,
    room    TEXT    NOT NULL,
    at      INTEGER NOT NULL,   -- Unix milliseconds, UTC
    kind    TEXT    NOT NULL,   -- conversation, prompt, mode, skills, tools, mcp, memory, history, day
    detail  TEXT    NOT NULL    -- why the epoch began
) STRICT;
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
, like_id TEXT NOT NULL DEFAULT '', integrity INTEGER NOT NULL DEFAULT 2 CHECK (integrity BETWEEN 0 AND 3)) STRICT;
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
CREATE TABLE memory_change (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    n   INTEGER NOT NULL
) STRICT;
CREATE TABLE tier_lock (
    room         TEXT    PRIMARY KEY,
    conversation INTEGER NOT NULL,
    tier         INTEGER NOT NULL CHECK (tier BETWEEN 1 AND 5),
    window       INTEGER NOT NULL,   -- tokens, when it was locked
    source       TEXT    NOT NULL,   -- of the window
    sure         INTEGER NOT NULL,   -- 0: a guess, which the model's first answer may correct
    model        TEXT    NOT NULL,   -- and its server
    settings     TEXT    NOT NULL,   -- what the owner had set
    locked_at    INTEGER NOT NULL,   -- Unix milliseconds, UTC
    reason       TEXT    NOT NULL,   -- which boundary it was
    candidate    INTEGER NOT NULL DEFAULT 0,   -- a higher tier that the window has been large enough for; 0 = none
    seen         INTEGER NOT NULL DEFAULT 0,   -- how often in a row
    seen_at      INTEGER NOT NULL DEFAULT 0    -- the last time, Unix milliseconds, UTC
) STRICT;
CREATE TABLE model_window (
    model   TEXT    PRIMARY KEY,   -- and its server
    tokens  INTEGER NOT NULL,
    source  TEXT    NOT NULL,
    seen_at INTEGER NOT NULL       -- Unix milliseconds, UTC
) STRICT;
CREATE TABLE mode_switch (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    room      TEXT    NOT NULL,
    at        INTEGER NOT NULL,   -- Unix milliseconds, UTC
    from_mode TEXT    NOT NULL,
    to_mode   TEXT    NOT NULL,
    who       TEXT    NOT NULL,   -- who said !mode; empty = it changed by itself
    why       TEXT    NOT NULL
) STRICT;
CREATE TABLE goal (
    id          TEXT PRIMARY KEY,                -- goal_ and eight characters
    room        TEXT    NOT NULL,
    user        TEXT    NOT NULL DEFAULT '',     -- on whose behalf it was made
    description TEXT    NOT NULL,
    priority    TEXT    NOT NULL CHECK (priority IN ('high', 'medium', 'low')),
    status      TEXT    NOT NULL CHECK (status IN ('active', 'paused', 'completed', 'abandoned')),
    summary     TEXT    NOT NULL DEFAULT '',     -- how it ended
    next        TEXT    NOT NULL DEFAULT '',     -- what is to be done next
    created     INTEGER NOT NULL,                -- Unix milliseconds, UTC, like every time here
    updated     INTEGER NOT NULL,
    ended       INTEGER
, integrity INTEGER NOT NULL DEFAULT 2, readers TEXT NOT NULL DEFAULT '') STRICT;
CREATE TABLE goal_checkpoint (
    goal        TEXT    NOT NULL REFERENCES goal (id),
    n           INTEGER NOT NULL,                -- counts from 1 in each goal
    description TEXT    NOT NULL,
    status      TEXT    NOT NULL CHECK (status IN ('pending', 'in progress', 'done')),
    changed     INTEGER NOT NULL,
    PRIMARY KEY (goal, n)
) STRICT;
CREATE TABLE goal_decision (
    goal        TEXT    NOT NULL REFERENCES goal (id),
    n           INTEGER NOT NULL,
    description TEXT    NOT NULL,
    rationale   TEXT    NOT NULL DEFAULT '',
    locked      INTEGER NOT NULL DEFAULT 0 CHECK (locked IN (0, 1)),
    PRIMARY KEY (goal, n)
) STRICT;
CREATE TABLE goal_artifact (
    goal   TEXT    NOT NULL REFERENCES goal (id),
    n      INTEGER NOT NULL,
    type   TEXT    NOT NULL CHECK (type IN ('file', 'test', 'documentation', 'configuration')),
    action TEXT    NOT NULL CHECK (action IN ('created', 'modified', 'deleted')),
    path   TEXT    NOT NULL,
    PRIMARY KEY (goal, n),
    UNIQUE (goal, path)
) STRICT;
CREATE TABLE goal_event (
    id     INTEGER PRIMARY KEY,
    goal   TEXT    NOT NULL REFERENCES goal (id),
    at     INTEGER NOT NULL,
    kind   TEXT    NOT NULL,
    detail TEXT    NOT NULL DEFAULT ''
) STRICT;
CREATE TABLE goal_heard (
    room    TEXT PRIMARY KEY,
    message INTEGER NOT NULL
) STRICT;
CREATE TABLE memory_file (
    scope   TEXT    PRIMARY KEY,
    changes INTEGER NOT NULL DEFAULT 0,
    name    TEXT    NOT NULL DEFAULT '',   -- relative to the data folder; empty = there was none yet
    hash    TEXT    NOT NULL DEFAULT '',   -- of its bytes
    lines   TEXT    NOT NULL DEFAULT ''    -- the entries of its lines, in order, separated by spaces
) STRICT;
CREATE TABLE memory_forgotten (
    hash   TEXT    PRIMARY KEY,            -- of salt, scope and normalised text
    at     INTEGER NOT NULL,
    purged INTEGER NOT NULL DEFAULT 0      -- 1 = no copy is left in the database's own files
) STRICT;
CREATE TABLE memory_salt (
    one  INTEGER PRIMARY KEY CHECK (one = 1),
    salt BLOB    NOT NULL
) STRICT;
CREATE TABLE redaction (
    event TEXT PRIMARY KEY
) STRICT;
CREATE TABLE memory_turn (
    n            INTEGER PRIMARY KEY AUTOINCREMENT,    -- never reused: the index knows a turn by it
    scope        TEXT    NOT NULL,
    event        TEXT    NOT NULL DEFAULT '',
    sender       TEXT    NOT NULL DEFAULT '',
    at           INTEGER NOT NULL,                     -- Unix milliseconds, UTC
    conversation TEXT    NOT NULL DEFAULT '',
    seq          INTEGER NOT NULL DEFAULT 0,
    text         TEXT    NOT NULL
, integrity INTEGER NOT NULL DEFAULT 2 CHECK (integrity BETWEEN 0 AND 3)) STRICT;
CREATE TABLE index_scope (
    no    INTEGER PRIMARY KEY,
    scope TEXT    NOT NULL UNIQUE,
    docs  INTEGER NOT NULL DEFAULT 0,                  -- documents in it, and their words:
    words INTEGER NOT NULL DEFAULT 0                   -- what is rare and what is long
) STRICT;
CREATE TABLE index_doc (
    row     INTEGER PRIMARY KEY,                       -- of index_fts: kind, scope and number in one (fts.go)
    doc     INTEGER NOT NULL UNIQUE,                   -- memory.n, or minus memory_turn.n
    rev     INTEGER NOT NULL,                          -- of the entry, as indexed
    place   INTEGER NOT NULL,                          -- its scope and conversation; 0 = none
    seq     INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    session INTEGER NOT NULL,                          -- place and day
    chars   INTEGER NOT NULL,
    words   INTEGER NOT NULL,
    marks   INTEGER NOT NULL                           -- 1 it asks, 2 it tells a time
) STRICT;
CREATE TABLE index_term (
    scope INTEGER NOT NULL,
    term  TEXT    NOT NULL,
    df    INTEGER NOT NULL,
    PRIMARY KEY (scope, term)
) STRICT, WITHOUT ROWID;
CREATE VIRTUAL TABLE index_fts USING fts5(body, near, day, subject, tokenize = "unicode61 remove_diacritics 0");
CREATE TABLE takeback (
    event_id TEXT PRIMARY KEY,
    room     TEXT    NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    next_at  INTEGER NOT NULL DEFAULT 0   -- Unix milliseconds, UTC
, reason TEXT NOT NULL DEFAULT 'sent twice') STRICT;
CREATE TABLE steering (
    room  TEXT PRIMARY KEY,
    state TEXT NOT NULL       -- JSON; what cannot be read is counted anew
) STRICT;
CREATE TABLE memory_space (
    no    INTEGER PRIMARY KEY,
    model TEXT    NOT NULL,
    dim   INTEGER NOT NULL,                -- numbers of a vector
    UNIQUE (model, dim)
) STRICT;
CREATE TABLE memory_vector (
    space INTEGER NOT NULL REFERENCES memory_space (no),
    hash  TEXT    NOT NULL,                -- memory.hash
    vec   BLOB    NOT NULL,                -- a signed byte per number, of which only the direction counts; empty = the model makes nothing of this text
    UNIQUE (space, hash)
) STRICT;
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
, undone INTEGER NOT NULL DEFAULT 0, integrity INTEGER NOT NULL DEFAULT 2 CHECK (integrity BETWEEN 0 AND 3)) STRICT;
CREATE TABLE memory_changes (
    scope TEXT    PRIMARY KEY,
    n     INTEGER NOT NULL
) STRICT;
CREATE TABLE memory_undo (
    batch TEXT    PRIMARY KEY,   -- what is taken back
    by    TEXT    NOT NULL,      -- the batch of the operations that do so
    actor TEXT    NOT NULL,
    total INTEGER NOT NULL,      -- operations
    next  INTEGER NOT NULL       -- those before this one are still to be taken back; 0: the index is still to be merged
) STRICT;
CREATE TABLE memory_turn_change (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    n   INTEGER NOT NULL UNIQUE            -- memory_turn.n
) STRICT;
CREATE TABLE dream_run (
    id     TEXT    PRIMARY KEY,
    at     INTEGER NOT NULL,
    ended  INTEGER NOT NULL DEFAULT 0,     -- 0 = it is at work, or was cut off
    state  TEXT    NOT NULL CHECK (state IN ('planning', 'applied', 'nothing', 'failed', 'undone')),
    batch  TEXT    NOT NULL DEFAULT '',    -- of memory_op, where what it did stands
    mark   INTEGER NOT NULL DEFAULT 0,     -- what was changed before it has been compared with all
    calls  INTEGER NOT NULL DEFAULT 0,
    tokens INTEGER NOT NULL DEFAULT 0,
    reason TEXT    NOT NULL DEFAULT ''
, harvest INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE dream_op (
    run    TEXT    NOT NULL,
    kind   TEXT    NOT NULL CHECK (kind IN ('merge', 'group', 'supersede', 'archive', 'question')),
    entry  TEXT    NOT NULL,
    by_id  TEXT    NOT NULL DEFAULT '',
    why    TEXT    NOT NULL DEFAULT '',
    undone INTEGER NOT NULL DEFAULT 0      -- 1 = taken back, so it is not done again
) STRICT;
CREATE TABLE dream_seen (
    pair    TEXT    NOT NULL,
    model   TEXT    NOT NULL,
    verdict TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    PRIMARY KEY (pair, model)
) STRICT, WITHOUT ROWID;
CREATE TABLE harvest (
    message INTEGER PRIMARY KEY REFERENCES message (id),
    state   TEXT    NOT NULL DEFAULT 'new' CHECK (state IN ('new', 'done', 'left')), -- left: given up, see reason
    tries   INTEGER NOT NULL DEFAULT 0,   -- that came to nothing because of what was answered
    pos     INTEGER NOT NULL DEFAULT 0,   -- of a long one, so many bytes are read
    at      INTEGER NOT NULL DEFAULT 0,   -- when it was read, or failed first; Unix milliseconds, UTC
    reason  TEXT    NOT NULL DEFAULT ''   -- why it was given up or not read
) STRICT;
CREATE TABLE job_run (
    task     TEXT    NOT NULL REFERENCES task (id) ON DELETE CASCADE,
    due      INTEGER NOT NULL,
    state    TEXT    NOT NULL CHECK (state IN ('claimed', 'done', 'failed', 'skipped')),
    attempt  INTEGER NOT NULL DEFAULT 1,
    claimed  INTEGER NOT NULL,
    retry_at INTEGER,                            -- claimed, and waiting to be tried again
    ended    INTEGER,
    result   TEXT    NOT NULL DEFAULT '',        -- what was answered, or why not
    notice   INTEGER NOT NULL DEFAULT 0,         -- that the task was paused: 1 = to be said, 2 = said
    PRIMARY KEY (task, due)
) STRICT, WITHOUT ROWID;
CREATE TABLE sub_session (
    id         TEXT PRIMARY KEY,                  -- sub_ and eight characters
    workflow   TEXT    NOT NULL,                  -- the first of those that depend on each other
    parent     TEXT    NOT NULL DEFAULT '',       -- the sub-session that asked for it; empty = the room did
    depth      INTEGER NOT NULL,                  -- 1: the room asked for it
    room       TEXT    NOT NULL,
    user       TEXT    NOT NULL DEFAULT '',       -- on whose behalf it was made
    private    INTEGER NOT NULL CHECK (private IN (0, 1)), -- nobody else read the room then
    asked      TEXT    NOT NULL DEFAULT '',       -- the message or event that was worked on then
    objective  TEXT    NOT NULL,
    context    TEXT    NOT NULL DEFAULT '',
    mode       TEXT    NOT NULL CHECK (mode IN ('minimal', 'full', 'base_only', 'none')),
    tools      TEXT    NOT NULL,                  -- JSON array of names
    timeout    INTEGER NOT NULL,                  -- milliseconds, of work
    due        INTEGER NOT NULL DEFAULT 0,        -- not before this; Unix milliseconds, UTC, like every time here
    status     TEXT    NOT NULL CHECK (status IN ('pending', 'running', 'waiting', 'completed', 'failed', 'cancelled')),
    result     TEXT    NOT NULL DEFAULT '',
    reason     TEXT    NOT NULL DEFAULT '',       -- why it failed or was cancelled
    continued  INTEGER NOT NULL DEFAULT 0,        -- how often its time was up
    rounds     INTEGER NOT NULL DEFAULT 0,        -- requests to the model
    tokens     INTEGER NOT NULL DEFAULT 0,        -- in these
    faults     INTEGER NOT NULL DEFAULT 0,        -- of these that failed
    event      TEXT    NOT NULL DEFAULT '',       -- the system event that tells of its end; may tell of several
    tries      INTEGER NOT NULL DEFAULT 0,        -- of that event
    created    INTEGER NOT NULL,
    started    INTEGER NOT NULL DEFAULT 0,
    ended      INTEGER NOT NULL DEFAULT 0,
    told       INTEGER NOT NULL DEFAULT 0         -- when whoever asked for it had its end; 0 = not yet
, timed_out INTEGER NOT NULL DEFAULT 0 CHECK (timed_out IN (0, 1)), integrity INTEGER NOT NULL DEFAULT 2 CHECK (integrity BETWEEN 0 AND 3)) STRICT;
CREATE TABLE sub_session_need (
    node  TEXT NOT NULL REFERENCES sub_session (id),
    needs TEXT NOT NULL REFERENCES sub_session (id),
    PRIMARY KEY (node, needs)
) STRICT;
CREATE TABLE model_count (
    model   TEXT PRIMARY KEY,   -- as configured
    factor  REAL    NOT NULL,
    answers INTEGER NOT NULL,   -- that it was learned from
    at      INTEGER NOT NULL    -- Unix milliseconds, UTC
) STRICT;
CREATE TABLE compaction_before (
    compaction INTEGER NOT NULL,
    message    INTEGER NOT NULL,
    short      TEXT    NOT NULL,
    PRIMARY KEY (compaction, message)
) STRICT, WITHOUT ROWID;
CREATE TABLE room_setting (
    room   TEXT    NOT NULL,
    name   TEXT    NOT NULL,
    value  TEXT    NOT NULL,
    person TEXT    NOT NULL,                     -- who set it
    at     INTEGER NOT NULL,                     -- Unix milliseconds
    PRIMARY KEY (room, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE answered (
    seq      INTEGER PRIMARY KEY AUTOINCREMENT,
    question TEXT NOT NULL,
    reply    TEXT NOT NULL,
    UNIQUE (question, reply)
) STRICT;
CREATE TABLE memory_again (
    entry TEXT NOT NULL,
    event TEXT NOT NULL,
    at    INTEGER NOT NULL,                      -- Unix milliseconds, UTC
    PRIMARY KEY (entry, event)
) STRICT, WITHOUT ROWID;
CREATE TABLE matrix_thread (
    room     TEXT    NOT NULL,
    root     TEXT    NOT NULL,
    newest   TEXT    NOT NULL,             -- the newest event that was seen in it
    spoke_at INTEGER NOT NULL DEFAULT 0,   -- when we last said something there; Unix milliseconds, 0 = never
    PRIMARY KEY (room, root)
) STRICT, WITHOUT ROWID;
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
CREATE TABLE dream_chore (
    id     INTEGER PRIMARY KEY,
    run    TEXT    NOT NULL,
    kind   TEXT    NOT NULL,              -- complete, priority, rephrase, merge, pause; retire, condense; propose
    item   TEXT    NOT NULL,              -- a task's id, or the name of a skill
    other  TEXT    NOT NULL DEFAULT '',   -- what it was merged into, or is like
    why    TEXT    NOT NULL DEFAULT '',
    before TEXT    NOT NULL DEFAULT '',   -- of a task: its row as JSON; of a skill: what its file was
    after  TEXT    NOT NULL DEFAULT '',
    state  TEXT    NOT NULL CHECK (state IN ('due', 'done', 'back', 'undone', 'left')), -- due, back: a file is still to be moved
    at     INTEGER NOT NULL               -- Unix milliseconds, UTC
) STRICT;
CREATE TABLE sub_session_file (
    node TEXT    NOT NULL REFERENCES sub_session (id), -- who wrote it
    name TEXT    NOT NULL,
    text TEXT    NOT NULL,
    at   INTEGER NOT NULL,                             -- Unix milliseconds, UTC
    PRIMARY KEY (node, name)
) STRICT;
CREATE TABLE memory_question (
    id     INTEGER PRIMARY KEY AUTOINCREMENT, -- what people call it
    run    TEXT    NOT NULL,                  -- the dream that came upon it
    scope  TEXT    NOT NULL,
    first  TEXT    NOT NULL,                  -- the older one
    second TEXT    NOT NULL,
    why    TEXT    NOT NULL,
    both   INTEGER NOT NULL DEFAULT 0,        -- 1: a person said that both hold
    event  TEXT    NOT NULL DEFAULT '',       -- the notice that asks it; empty = it waits to be asked
    room   TEXT    NOT NULL DEFAULT '',       -- where
    asked  INTEGER NOT NULL DEFAULT 0         -- when; 0 = it is not said yet
) STRICT;
CREATE TABLE matrix_tombstone (
    room        TEXT PRIMARY KEY,
    replacement TEXT NOT NULL,
    sender      TEXT NOT NULL,
    empty       INTEGER NOT NULL CHECK (empty IN (0, 1)), -- 1: nothing was seen of the room before, so there is nothing to move
    state       TEXT NOT NULL CHECK (state IN (
                    'new',         -- whether the replacement names the room as its predecessor is not known
                    'joining',     -- nor here: the replacement is joined to find out
                    'followed',    -- it does
                    'refused'))    -- it does not
) STRICT;
CREATE TABLE dream_room (
    room    TEXT    NOT NULL,
    readers TEXT    NOT NULL,
    model   TEXT    NOT NULL,
    seen    TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    PRIMARY KEY (room, readers)
) STRICT, WITHOUT ROWID;
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
, unproven INTEGER NOT NULL DEFAULT 0 CHECK (unproven IN (0, 1))) STRICT;
INSERT INTO index_fts (index_fts, rank) VALUES ('secure-delete', 0);
INSERT INTO index_fts (index_fts, rank) VALUES ('hashsize', 16777216);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES
    (1, 0, 1), (2, 1, 1), (3, 2, 1), (4, 3, 1), (5, 4, 1), (6, 5, 1), (7, 6, 1), (8, 7, 1), (9, 8, 1), (10, 9, 1), (11, 10, 1), (12, 12, 1), (13, 13, 1), (14, 14, 1), (15, 15, 1), (16, 16, 1), (17, 17, 1), (18, 18, 1), (19, 19, 1), (20, 20, 1), (21, 21, 1), (22, 23, 1), (23, 24, 1), (24, 25, 1), (25, 27, 1), (26, 28, 1), (27, 30, 1), (28, 31, 1), (29, 32, 1), (30, 34, 1), (31, 35, 1), (32, 36, 1), (33, 37, 1), (34, 38, 1), (35, 39, 1), (36, 40, 1), (37, 42, 1), (38, 43, 1), (39, 44, 1), (40, 45, 1), (41, 46, 1), (42, 47, 1), (43, 48, 1), (44, 51, 1), (45, 52, 1), (46, 53, 1), (47, 54, 1), (48, 56, 1), (49, 57, 1), (50, 58, 1), (51, 59, 1), (52, 60, 1), (53, 61, 1), (54, 64, 1), (55, 66, 1), (56, 67, 1), (57, 68, 1), (58, 69, 1);
INSERT INTO room (id, conversation, branch_of, readers) VALUES
    ('!r:b', 3, '', 'private:@ann:b'),
    ('!r:b|$t', 1, '!r:b', 'room:!r:b');
INSERT INTO message (id, room, conversation, role, event_id, sender, header, text, tail, calls, call_id, at, retired, failed, compaction, short, files, quoted, unquoted, integrity, tail_integrity, readers) VALUES
    (1, '!r:b', 3, 'user', '$1', '@ann:b', '10:00', 'Where is the key?', '', '', '', 1000, 0, 0, 0, '', '', '', 0, 3, 2, 'private:@ann:b'),
    (2, '!r:b', 3, 'assistant', '', '', '', 'Under the mat. 茶', '', '[]', '', 2000, 0, 0, 0, 'mat', '', '[{"event": "$0", "text": "it''s"}]', 0, 2, 2, ''),
    (3, '!r:b', 2, 'tool', '', '', '', 'no such file', '', '', 'c1', 500, 1, 1, 1, '', '', '', 0, 2, 2, '');
INSERT INTO task (id, room, user, content, priority, status, schedule, prompt, background, reason, created, updated, completed, next_due, last_run, run_count, scheduled, catch_up, failures, last_result, asked, integrity, readers) VALUES
    ('task_abcdefgh', '!r:b', '@ann:b', 'water the plants', 4, 'active', '{"schedule_type":"daily","at":"09:00"}', 'look', 1, '', 1000, 1000, NULL, 90000, NULL, 0, 1000, 'once', 0, '', '$1', 2, 'private:@ann:b');
INSERT INTO task_change (one, n) VALUES
    (1, 1);
INSERT INTO prompt_epoch (room, conversation, layout, key, prefix, sections, shown, nonce, first_message, since_message, started_at, reason) VALUES
    ('!r:b', 3, 'stable', 'k', 'You are…', '[]', '{}', 'n', 1, 1, 1000, 'conversation');
INSERT INTO matrix_sync (user, device, next_batch, at, failures, problem) VALUES
    ('@bot:b', 'D', 's42', 1000, 0, '');
INSERT INTO matrix_room (id, membership, encrypted, inviter, attempts, next_at, last_event, replaces, moved, direct_with, exposed) VALUES
    ('!r:b', 'joined', 1, '@ann:b', 0, 0, '$1', '', 0, '@ann:b', 0);
INSERT INTO outbox (seq, id, room, kind, text, reply_to, state, drafted, revision, event_id, attempts, next_at, error, created_at, mention, thread, generation, file, poll, closed) VALUES
    (1, 're:$1', '!r:b', 'text', 'Under the mat. 茶', '', 'sent', 0, 0, '$b1', 0, 0, '', 2000, '', '', 0, '', '', 0),
    (2, 're:$2', '!r:b', 'text', 'Half of it', '', 'draft', 0, 0, '', 0, 0, '', 3200, '', '', 0, '', '', 0);
INSERT INTO session (room, person, private, heard_at, think, mode, pin, pin_asked, pin_read, opened) VALUES
    ('!r:b', '@ann:b', 1, 2, 'low', 'planning', 'task_abcdefgh', 0, 0, 0);
INSERT INTO inbox (seq, id, room, sender, sender_name, text, private, sent_at, received_at, state, raw, megolm, tries, next_at, error, thread, reply_to, brought, incomplete, target, branch, change, unproven) VALUES
    (1, '$1', '!r:b', '@ann:b', '', '', 1, 1000, 1001, 'done', '', '', 0, 0, '', '', '', '', 0, '', '', '', 0),
    (2, '$2', '!r:b', '@ann:b', '', 'And now?', 1, 3000, 3001, 'new', '', '', 0, 0, '', '', '', '', 0, '', '', '', 0),
    (3, '$3', '!r:b', '@ann:b', '', '', 0, 3100, 3101, 'utd', '{}', 'session', 0, 0, '', '', '', '', 0, '', '', '', 0);
INSERT INTO prompt_event (id, room, at, kind, detail) VALUES
    (1, '!r:b', 1000, 'conversation', 'it began');
INSERT INTO memory (n, id, scope, text, subject, kind, source, state, by_id, pinned, hash, event, quote, ref, conversation, seq, observed_at, valid_from, valid_to, created_at, updated_at, hits, last_hit, rev, like_id, integrity) VALUES
    (1, 'mem_aaaaaaaaaaaa', 'private:@ann:b', 'The key is under the mat.', 'key', 'fact', 'harvest', 'active', '', 0, 'h1', '$1', '', '', '', 0, 1000, NULL, NULL, 1000, 1000, 0, NULL, 1, '', 3),
    (2, 'mem_bbbbbbbbbbbb', 'private:@ann:b', 'The key is in the door.', '', 'fact', 'file', 'superseded', 'mem_aaaaaaaaaaaa', 0, 'h2', '', '', '', '', 0, 900, NULL, NULL, 900, 1000, 0, NULL, 1, '', 2);
INSERT INTO memory_op (seq, batch, at, actor, op, entry, before, after, undoes) VALUES
    (1, 'b1', 1000, 'harvest', 'add', 'mem_aaaaaaaaaaaa', '', '{}', 0);
INSERT INTO memory_change (one, n) VALUES
    (1, 0);
INSERT INTO tier_lock (room, conversation, tier, window, source, sure, model, settings, locked_at, reason, candidate, seen, seen_at) VALUES
    ('!r:b', 3, 2, 8192, 'server', 1, 'm', '', 1000, 'conversation', 0, 0, 0);
INSERT INTO model_window (model, tokens, source, seen_at) VALUES
    ('m', 8192, 'server', 1000);
INSERT INTO mode_switch (id, room, at, from_mode, to_mode, who, why) VALUES
    (1, '!r:b', 1000, 'assistant', 'planning', '@ann:b', 'asked');
INSERT INTO goal (id, room, user, description, priority, status, summary, next, created, updated, ended, integrity, readers) VALUES
    ('goal_abcdefgh', '!r:b', '', 'a garden', 'low', 'active', '', '', 1000, 1000, NULL, 2, 'private:@ann:b');
INSERT INTO goal_checkpoint (goal, n, description, status, changed) VALUES
    ('goal_abcdefgh', 1, 'seeds', 'done', 1100);
INSERT INTO goal_decision (goal, n, description, rationale, locked) VALUES
    ('goal_abcdefgh', 1, 'no roses', '', 1);
INSERT INTO goal_artifact (goal, n, type, action, path) VALUES
    ('goal_abcdefgh', 1, 'file', 'created', 'plan.md');
INSERT INTO goal_event (id, goal, at, kind, detail) VALUES
    (1, 'goal_abcdefgh', 1000, 'created', '');
INSERT INTO goal_heard (room, message) VALUES
    ('!r:b', 2);
INSERT INTO memory_file (scope, changes, name, hash, lines) VALUES
    ('private:@ann:b', 4, 'MEMORIES.txt', 'f', 'mem_aaaaaaaaaaaa');
INSERT INTO memory_forgotten (hash, at, purged) VALUES
    ('gone', 1000, 0);
INSERT INTO memory_salt (one, salt) VALUES
    (1, X'213DF7387422E06F3D3E750374930B51E722BED3285F2DEE37C5961C267D6CB6');
INSERT INTO redaction (event) VALUES
    ('$7');
INSERT INTO memory_turn (n, scope, event, sender, at, conversation, seq, text, integrity) VALUES
    (1, 'private:@ann:b', '$1', '@ann:b', 1000, '3', 1, 'Where is the key?', 2);
INSERT INTO index_scope (no, scope, docs, words) VALUES
    (1, 'private:@ann:b', 1, 5);
INSERT INTO index_doc (row, doc, rev, place, seq, at, session, chars, words, marks) VALUES
    (1, 1, 1, 0, 0, 1000, 0, 25, 5, 0);
INSERT INTO index_term (scope, term, df) VALUES
    (1, 'key', 1);
INSERT INTO index_fts (rowid, body, near, day, subject) VALUES
    (1, 'key under mat', '', '', 'key');
INSERT INTO takeback (event_id, room, attempts, next_at, reason) VALUES
    ('$b0', '!r:b', 0, 0, 'sent twice');
INSERT INTO steering (room, state) VALUES
    ('!r:b', '{}');
INSERT INTO memory_space (no, model, dim) VALUES
    (1, 'e', 4);
INSERT INTO memory_vector (space, hash, vec) VALUES
    (1, 'h1', X'01FF7F80');
INSERT INTO compaction (id, room, conversation, from_message, to_message, messages, shortened, level, reason, summary, details, tokens_before, tokens_after, at, undone, integrity) VALUES
    (1, '!r:b', 2, 3, 3, 1, 0, 'summary', 'full', 'They looked for a file.', '', 900, 90, 600, 0, 2);
INSERT INTO memory_changes (scope, n) VALUES
    ('private:@ann:b', 2);
INSERT INTO memory_undo (batch, by, actor, total, next) VALUES
    ('b0', 'b2', '@ann:b', 1, 0);
INSERT INTO memory_turn_change (seq, n) VALUES
    (1, 1);
INSERT INTO dream_run (id, at, ended, state, batch, mark, calls, tokens, reason, harvest) VALUES
    ('run_1', 1000, 1100, 'applied', '', 1000, 0, 0, '', 2);
INSERT INTO dream_op (run, kind, entry, by_id, why, undone) VALUES
    ('run_1', 'supersede', 'mem_bbbbbbbbbbbb', 'mem_aaaaaaaaaaaa', '', 0);
INSERT INTO dream_seen (pair, model, verdict, at) VALUES
    ('p', 'm', 'same', 1000);
INSERT INTO harvest (message, state, tries, pos, at, reason) VALUES
    (1, 'new', 0, 0, 0, '');
INSERT INTO job_run (task, due, state, attempt, claimed, retry_at, ended, result, notice) VALUES
    ('task_abcdefgh', 80000, 'claimed', 1, 80001, NULL, NULL, '', 0);
INSERT INTO sub_session (id, workflow, parent, depth, room, user, private, asked, objective, context, mode, tools, timeout, due, status, result, reason, continued, rounds, tokens, faults, event, tries, created, started, ended, told, timed_out, integrity) VALUES
    ('sub_abcdefgh', 'sub_abcdefgh', '', 1, '!r:b', '', 1, '', 'read', '', 'minimal', '[]', 60000, 0, 'completed', '', '', 0, 0, 0, 0, '', 0, 1000, 0, 0, 0, 0, 2),
    ('sub_hgfedcba', 'sub_abcdefgh', '', 1, '!r:b', '', 1, '', 'write', '', 'minimal', '[]', 60000, 0, 'pending', '', '', 0, 0, 0, 0, '', 0, 1000, 0, 0, 0, 0, 2);
INSERT INTO sub_session_need (node, needs) VALUES
    ('sub_hgfedcba', 'sub_abcdefgh');
INSERT INTO model_count (model, factor, answers, at) VALUES
    ('m', 1.25, 7, 1000);
INSERT INTO compaction_before (compaction, message, short) VALUES
    (1, 3, '');
INSERT INTO room_setting (room, name, value, person, at) VALUES
    ('!r:b', 'threads', 'on', '@ann:b', 1000);
INSERT INTO answered (seq, question, reply) VALUES
    (1, '$1', 're:$1');
INSERT INTO memory_again (entry, event, at) VALUES
    ('mem_aaaaaaaaaaaa', '$2', 3000);
INSERT INTO matrix_thread (room, root, newest, spoke_at) VALUES
    ('!r:b', '$t', '$t2', 0);
INSERT INTO heard (seq, event, room, thread, sender, name, text, at, heard_at, given) VALUES
    (1, '$8', '!g:b', '', '@bob:b', '', 'nice weather', 1000, 1001, 0);
INSERT INTO pace (room, sender, last, last_at, answered_at, hasty, turns, words, held, held_until, holds) VALUES
    ('!g:b', '@bob:b', '$9', 0, 0, 0, '', '', '', 0, 0);
INSERT INTO dream_chore (id, run, kind, item, other, why, before, after, state, at) VALUES
    (1, 'run_1', 'pause', 'task_abcdefgh', '', '', '', '', 'done', 1000);
INSERT INTO sub_session_file (node, name, text, at) VALUES
    ('sub_abcdefgh', 'notes', 'read it', 1000);
INSERT INTO memory_question (id, run, scope, first, second, why, both, event, room, asked) VALUES
    (1, 'run_1', 'private:@ann:b', 'mem_bbbbbbbbbbbb', 'mem_aaaaaaaaaaaa', 'both name a place', 0, '', '', 0);
INSERT INTO matrix_tombstone (room, replacement, sender, empty, state) VALUES
    ('!old:b', '!r:b', '@ann:b', 0, 'followed');
INSERT INTO dream_room (room, readers, model, seen, at) VALUES
    ('!r:b', 'private:@ann:b', 'm', 's', 1000);
INSERT INTO approval (code, room, talk, conversation, event, asker, readers, quote, acts, seen, mark, state, wide, answered_by, created, expires, answered, unproven) VALUES
    ('k7', '!r:b', '!r:b', 3, '$1', '@ann:b', 'private:@ann:b', '', '[]', '', '', 'done', 0, '', 1000, 0, 0, 0);
CREATE INDEX message_by_conversation ON message (room, conversation, id) WHERE retired = 0;
CREATE UNIQUE INDEX message_by_event ON message (room, event_id) WHERE event_id <> '';
CREATE INDEX task_open ON task (room, priority, created, id) WHERE status IN ('active', 'paused');
CREATE INDEX task_by_status ON task (room, status, priority, created, id);
CREATE INDEX task_due ON task (next_due) WHERE status = 'active' AND next_due IS NOT NULL;
CREATE TRIGGER task_added AFTER INSERT ON task BEGIN UPDATE task_change SET n = n + 1; END;
CREATE TRIGGER task_changed AFTER UPDATE ON task BEGIN UPDATE task_change SET n = n + 1; END;
CREATE TRIGGER task_removed AFTER DELETE ON task BEGIN UPDATE task_change SET n = n + 1; END;
CREATE INDEX matrix_room_to_do ON matrix_room (next_at) WHERE membership IN ('invited', 'refused');
CREATE INDEX outbox_to_do ON outbox (room, seq) WHERE state = 'pending';
CREATE INDEX outbox_by_event ON outbox (event_id) WHERE event_id <> '';
CREATE INDEX inbox_to_do ON inbox (room, seq) WHERE state = 'new';
CREATE INDEX inbox_unread ON inbox (next_at) WHERE state IN ('utd', 'failed');
CREATE INDEX prompt_event_room ON prompt_event (room, id);
CREATE INDEX memory_by_scope ON memory (scope, state, n);
CREATE INDEX memory_by_hash ON memory (scope, hash) WHERE state = 'active';
CREATE INDEX memory_by_conversation ON memory (conversation, seq) WHERE conversation <> '';
CREATE INDEX memory_by_ref ON memory (ref) WHERE ref <> '';
CREATE INDEX memory_op_by_entry ON memory_op (entry, seq);
CREATE INDEX memory_op_by_batch ON memory_op (batch);
CREATE INDEX mode_switch_room ON mode_switch (room, id);
CREATE INDEX goal_by_room ON goal (room, updated);
CREATE TRIGGER goal_decision_stays BEFORE UPDATE ON goal_decision WHEN OLD.locked = 1
BEGIN SELECT RAISE(ABORT, 'a locked decision never changes'); END;
CREATE TRIGGER goal_decision_kept BEFORE DELETE ON goal_decision WHEN OLD.locked = 1
BEGIN SELECT RAISE(ABORT, 'a locked decision never goes'); END;
CREATE INDEX goal_event_by_goal ON goal_event (goal, id);
CREATE INDEX memory_put_away ON memory (scope, hash) WHERE state = 'archived';
CREATE INDEX memory_by_event ON memory (event) WHERE event <> '';
CREATE INDEX memory_by_successor ON memory (by_id) WHERE by_id <> '';
CREATE INDEX memory_op_by_actor ON memory_op (actor, seq);
CREATE INDEX memory_op_by_undone ON memory_op (undoes) WHERE undoes <> 0;
CREATE UNIQUE INDEX memory_turn_by_event ON memory_turn (scope, event) WHERE event <> '';
CREATE INDEX memory_turn_by_conversation ON memory_turn (scope, conversation, seq);
CREATE INDEX index_doc_by_place ON index_doc (place, seq, doc) WHERE place <> 0;
CREATE INDEX compaction_room ON compaction (room, conversation, id);
CREATE INDEX memory_by_like ON memory (like_id) WHERE like_id <> '';
CREATE TRIGGER memory_added AFTER INSERT ON memory WHEN NEW.conversation = '' BEGIN
    UPDATE memory_changes SET n = n + 1 WHERE scope = NEW.scope;
    INSERT INTO memory_changes (scope, n) SELECT NEW.scope, 1 WHERE NOT EXISTS (SELECT 1 FROM memory_changes WHERE scope = NEW.scope);
END;
CREATE TRIGGER memory_changed AFTER UPDATE OF scope, text, subject, kind, source, state, by_id, pinned, observed_at, valid_from, valid_to, rev ON memory
WHEN OLD.conversation = '' BEGIN
    UPDATE memory_changes SET n = n + 1 WHERE scope IN (OLD.scope, NEW.scope);
    INSERT INTO memory_changes (scope, n) SELECT NEW.scope, 1 WHERE NOT EXISTS (SELECT 1 FROM memory_changes WHERE scope = NEW.scope);
    INSERT INTO memory_changes (scope, n) SELECT OLD.scope, 1 WHERE NOT EXISTS (SELECT 1 FROM memory_changes WHERE scope = OLD.scope);
END;
CREATE TRIGGER memory_removed AFTER DELETE ON memory WHEN OLD.conversation = '' BEGIN
    UPDATE memory_changes SET n = n + 1 WHERE scope = OLD.scope;
    INSERT INTO memory_changes (scope, n) SELECT OLD.scope, 1 WHERE NOT EXISTS (SELECT 1 FROM memory_changes WHERE scope = OLD.scope);
END;
CREATE INDEX memory_shown ON memory (scope, state, conversation, n) WHERE state = 'active' AND conversation = '';
CREATE TRIGGER memory_turn_added AFTER INSERT ON memory_turn BEGIN
    DELETE FROM memory_turn_change WHERE n = new.n; -- no OR REPLACE: the outer statement's way with conflicts would hold
    INSERT INTO memory_turn_change (n) VALUES (new.n);
END;
CREATE INDEX dream_op_by_run ON dream_op (run);
CREATE INDEX dream_op_by_entry ON dream_op (entry, by_id);
CREATE INDEX harvest_new ON harvest (message) WHERE state = 'new';
CREATE INDEX harvest_done ON harvest (at) WHERE state = 'done';
CREATE TRIGGER message_to_harvest AFTER INSERT ON message WHEN NEW.role = 'user' AND NEW.event_id <> '' AND NEW.sender <> '' BEGIN
    INSERT INTO harvest (message) VALUES (NEW.id);
END;
CREATE INDEX job_open ON job_run (due) WHERE state = 'claimed';
CREATE INDEX job_notice ON job_run (due) WHERE notice = 1;
CREATE TRIGGER task_rescheduled AFTER UPDATE OF scheduled ON task WHEN new.scheduled IS NOT old.scheduled BEGIN
    UPDATE job_run SET state = 'skipped', retry_at = NULL, ended = new.updated, result = 'the schedule was changed'
        WHERE task = new.id AND state = 'claimed' AND retry_at IS NOT NULL;
END;
CREATE INDEX sub_session_left ON sub_session (status, created) WHERE told = 0;
CREATE INDEX sub_session_by_room ON sub_session (room, created);
CREATE INDEX sub_session_by_event ON sub_session (event) WHERE event <> '';
CREATE INDEX sub_session_by_parent ON sub_session (parent) WHERE parent <> '';
CREATE INDEX sub_session_needed ON sub_session_need (needs);
CREATE INDEX inbox_by_target ON inbox (target) WHERE target <> '';
CREATE INDEX answered_by_reply ON answered (reply);
CREATE INDEX memory_again_by_event ON memory_again (event);
CREATE INDEX room_branches ON room (branch_of) WHERE branch_of <> '';
CREATE INDEX heard_by_room ON heard (room, seq);
CREATE INDEX dream_chore_by_run ON dream_chore (run);
CREATE INDEX dream_chore_by_item ON dream_chore (item, kind);
CREATE INDEX dream_chore_open ON dream_chore (state) WHERE state IN ('due', 'back');
CREATE INDEX task_by_asked ON task (asked) WHERE asked <> '';
CREATE UNIQUE INDEX memory_question_pair ON memory_question (first, second);
CREATE INDEX memory_question_by_event ON memory_question (event) WHERE event <> '';
CREATE INDEX matrix_tombstone_open ON matrix_tombstone (room) WHERE state IN ('new', 'joining');
CREATE UNIQUE INDEX goal_active ON goal (room, readers) WHERE status = 'active';
CREATE INDEX approval_by_event ON approval (room, event);
CREATE INDEX approval_by_state ON approval (state) WHERE state IN ('gathering', 'open', 'approved');
CREATE INDEX approval_granted ON approval (talk, conversation) WHERE wide = 1;
CREATE TRIGGER memory_turn_changed AFTER UPDATE ON memory_turn BEGIN
    DELETE FROM memory_turn_change WHERE n = new.n;
    INSERT INTO memory_turn_change (n) VALUES (new.n);
END;
CREATE TRIGGER memory_turn_removed AFTER DELETE ON memory_turn BEGIN
    DELETE FROM memory_turn_change WHERE n = old.n;
    INSERT INTO memory_turn_change (n) VALUES (old.n);
END;

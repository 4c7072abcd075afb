-- +goose Up
-- What became of the sections of the newest requests, while the inspector is on. Package prompt.
CREATE TABLE prompt_report (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    room    TEXT    NOT NULL, -- the conversation, as in message
    message INTEGER NOT NULL, -- the newest message in the request
    at      INTEGER NOT NULL,
    report  TEXT    NOT NULL  -- JSON; it holds no text of people
) STRICT;
CREATE INDEX prompt_report_by_room ON prompt_report (room, id);

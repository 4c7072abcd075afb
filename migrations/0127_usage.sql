-- +goose Up
-- Tokens by day, model and person, kept for 90 days. Package usage.
CREATE TABLE usage (
    day       TEXT    NOT NULL, -- YYYY-MM-DD in the configured time zone
    model     TEXT    NOT NULL, -- its configured name
    person    TEXT    NOT NULL, -- for whom it was asked; '' = the program's own work
    tokens    INTEGER NOT NULL, -- of requests and answers
    estimated INTEGER NOT NULL, -- part of tokens that no server counted
    PRIMARY KEY (day, model, person)
) STRICT, WITHOUT ROWID;

-- Who was told on a day that a limit is nearly reached.
CREATE TABLE usage_warning (
    day    TEXT    NOT NULL,
    model  TEXT    NOT NULL, -- whose limit; '' = the person's
    person TEXT    NOT NULL, -- who was told
    at     INTEGER NOT NULL, -- milliseconds
    PRIMARY KEY (day, model, person)
) STRICT, WITHOUT ROWID;

-- +goose Up
-- What was noticed of how a person likes to be answered in the direct chat. Package manner. A row is
-- one observation, so that a message counts once and its rows go with it.
CREATE TABLE manner (
    event  TEXT    NOT NULL, -- the message or reaction
    key    TEXT    NOT NULL,
    value  TEXT    NOT NULL,
    person TEXT    NOT NULL, -- Matrix id
    said   INTEGER NOT NULL, -- 1: wished for in words; 0: seen in what the person did
    at     INTEGER NOT NULL, -- seconds
    quote  TEXT    NOT NULL, -- the beginning of the message
    PRIMARY KEY (event, key, value)
) STRICT, WITHOUT ROWID;
CREATE INDEX manner_by_person ON manner (person, at);

-- +goose Up
-- What people set for a room. A missing row stands for the default. Package settings.
CREATE TABLE room_setting (
    room   TEXT    NOT NULL,
    name   TEXT    NOT NULL,
    value  TEXT    NOT NULL,
    person TEXT    NOT NULL, -- who set it
    at     INTEGER NOT NULL,
    PRIMARY KEY (room, name)
) STRICT, WITHOUT ROWID;

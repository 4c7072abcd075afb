-- +goose Up
-- What a session must know of its room to build a prompt while nobody is talking.
CREATE TABLE session (
    room      TEXT PRIMARY KEY,
    person    TEXT NOT NULL,             -- who wrote last
    private   INTEGER NOT NULL,          -- 1: a direct chat
    heard_at  INTEGER NOT NULL           -- unix seconds of the last message
) STRICT;

-- +goose Up
-- The one session of this client. Keys, room state and the sync position lie in
-- tables that the Matrix library makes.
CREATE TABLE peer_session (
    user_id   TEXT NOT NULL PRIMARY KEY,
    device_id TEXT NOT NULL,
    token     TEXT NOT NULL
) STRICT;

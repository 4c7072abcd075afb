-- +goose Up
-- What a session needs of its room to build a prompt without a new message. Package session.
CREATE TABLE session (
    room            TEXT PRIMARY KEY,
    person          TEXT NOT NULL,             -- who wrote last
    private         INTEGER NOT NULL,          -- 1: a direct chat
    last_message_at INTEGER NOT NULL,          -- Unix seconds of the last message
    public_since    INTEGER NOT NULL DEFAULT 0 -- when the room stopped being a direct chat, in Unix seconds; 0 = it is one, or never was.
                                               -- Older words that are not in message are not quoted to those who read the room now
) STRICT;

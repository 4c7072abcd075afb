-- +goose Up
-- One row per message of a person: whether it was read for what is worth remembering. It
-- comes with the message, and is set to done in the transaction that stores what was learned.
CREATE TABLE harvest (
    message INTEGER PRIMARY KEY REFERENCES message (id),
    state   TEXT    NOT NULL DEFAULT 'new' CHECK (state IN ('new', 'done', 'left')), -- left: given up, see reason
    tries   INTEGER NOT NULL DEFAULT 0,   -- that came to nothing because of what was answered
    pos     INTEGER NOT NULL DEFAULT 0,   -- of a long one, so many bytes are read
    at      INTEGER NOT NULL DEFAULT 0,   -- when it was read, or failed first; Unix milliseconds, UTC
    reason  TEXT    NOT NULL DEFAULT ''   -- why it was given up or not read
) STRICT;
CREATE INDEX harvest_new ON harvest (message) WHERE state = 'new';
CREATE INDEX harvest_done ON harvest (at) WHERE state = 'done';

INSERT INTO harvest (message) SELECT id FROM message WHERE role = 'user' AND event_id <> '' AND sender <> '';

-- +goose StatementBegin
CREATE TRIGGER message_to_harvest AFTER INSERT ON message WHEN NEW.role = 'user' AND NEW.event_id <> '' AND NEW.sender <> '' BEGIN
    INSERT INTO harvest (message) VALUES (NEW.id);
END;
-- +goose StatementEnd

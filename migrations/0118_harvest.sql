-- +goose Up
-- Which messages were read for what is worth remembering. Package harvest.

-- One row per message of a person: whether it was read for what is worth remembering. It is
-- inserted with the message, and set to done in the transaction that stores what was learned.
CREATE TABLE harvest (
    message    INTEGER PRIMARY KEY REFERENCES message (id),
    state      TEXT    NOT NULL DEFAULT 'new' CHECK (state IN ('new', 'done', 'left')), -- left: given up, see reason
    tries      INTEGER NOT NULL DEFAULT 0, -- that failed because of the model's answer
    bytes_read INTEGER NOT NULL DEFAULT 0, -- of a long one, how many bytes are read
    at         INTEGER NOT NULL DEFAULT 0, -- when it was read, or failed first
    reason     TEXT    NOT NULL DEFAULT '' -- why it was given up or not read
) STRICT;
CREATE INDEX harvest_new ON harvest (message) WHERE state = 'new';
CREATE INDEX harvest_done ON harvest (at) WHERE state = 'done';

-- +goose StatementBegin
CREATE TRIGGER message_to_harvest AFTER INSERT ON message WHEN NEW.role = 'user' AND NEW.event_id <> '' AND NEW.sender <> '' BEGIN
    INSERT INTO harvest (message) VALUES (NEW.id);
END;
-- +goose StatementEnd

-- +goose Up
-- For the last indexed message of a conversation, in any scope. Package search.
CREATE INDEX past_message_by_seq ON past_message (conversation, seq);

-- +goose Up
-- Indexes for what is looked up for each message. Packages delivery and matrix/room.

CREATE INDEX outbox_unsent ON outbox (seq) WHERE state = 'pending';
CREATE INDEX outbox_postponed ON outbox (next_at) WHERE state = 'pending' AND next_at > 0;
CREATE INDEX matrix_room_to_move ON matrix_room (id) WHERE replaces <> '' AND moved = 0;

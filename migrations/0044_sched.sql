-- +goose Up
-- A sub-session that failed because its time was up, also when it had gone on.
ALTER TABLE sub_session ADD COLUMN timed_out INTEGER NOT NULL DEFAULT 0 CHECK (timed_out IN (0, 1));

-- What a model read of a room to find out what is worked on, by the newest message of it:
-- of the last request, and of the last one that was answered.
ALTER TABLE session ADD COLUMN pin_asked INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN pin_read INTEGER NOT NULL DEFAULT 0;

-- +goose Up
-- Why a prompt was made anew stands in the log.
DROP TABLE prompt_event;

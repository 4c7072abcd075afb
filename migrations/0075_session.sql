-- +goose Up
-- How fast somebody's messages follow the bot's answers is counted while the program runs.
DROP TABLE pace;
-- Sub-sessions pass on results, and keep no files for one another.
DROP TABLE sub_session_file;
ALTER TABLE sub_session DROP COLUMN workflow;

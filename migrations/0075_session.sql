-- +goose Up
-- How fast somebody's messages follow the bot's answers is counted while the program runs.
DROP TABLE pace;

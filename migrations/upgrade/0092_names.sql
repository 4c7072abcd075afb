-- +goose Up
-- What a person is called in a room stands in the text, where the text is what they do (/me).
ALTER TABLE inbox DROP COLUMN sender_name;
ALTER TABLE heard DROP COLUMN name;

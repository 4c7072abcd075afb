-- +goose Up
-- What has outgrown its cap is put in order by a dream.
DROP TABLE condense;

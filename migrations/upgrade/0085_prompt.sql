-- +goose Up
-- Which notes the model gets follows from the conversation; nothing is counted beside it.
DROP TABLE steering;

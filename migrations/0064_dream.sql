-- +goose Up
-- Who dreams holds a lock of the data folder, which ends with its process.
DROP TABLE dream_lease;

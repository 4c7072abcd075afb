-- +goose Up
-- The position of the client in the sync stream. The token commits together with the inbox
-- rows of the same sync, so that no message is lost or stored twice. Package matrix.
CREATE TABLE matrix_sync (
    user       TEXT    NOT NULL,
    device     TEXT    NOT NULL,            -- a new device starts from the beginning
    next_batch TEXT    NOT NULL,
    at         INTEGER NOT NULL,
    failures   INTEGER NOT NULL DEFAULT 0,  -- syncs that failed since; bot doctor is another process and reads them here
    problem    TEXT    NOT NULL DEFAULT '', -- the error of the newest of them
    PRIMARY KEY (user, device)
) STRICT;

-- +goose Up
-- What the tools last wrote into the folders of data/work. A file whose content has another hash, or
-- that has no row, was made by somebody else and is foreign. Package tool/workspace.
CREATE TABLE work_file (
    folder    TEXT    NOT NULL, -- its name below data/work
    path      TEXT    NOT NULL, -- below the folder, with slashes
    hash      TEXT    NOT NULL, -- SHA-256 of the content, in hex
    integrity INTEGER NOT NULL, -- of the text that caused it, see package trust
    PRIMARY KEY (folder, path)
) WITHOUT ROWID;

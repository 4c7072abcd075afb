-- +goose Up
-- Whose vectors there are. Those of different models, or of different length,
-- cannot be compared.
CREATE TABLE memory_space (
    no    INTEGER PRIMARY KEY,
    model TEXT    NOT NULL,
    dim   INTEGER NOT NULL,                -- numbers of a vector
    UNIQUE (model, dim)
) STRICT;

-- The vectors of texts, each made once however many entries say the same. They can
-- be made again (bot memory reindex), but that may take hours or cost money.
CREATE TABLE memory_vector (
    space INTEGER NOT NULL REFERENCES memory_space (no),
    hash  TEXT    NOT NULL,                -- memory.hash
    vec   BLOB    NOT NULL,                -- a signed byte per number, of which only the direction counts; empty = the model makes nothing of this text
    UNIQUE (space, hash)
) STRICT;

-- +goose Up
-- Embeddings. Package search/vector.

-- The models that made the vectors. Vectors of different models or lengths cannot be compared.
CREATE TABLE embedding_model (
    no    INTEGER PRIMARY KEY,
    model TEXT    NOT NULL,
    dim   INTEGER NOT NULL, -- numbers of a vector
    UNIQUE (model, dim)
) STRICT;

-- The vectors of texts, one per text and model. `bot memory reindex` makes them again, which may
-- take hours or cost money.
CREATE TABLE embedding (
    model INTEGER NOT NULL REFERENCES embedding_model (no),
    hash  TEXT    NOT NULL, -- memory.hash
    vec   BLOB    NOT NULL, -- a signed byte per number, of which only the direction counts; empty = the model has no vector for this text
    UNIQUE (model, hash)
) STRICT;

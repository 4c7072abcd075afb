-- +goose Up
-- Nouns of irregular verbs (flight: fly) have the stem of the verb in the search index. Package text.

DELETE FROM index_doc; -- empty, so it is built anew at the next start

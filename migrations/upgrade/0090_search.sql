-- +goose Up
-- What package search reads of the memories: it indexes them as documents, and knows no more of them.
-- Active ones are found, and superseded and archived ones when the past is asked for.
CREATE VIEW document AS
    SELECT n, id, scope, text, subject, hash, state, conversation, seq, observed_at AS at, rev FROM memory;

-- The changes of documents in their order, by document.id.
CREATE VIEW document_change AS
    SELECT seq, entry AS id FROM memory_op;

-- +goose Up
-- Standing wishes, and answers apart from people's messages, in the search index. Packages search and memory.

DROP VIEW document;
CREATE VIEW document AS
    SELECT n, id, scope, text, subject, kind, hash, state, conversation, seq, observed_at AS at, rev FROM memory;

CREATE INDEX index_doc_wish ON index_doc (row) WHERE flags & 4; -- 4 = a standing wish
DELETE FROM index_doc; -- empty, so it is built anew at the next start

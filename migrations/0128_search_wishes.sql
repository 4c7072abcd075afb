-- +goose Up
-- Standing wishes, and answers apart from people's messages, in the search index. Package search.

CREATE INDEX index_doc_wish ON index_doc (row) WHERE flags & 4; -- 4 = a standing wish
DELETE FROM index_doc; -- empty, so it is built anew at the next start

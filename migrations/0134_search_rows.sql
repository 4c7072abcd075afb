-- +goose Up
-- Row numbers of the search index begin with the scope, and not with the kind. Package search.

DELETE FROM index_doc; -- empty, so it is built anew at the next start

-- +goose Up
-- The vectors of past messages. Like those of entries they can be made again.
CREATE TABLE memory_turn_vector (
    n     INTEGER PRIMARY KEY,             -- memory_turn.n
    space INTEGER NOT NULL REFERENCES memory_space (no),
    vec   BLOB    NOT NULL                 -- as in memory_vector
) STRICT;

-- Which messages were added, changed or taken away, each as it was last: what is in
-- memory follows it.
CREATE TABLE memory_turn_change (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    n   INTEGER NOT NULL UNIQUE            -- memory_turn.n
) STRICT;

-- +goose StatementBegin
CREATE TRIGGER memory_turn_added AFTER INSERT ON memory_turn BEGIN
    DELETE FROM memory_turn_change WHERE n = new.n; -- no OR REPLACE: the outer statement's way with conflicts would hold
    INSERT INTO memory_turn_change (n) VALUES (new.n);
END;
-- +goose StatementEnd

-- Whoever changes a message or takes it back, its vector goes at once.
-- +goose StatementBegin
CREATE TRIGGER memory_turn_changed AFTER UPDATE ON memory_turn BEGIN
    DELETE FROM memory_turn_vector WHERE n = old.n AND old.text <> new.text;
    DELETE FROM memory_turn_change WHERE n = new.n;
    INSERT INTO memory_turn_change (n) VALUES (new.n);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER memory_turn_removed AFTER DELETE ON memory_turn BEGIN
    DELETE FROM memory_turn_vector WHERE n = old.n;
    DELETE FROM memory_turn_change WHERE n = old.n;
    INSERT INTO memory_turn_change (n) VALUES (old.n);
END;
-- +goose StatementEnd

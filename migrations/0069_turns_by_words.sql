-- +goose Up
-- Past messages are found by their words; only memories have vectors.
DROP TRIGGER memory_turn_changed;
DROP TRIGGER memory_turn_removed;
DROP TABLE memory_turn_vector;

-- +goose StatementBegin
CREATE TRIGGER memory_turn_changed AFTER UPDATE ON memory_turn BEGIN
    DELETE FROM memory_turn_change WHERE n = new.n;
    INSERT INTO memory_turn_change (n) VALUES (new.n);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER memory_turn_removed AFTER DELETE ON memory_turn BEGIN
    DELETE FROM memory_turn_change WHERE n = old.n;
    INSERT INTO memory_turn_change (n) VALUES (old.n);
END;
-- +goose StatementEnd

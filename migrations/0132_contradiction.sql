-- +goose Up
-- The memories that contradict each other while no person has decided, each pair in both orders. Package questions.
CREATE VIEW contradiction AS
    SELECT first AS id, second AS other FROM memory_question WHERE both_hold = 0
    UNION ALL
    SELECT second, first FROM memory_question WHERE both_hold = 0;
CREATE INDEX memory_question_by_second ON memory_question (second);

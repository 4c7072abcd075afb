-- +goose Up
-- Indexes that no query could use are changed or dropped. An index of the rows with x <> '' serves only queries that
-- say x <> '' too.

DROP INDEX memory_by_event;
CREATE INDEX memory_by_event ON memory (event);
DROP INDEX memory_by_successor;
CREATE INDEX memory_by_successor ON memory (successor);

DROP INDEX message_by_event;
CREATE UNIQUE INDEX message_by_event ON message (event_id, room) WHERE event_id <> '';
DROP INDEX past_message_by_event;
CREATE UNIQUE INDEX past_message_by_event ON past_message (event, scope) WHERE event <> '';

DROP INDEX approval_by_state;
CREATE INDEX approval_by_thread ON approval (thread, state);

DROP INDEX dream_change_by_item;
DROP INDEX dream_change_open;
DROP INDEX dream_op_by_entry;
DROP INDEX matrix_tombstone_open;
DROP INDEX memory_op_by_actor;
DROP INDEX memory_question_by_event;
DROP INDEX sub_session_by_event;
DROP INDEX sub_session_by_parent;
DROP INDEX task_by_source_event;

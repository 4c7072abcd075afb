-- +goose Up
-- The schema of release 0.1.0: names in standard terms, without unused tables and columns. The files
-- of the folder above make the same of a new database.

DROP TRIGGER task_added;
DROP TRIGGER task_changed;
DROP TRIGGER task_removed;
DROP TABLE task_change;
DROP TABLE goal_event;

DROP INDEX heard_by_room;
DROP INDEX answered_by_reply;
DROP INDEX memory_again_by_event;
DROP INDEX memory_turn_by_event;
DROP INDEX memory_turn_by_conversation;
DROP INDEX dream_chore_by_run;
DROP INDEX dream_chore_by_item;
DROP INDEX dream_chore_open;
DROP INDEX room_branches;
DROP INDEX task_by_asked;
DROP INDEX index_doc_by_place;
DROP TRIGGER goal_decision_stays;
DROP TRIGGER goal_decision_kept;

ALTER TABLE message DROP COLUMN unquoted;
DELETE FROM compaction WHERE undone <> 0;
ALTER TABLE compaction DROP COLUMN undone;
ALTER TABLE compaction DROP COLUMN from_message;
ALTER TABLE compaction DROP COLUMN to_message;
ALTER TABLE sub_session DROP COLUMN due;
ALTER TABLE sub_session DROP COLUMN continued;
ALTER TABLE sub_session DROP COLUMN tokens;
ALTER TABLE sub_session DROP COLUMN faults;
ALTER TABLE sub_session DROP COLUMN timed_out;
ALTER TABLE task DROP COLUMN run_mode;
ALTER TABLE tier_lock DROP COLUMN candidate;
ALTER TABLE tier_lock DROP COLUMN seen;
ALTER TABLE tier_lock DROP COLUMN seen_at;
ALTER TABLE approval DROP COLUMN answered;

ALTER TABLE inbox RENAME COLUMN brought TO attachments;
ALTER TABLE inbox RENAME COLUMN branch TO answer_thread;
ALTER TABLE inbox RENAME COLUMN unproven TO unverified;
ALTER TABLE approval RENAME COLUMN unproven TO unverified;
ALTER TABLE approval RENAME COLUMN talk TO thread;
ALTER TABLE approval RENAME COLUMN seen TO sources;
ALTER TABLE approval RENAME COLUMN mark TO sources_hash;
ALTER TABLE approval RENAME COLUMN wide TO whole_conversation;
ALTER TABLE heard RENAME COLUMN heard_at TO received_at;
ALTER TABLE heard RENAME COLUMN given TO delivered;
ALTER TABLE session RENAME COLUMN opened TO public_since;
ALTER TABLE session RENAME COLUMN heard_at TO last_message_at;
ALTER TABLE task RENAME COLUMN asked TO source_event;
ALTER TABLE sub_session RENAME COLUMN asked TO origin;
ALTER TABLE sub_session RENAME COLUMN told TO reported_at;
ALTER TABLE memory RENAME COLUMN by_id TO successor;
ALTER TABLE dream_op RENAME COLUMN by_id TO successor;
ALTER TABLE room RENAME COLUMN branch_of TO thread_of;
ALTER TABLE harvest RENAME COLUMN pos TO bytes_read;
ALTER TABLE memory_vector RENAME COLUMN space TO model;
ALTER TABLE dream_run RENAME COLUMN mark TO compared_until;
ALTER TABLE memory_question RENAME COLUMN both TO both_hold;
ALTER TABLE memory_question RENAME COLUMN event TO notice_event;
ALTER TABLE index_doc RENAME COLUMN place TO conversation;
ALTER TABLE index_doc RENAME COLUMN session TO conversation_day;
ALTER TABLE index_doc RENAME COLUMN marks TO flags;

ALTER TABLE takeback RENAME TO pending_redaction;
ALTER TABLE redaction RENAME TO redacted_message;
ALTER TABLE heard RENAME TO group_message;
ALTER TABLE answered RENAME TO question_reply;
ALTER TABLE goal_heard RENAME TO goal_cursor;
ALTER TABLE memory_again RENAME TO memory_source;
ALTER TABLE memory_changes RENAME TO memory_revision;
ALTER TABLE memory_turn RENAME TO past_message;
ALTER TABLE memory_space RENAME TO embedding_model;
ALTER TABLE memory_vector RENAME TO embedding;
ALTER TABLE dream_chore RENAME TO dream_change;
ALTER TABLE dream_seen RENAME TO dream_verdict;
ALTER TABLE dream_room RENAME TO dream_task_list;
ALTER TABLE model_count RENAME TO token_ratio;

CREATE INDEX group_message_by_room ON group_message (room, seq);
CREATE INDEX question_reply_by_reply ON question_reply (reply);
CREATE INDEX memory_source_by_event ON memory_source (event);
CREATE UNIQUE INDEX past_message_by_event ON past_message (scope, event) WHERE event <> '';
CREATE INDEX past_message_by_conversation ON past_message (scope, conversation, seq);
CREATE INDEX dream_change_by_run ON dream_change (run);
CREATE INDEX dream_change_by_item ON dream_change (item, kind);
CREATE INDEX dream_change_open ON dream_change (state) WHERE state IN ('due', 'back');
CREATE INDEX room_threads ON room (thread_of) WHERE thread_of <> '';
CREATE INDEX index_doc_by_conversation ON index_doc (conversation, seq, doc) WHERE conversation <> 0;
CREATE INDEX task_by_source_event ON task (source_event) WHERE source_event <> '';
-- +goose StatementBegin
CREATE TRIGGER goal_decision_not_changed BEFORE UPDATE ON goal_decision WHEN OLD.locked = 1
BEGIN SELECT RAISE(ABORT, 'a locked decision never changes'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER goal_decision_not_deleted BEFORE DELETE ON goal_decision WHEN OLD.locked = 1
BEGIN SELECT RAISE(ABORT, 'a locked decision never goes'); END;
-- +goose StatementEnd

ALTER TABLE inbox RENAME COLUMN change TO old_change;
ALTER TABLE inbox ADD COLUMN change TEXT NOT NULL DEFAULT '' CHECK (change IN ('', 'edited', 'redacted', 'stop', 'retry', 'voted'));
UPDATE inbox SET change = iif(old_change = 'taken back', 'redacted', old_change) WHERE old_change <> '';
ALTER TABLE inbox DROP COLUMN old_change;
UPDATE outbox SET error = 'redacted' WHERE error = 'taken back';

INSERT INTO goose_db_version (version_id, is_applied) VALUES
    (101, 1), (102, 1), (103, 1), (104, 1), (105, 1), (106, 1), (107, 1), (108, 1), (109, 1), (110, 1),
    (111, 1), (112, 1), (113, 1), (114, 1), (115, 1), (116, 1), (117, 1), (118, 1), (119, 1), (120, 1);

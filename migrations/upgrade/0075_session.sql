-- +goose Up
-- How fast somebody's messages follow the bot's answers is counted while the program runs.
DROP TABLE pace;
-- Sub-sessions pass on results, and keep no files for one another.
DROP TABLE sub_session_file;
ALTER TABLE sub_session DROP COLUMN workflow;
-- The mode of a room and how much its model thinks are settings as the others.
INSERT INTO room_setting (room, name, value, person, at)
SELECT room, 'mode', mode, coalesce(who, ''), coalesce(at, heard_at * 1000) FROM session
LEFT JOIN mode_switch AS m USING (room) WHERE mode <> '' AND m.id IS (SELECT max(id) FROM mode_switch WHERE room = session.room);
INSERT INTO room_setting (room, name, value, person, at) SELECT room, 'think', think, '', heard_at * 1000 FROM session WHERE think <> '';
DROP TABLE mode_switch;
ALTER TABLE session DROP COLUMN mode;
ALTER TABLE session DROP COLUMN think;

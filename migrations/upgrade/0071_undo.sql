-- +goose Up
-- A change is taken back in one transaction. An undoing in parts that was cut off is completed here,
-- and the full-text index is then made anew at the start, as it is empty.
DELETE FROM index_doc WHERE EXISTS (SELECT 1 FROM memory_undo WHERE next > 0);

INSERT INTO memory_op (batch, at, actor, op, entry, before, after, undoes)
SELECT u.by, unixepoch() * 1000, u.actor, 'retire', m.id, o.after,
       json_set(o.after, '$.state', 'archived', '$.rev', m.rev + 1, '$.valid_to', strftime('%Y-%m-%dT%H:%M:%SZ', 'now')), o.seq
FROM memory_undo AS u CROSS JOIN memory_op AS o ON o.batch = u.batch AND o.seq < u.next AND o.op IN ('add', 'restore')
CROSS JOIN memory AS m ON m.id = o.entry AND m.state = 'active'
ORDER BY o.seq DESC;

UPDATE memory SET state = 'archived', valid_to = unixepoch() * 1000, updated_at = unixepoch() * 1000, rev = rev + 1
WHERE state = 'active' AND id IN (SELECT o.entry FROM memory_undo AS u CROSS JOIN memory_op AS o
    ON o.batch = u.batch AND o.seq < u.next AND o.op IN ('add', 'restore'));

DROP TABLE memory_undo;

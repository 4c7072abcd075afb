package memory

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"reverie/internal/search/vector"
	"reverie/internal/store"
	"reverie/internal/text"
)

// Erased is the result of Forget.
type Erased struct {
	Entries     int // erased entries, earlier versions included
	StillQuoted int // messages of people that still hold one of the texts
	Unindexed   int // messages that say the same in other words, removed from the index
}

// Forget erases the entries ids for good. It also erases their members, predecessors, successors
// and duplicates in the same scope. Their texts leave the entries, the journal, the files, the
// indexes and the free space of the database. A hash stays, so that they are not learned again. It
// cannot be undone. An entry that one of ids was merged into is erased too; its other parts become
// active again. An id that a may not see is ErrNotFound, a shared one that came from another person
// is ErrNotYours; then nothing is forgotten.
func (s *Store) Forget(ctx context.Context, a Access, ids ...string) (Erased, error) {
	return s.forget(ctx, a, func(db store.DBTX) ([]string, error) { return withMembers(ctx, db, ids) })
}

// ForgetEvent forgets what was learned from the message event, as after its redaction. Entries that
// another message supports stay.
func (s *Store) ForgetEvent(ctx context.Context, a Access, event string) (Erased, error) {
	if event == "" {
		return Erased{}, nil
	}
	if err := s.reassignSource(ctx, event, nil); err != nil {
		return Erased{}, err
	}
	return s.forget(ctx, a, func(db store.DBTX) ([]string, error) {
		all, err := selectEntries(ctx, db, `WHERE event = ?`, event)
		ids := make([]string, 0, len(all))
		for _, e := range all {
			if a.Sees(e.Scope) {
				ids = append(ids, e.ID)
			}
		}
		return ids, err
	})
}

func (s *Store) forget(ctx context.Context, a Access, which func(store.DBTX) ([]string, error)) (Erased, error) {
	ids, err := which(s.db)
	if err != nil || len(ids) == 0 {
		return Erased{}, err
	}
	var scopes []Scope
	for _, id := range ids {
		e, err := s.Get(ctx, a, id)
		if err != nil {
			return Erased{}, err
		}
		if e.Scope == Shared && !a.All && !a.Owner {
			if from, err := originalPerson(ctx, s.db, id); err != nil || from != a.Actor {
				return Erased{}, cmp.Or(err, ErrNotYours)
			}
		}
		scopes = append(scopes, e.Scope)
	}
	scopes = sortedUnique(scopes)
	if s.beforeForget != nil {
		if err := s.beforeForget(ctx); err != nil {
			return Erased{}, fmt.Errorf("index the newest messages before forgetting: %w", err)
		}
	}
	unlock, err := s.lock()
	if err != nil {
		return Erased{}, err
	}
	defer unlock()
	var done Erased
	for _, scope := range scopes { // an unreadable file may hold the text, so it is an error
		if err := s.files.Sync(ctx, scope); err != nil {
			return Erased{}, err
		}
	}
	var erased []Entry
	_, err = s.commit(ctx, a.Actor, func(c *change) error {
		erased, err = selectEntries(ctx, c.tx, `WHERE state <> 'forgotten' AND id IN `+relatedIDs+` ORDER BY id`, store.Array(ids))
		if err != nil {
			return err
		}
		erased = slices.DeleteFunc(erased, func(e Entry) bool { return !a.Sees(e.Scope) })
		texts := make([]string, 0, len(erased))
		for _, e := range erased {
			texts = append(texts, e.Text)
			if err := c.erase(e); err != nil {
				return err
			}
		}
		if err := c.restoreMerged(erased); err != nil {
			return err
		}
		for _, e := range erased {
			said, reworded, err := s.index.RedactFact(ctx, c.tx, e.Scope, e.Event, e.Text, e.Quote)
			if err != nil {
				return err
			}
			done.Unindexed += reworded
			for _, text := range said { // in the forms quoted to the model
				texts = append(texts, Turn{Text: text}.Quotes()...)
			}
		}
		c.purges = true
		if s.purge != nil {
			done.StillQuoted, err = s.purge(ctx, c.tx, texts)
		}
		return err
	})
	if err != nil {
		return Erased{}, err
	}
	done.Entries = len(erased)
	if s.server != nil {
		ids := store.Map(erased, func(e Entry) string { return e.ID })
		s.server.Forget(ctx, ids)
	}
	return done, s.purgeDisk(context.WithoutCancel(ctx), scopes, erased)
}

// relatedIDs selects the entries ?1 with their predecessors, successors and duplicates in the same
// scope. Of a merge it leaves out the other parts: those are other facts. A replacement that was
// undone is included, because its words may be the same.
const relatedIDs = `(WITH RECURSIVE tied (id, whole) AS (SELECT value, true FROM json_each(?1)
	UNION SELECT m.id, whole FROM tied JOIN memory AS m ON m.successor = tied.id
		AND m.state <> 'active' AND (m.state <> 'merged' OR whole)
	UNION SELECT m.successor, whole AND m.state <> 'merged' FROM tied JOIN memory AS m ON m.id = tied.id
		AND m.successor <> '' AND m.state <> 'active'
	UNION SELECT new.entry, false FROM tied JOIN memory_op AS old ON old.entry = tied.id AND old.op IN ('merge', 'supersede')
		JOIN memory_op AS new ON new.batch = old.batch AND new.op = 'add'
			AND new.entry = iif(old.after = '', '', json_extract(old.after, '$.by'))
	UNION SELECT same.id, tied.whole FROM tied JOIN memory AS m ON m.id = tied.id AND m.state <> 'forgotten'
		JOIN memory AS same ON same.scope = m.scope AND same.hash = m.hash AND same.id <> m.id)
	SELECT id FROM tied)`

// restoreMerged reactivates entries that were merged into a forgotten one and are not forgotten
// themselves. Members need nothing: they are shown when their head is gone.
func (c *change) restoreMerged(erased []Entry) error {
	for _, g := range erased {
		parts, err := selectEntries(c.ctx, c.tx, `WHERE successor = ? AND state = 'merged' ORDER BY n`, g.ID)
		if err != nil {
			return err
		}
		for _, p := range parts {
			after := p
			after.State, after.By = Active, ""
			if err := c.update(p, after, "restore"); err != nil {
				return err
			}
		}
	}
	return nil
}

// erase deletes the words of e and adds a tombstone. They leave the entry, its journal and the
// vectors.
func (c *change) erase(e Entry) error {
	var n int64
	err := c.tx.QueryRowContext(c.ctx, `UPDATE memory SET text = '', subject = '', quote = '', ref = '', conversation = '', hash = '',
		state = 'forgotten', pinned = 0, updated_at = ?, rev = rev + 1 WHERE id = ? RETURNING n`, c.now.UnixMilli(), e.ID).Scan(&n)
	if err != nil {
		return fmt.Errorf("forget: %w", err)
	}
	c.touch(n, e.Scope)
	if _, err := c.tx.ExecContext(c.ctx, `UPDATE memory_op SET before = '', after = '' WHERE entry = ?`, e.ID); err != nil {
		return fmt.Errorf("forget: %w", err)
	}
	if err := writeOp(c.ctx, c.tx, Op{Batch: c.batch, At: c.now, Actor: c.actor, Op: "forget", Entry: e.ID}); err != nil {
		return err
	}
	if err := vector.Forget(c.ctx, c.tx, text.Hash(e.Text)); err != nil {
		return err
	}
	hash, err := c.tombstoneHash(e.Scope, e.Text)
	if err == nil {
		_, err = c.tx.ExecContext(c.ctx, `INSERT INTO memory_forgotten (hash, at) VALUES (?, ?)
			ON CONFLICT (hash) DO UPDATE SET at = excluded.at, purged = 0`, hash, c.now.UnixMilli())
	}
	return store.Wrap(err, "forget")
}

// tombstoneHash identifies forgotten words in scope: a hash with the salt of this database.
func (c *change) tombstoneHash(scope Scope, words string) (string, error) {
	salt, err := Salt(c.ctx, c.tx)
	sum := sha256.Sum256(append(salt, string(scope)+"\x00"+text.Hash(words)...))
	return hex.EncodeToString(sum[:]), err
}

// Salt is the prefix of texts of this database when they are hashed.
func Salt(ctx context.Context, db store.DBTX) (salt []byte, err error) {
	err = db.QueryRowContext(ctx, `SELECT salt FROM memory_salt`).Scan(&salt)
	return salt, err
}

func (c *change) isForgotten(scope Scope, text string) (is bool, err error) {
	hash, err := c.tombstoneHash(scope, text)
	if err == nil {
		err = c.tx.QueryRowContext(c.ctx, `SELECT EXISTS (SELECT 1 FROM memory_forgotten WHERE hash = ?)`, hash).Scan(&is)
	}
	return is, store.Wrap(err, "read memory")
}

// removeTombstone lets text be learned again in scope.
func (c *change) removeTombstone(scope Scope, text string) error {
	hash, err := c.tombstoneHash(scope, text)
	if err == nil {
		_, err = c.tx.ExecContext(c.ctx, `DELETE FROM memory_forgotten WHERE hash = ?`, hash)
	}
	return store.Wrap(err, "allow a forgotten text")
}

// purgeDisk removes the words of erased from the disk: from files, temporary files, and the
// database's free space and WAL.
func (s *Store) purgeDisk(ctx context.Context, scopes []Scope, erased []Entry) error {
	s.forgetting = map[string]bool{}
	defer func() { s.forgetting = nil }()
	for _, e := range erased {
		s.forgetting[text.Hash(e.Text)] = true
	}
	var failed []error
	for _, scope := range scopes {
		failed = append(failed, s.files.Sync(ctx, scope))
	}
	err := errors.Join(append(failed, s.files.RemoveTempFiles())...)
	if err == nil {
		err = vacuum(ctx, s.db)
	}
	return store.Wrap(err, "the memory is forgotten, but traces are left on disk; they are removed at the next start")
}

// vacuum rebuilds the database without its free pages and empties the WAL. Overwriting deleted
// content is not enough: split pages keep copies.
func vacuum(ctx context.Context, db *store.DB) error {
	if _, err := db.ExecContext(ctx, `VACUUM`); err != nil {
		return fmt.Errorf("vacuum the database: %w", err)
	}
	if err := checkpoint(ctx, db); err != nil {
		return err
	}
	return store.Exec(ctx, db, `UPDATE memory_forgotten SET purged = 1 WHERE purged = 0`)
}

// checkpoint moves the WAL into the database and truncates it, in line with those who write. It retries while
// a reader blocks it.
func checkpoint(ctx context.Context, db *store.DB) error {
	for range 20 {
		var busy, log, moved int
		if err := db.DB.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &log, &moved); err != nil {
			return fmt.Errorf("empty the database's log: %w", err)
		}
		if busy == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	return errors.New("empty the database's log: another program keeps reading it")
}

// finishPurge completes, at start, a forget that was interrupted.
func finishPurge(ctx context.Context, db *store.DB, log *slog.Logger) error {
	var n int
	if err := db.QueryRowContext(ctx, `SELECT count(*) FROM memory_forgotten WHERE purged = 0`).Scan(&n); err != nil || n == 0 {
		return err
	}
	if err := vacuum(ctx, db); err != nil {
		log.Warn("traces of forgotten memories may be left; they are removed at the next start", "err", err)
	}
	return nil
}

package memory

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
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

// Erased is what Forget did.
type Erased struct {
	Entries int // that are gone, earlier wordings of the same included
	Kept    int // messages of people that still hold one of the texts
	Unfound int // messages that say the same in other words, which no search finds any more
}

// Forget empties the entries ids for good, with all that they took the place of
// or that says the same in their scope: the texts leave the entries, the journal,
// the files, the indexes and the free space of the database. What is left is a
// hash, so that they are not learned again. It cannot be undone. Entries that mean the same
// (member.go) go with it; so does what an entry was merged into, and the other parts of that count again. An id that a
// may not see is ErrNotFound, a shared one that came from somebody else is
// ErrNotYours, and then nothing is forgotten.
func (s *Store) Forget(ctx context.Context, a Access, ids ...string) (Erased, error) {
	return s.forget(ctx, a, func(db store.DBTX) ([]string, error) { return withMembers(ctx, db, ids) })
}

// ForgetEvent forgets what was learned from the message event, as when its sender
// takes it back. What another message said too stays.
func (s *Store) ForgetEvent(ctx context.Context, a Access, event string) (Erased, error) {
	if event == "" {
		return Erased{}, nil
	}
	if err := s.disown(ctx, event, nil); err != nil {
		return Erased{}, err
	}
	return s.forget(ctx, a, func(db store.DBTX) ([]string, error) {
		all, err := entries(ctx, db, `WHERE event = ?`, event)
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
			if from, err := cameFrom(ctx, s.db, id); err != nil || from != a.Actor {
				return Erased{}, cmp.Or(err, ErrNotYours)
			}
		}
		scopes = append(scopes, e.Scope)
	}
	scopes = sorted(scopes)
	if s.prepare != nil {
		if err := s.prepare(ctx); err != nil {
			return Erased{}, fmt.Errorf("look for messages that say what is to be forgotten: %w", err)
		}
	}
	unlock, err := s.lock()
	if err != nil {
		return Erased{}, err
	}
	defer unlock()
	var done Erased
	for _, scope := range scopes { // a file that is not to be read may hold it
		if err := s.files.Sync(ctx, scope); err != nil {
			return Erased{}, err
		}
	}
	var gone []Entry
	_, err = s.commit(ctx, a.Actor, func(c *change) error {
		if gone, err = c.alsoSaid(a, ids); err != nil {
			return err
		}
		texts := make([]string, 0, len(gone))
		for _, e := range gone {
			texts = append(texts, e.Text)
			if err := c.empty(e); err != nil {
				return err
			}
		}
		if err := c.release(gone); err != nil {
			return err
		}
		for _, e := range gone {
			said, reworded, err := s.index.TakeBackFact(ctx, c.tx, e.Scope, e.Event, e.Text, e.Quote)
			if err != nil {
				return err
			}
			done.Unfound += reworded
			for _, text := range said { // as it was quoted to the model
				texts = append(texts, Turn{Text: text}.Quotes()...)
			}
		}
		c.purges = true
		if s.purge != nil {
			done.Kept, err = s.purge(ctx, c.tx, texts)
		}
		return err
	})
	if err != nil {
		return Erased{}, err
	}
	done.Entries = len(gone)
	if s.server != nil {
		ids := make([]string, len(gone))
		for i, e := range gone {
			ids[i] = e.ID
		}
		s.server.Forget(ctx, ids)
	}
	return done, s.wipe(context.WithoutCancel(ctx), scopes, gone)
}

// alsoSaid is the entries ids, what they are a correction of or were corrected
// by, and what says the same where they are.
func (c *change) alsoSaid(a Access, ids []string) ([]Entry, error) {
	all, err := entries(c.ctx, c.tx, `WHERE state <> 'forgotten' AND id IN `+tied+` ORDER BY id`, store.Array(ids))
	return slices.DeleteFunc(all, func(e Entry) bool { return !a.Sees(e.Scope) }), err
}

// tied are the entries ?1 with all that they took the place of, or that took theirs, and what says the
// same in the same scope. What one was merged into comes without its other parts: those are other facts.
// What was written to take its place comes too if that was undone: its words may be the same.
const tied = `(WITH RECURSIVE tied (id, whole) AS (SELECT value, true FROM json_each(?1)
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

// release makes those parts of what is gone count again that are not gone with it. Members need
// nothing: they are shown when their head is gone.
func (c *change) release(gone []Entry) error {
	for _, g := range gone {
		parts, err := entries(c.ctx, c.tx, `WHERE successor = ? AND state = 'merged' ORDER BY n`, g.ID)
		if err != nil {
			return err
		}
		for _, p := range parts {
			after := p
			after.State, after.By = Active, ""
			if err := c.set(p, after, "restore", 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// empty takes the words out of e and of its journal, and what was made of them.
func (c *change) empty(e Entry) error {
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
	if err := journal(c.ctx, c.tx, Op{Batch: c.batch, At: c.now, Actor: c.actor, Op: "forget", Entry: e.ID}); err != nil {
		return err
	}
	if err := vector.Forget(c.ctx, c.tx, text.Hash(e.Text)); err != nil {
		return err
	}
	hash, err := c.tombstone(e.Scope, e.Text)
	if err == nil {
		_, err = c.tx.ExecContext(c.ctx, `INSERT INTO memory_forgotten (hash, at) VALUES (?, ?)
			ON CONFLICT (hash) DO UPDATE SET at = excluded.at, purged = 0`, hash, c.now.UnixMilli())
	}
	if err != nil {
		return fmt.Errorf("forget: %w", err)
	}
	return nil
}

// tombstone is what is left of words in scope when it is forgotten: a hash with the salt of
// this database.
func (c *change) tombstone(scope Scope, words string) (string, error) {
	salt, err := Salt(c.ctx, c.tx)
	sum := sha256.Sum256(append(salt, string(scope)+"\x00"+text.Hash(words)...))
	return hex.EncodeToString(sum[:]), err
}

// Salt is what goes before a text of this database when it is hashed.
func Salt(ctx context.Context, db store.DBTX) (salt []byte, err error) {
	err = db.QueryRowContext(ctx, `SELECT salt FROM memory_salt`).Scan(&salt)
	return salt, err
}

// isForgotten reports whether text was to be forgotten in scope.
func (c *change) isForgotten(scope Scope, text string) (is bool, err error) {
	hash, err := c.tombstone(scope, text)
	if err == nil {
		err = c.tx.QueryRowContext(c.ctx, `SELECT EXISTS (SELECT 1 FROM memory_forgotten WHERE hash = ?)`, hash).Scan(&is)
	}
	if err != nil {
		return false, fmt.Errorf("read memory: %w", err)
	}
	return is, nil
}

// unforget lets text be learned again in scope.
func (c *change) unforget(scope Scope, text string) error {
	hash, err := c.tombstone(scope, text)
	if err == nil {
		_, err = c.tx.ExecContext(c.ctx, `DELETE FROM memory_forgotten WHERE hash = ?`, hash)
	}
	if err != nil {
		return fmt.Errorf("remember again: %w", err)
	}
	return nil
}

// wipe removes the words of gone from what lies on disk: files, what writes that
// were cut off left, the database's free space and its log.
func (s *Store) wipe(ctx context.Context, scopes []Scope, gone []Entry) error {
	s.forgetting = map[string]bool{}
	defer func() { s.forgetting = nil }()
	for _, e := range gone {
		s.forgetting[text.Hash(e.Text)] = true
	}
	var failed []error
	for _, scope := range scopes {
		failed = append(failed, s.files.Sync(ctx, scope))
	}
	err := errors.Join(append(failed, s.files.Sweep())...)
	if err == nil {
		err = scrub(ctx, s.db)
	}
	if err != nil {
		return fmt.Errorf("the memory is forgotten, but some of its traces are left; they are removed at the next start: %w", err)
	}
	return nil
}

// scrub writes the database anew without what its free space holds, and empties its log. Overwriting what
// is deleted is not enough: pages that were divided keep copies.
func scrub(ctx context.Context, db *sql.DB) error {
	if _, err := db.ExecContext(ctx, `VACUUM`); err != nil {
		return fmt.Errorf("write the database anew: %w", err)
	}
	if err := checkpoint(ctx, db); err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, `UPDATE memory_forgotten SET purged = 1 WHERE purged = 0`); err != nil {
		return fmt.Errorf("forget: %w", err)
	}
	return nil
}

// checkpoint moves the log into the database and empties it. Somebody who reads
// at the moment can keep it from that for a while.
func checkpoint(ctx context.Context, db *sql.DB) error {
	for range 20 {
		var busy, log, moved int
		if err := db.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &log, &moved); err != nil {
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
	return errors.New("empty the database's log: another program reads it all the time")
}

// finishPurge does at the start what a forgetting that was cut off left undone.
func finishPurge(ctx context.Context, db *sql.DB, log *slog.Logger) error {
	var n int
	if err := db.QueryRowContext(ctx, `SELECT count(*) FROM memory_forgotten WHERE purged = 0`).Scan(&n); err != nil || n == 0 {
		return err
	}
	if err := scrub(ctx, db); err != nil {
		log.Warn("traces of what was to be forgotten may be left; they are removed at the next start", "err", err)
	}
	return nil
}

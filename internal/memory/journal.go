package memory

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"reverie/internal/store"
	"reverie/internal/trust"
)

// Op is one operation of the journal.
type Op struct {
	Seq    int64     `json:"seq"`
	Batch  string    `json:"batch"` // operations of one batch are undone together
	At     time.Time `json:"at"`
	Actor  string    `json:"actor"` // a Matrix id, or a part of the program
	Op     string    `json:"op"`
	Entry  string    `json:"entry"`
	Before *Entry    `json:"before,omitempty"` // nil for a new entry and after forgetting
	After  *Entry    `json:"after,omitempty"`
	Undoes int64     `json:"undoes,omitempty"` // Seq of the operation that this one reverts
}

// change is one transaction on the entries. It tracks what it changed.
type change struct {
	ctx   context.Context
	tx    *sql.Tx
	now   time.Time
	actor string
	batch string

	rows    []int64 // row numbers of the changed entries, without duplicates
	touched map[int64]bool
	scopes  []Scope
	purges  bool // the index must be optimised, so that its pages keep no deleted text

	revs map[string]int // current revisions of the changed entries
}

func (c *change) touch(n int64, scopes ...Scope) {
	if !c.touched[n] {
		c.touched[n] = true
		c.rows = append(c.rows, n)
	}
	for _, s := range scopes {
		if !slices.Contains(c.scopes, s) {
			c.scopes = append(c.scopes, s)
		}
	}
}

// write runs f in one transaction on the entries. Before, it reads hand edits of the files of
// scopes; after, it writes the files of all scopes that changed. A file that cannot be written
// after the commit is logged and tried again later; it is not an error.
func (s *Store) write(ctx context.Context, actor string, scopes []Scope, f func(*change) error) (*change, error) {
	unlock, err := s.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	for _, scope := range scopes {
		if err := s.files.Sync(ctx, scope); err != nil {
			return nil, err
		}
	}
	c, err := s.commit(ctx, actor, f)
	if err != nil {
		return nil, err
	}
	for _, scope := range c.scopes {
		if err := s.files.Sync(context.WithoutCancel(ctx), scope); err != nil {
			s.log.Error("memory is stored, but its file could not be written; it is tried again", "file", s.File(scope), "err", err)
		}
	}
	return c, nil
}

// commit runs f in a transaction and updates the index in it. The caller holds the lock.
func (s *Store) commit(ctx context.Context, actor string, f func(*change) error) (*change, error) {
	c := &change{
		ctx: ctx, now: time.Now().UTC().Truncate(time.Millisecond), actor: actor, batch: newBatch(),
		touched: map[int64]bool{}, revs: map[string]int{},
	}
	var refused error
	err := store.InTx(ctx, s.db, func(tx *sql.Tx) error {
		c.tx = tx
		if refused = f(c); refused != nil {
			return refused
		}
		err := s.index.Update(ctx, tx, c.rows...)
		if err == nil && c.purges {
			err = s.index.Optimize(ctx, tx)
		}
		s.fault("commit")
		return err
	})
	if err != nil {
		return nil, cmp.Or(refused, store.Wrap(err, "memory"))
	}
	s.fault("committed")
	if s.vectors != nil && len(c.rows) > 0 {
		s.vectors.Wake()
	}
	if s.server != nil && len(c.rows) > 0 {
		s.server.Wake()
	}
	return c, nil
}

// add stores e as a new entry. It fills in the id, times and defaults.
func (c *change) add(e Entry) (Entry, error) {
	e.ID, e.State, e.Rev = cmp.Or(e.ID, newID()), Active, 1
	e.CreatedAt, e.UpdatedAt = c.now, c.now
	if e.ObservedAt.IsZero() {
		e.ObservedAt = c.now
	}
	e.ObservedAt = e.ObservedAt.UTC().Truncate(time.Millisecond)
	if e.Kind == "" {
		e.Kind = Fact
	}
	n, err := insertEntry(c.ctx, c.tx, e, c.actor, c.batch)
	if err != nil {
		return Entry{}, err
	}
	c.touch(n, e.Scope)
	return e, nil
}

// update changes before into after, with a new revision, and journals it as op. Any field but the
// text may differ. It returns ErrChanged if before is stale.
func (c *change) update(before, after Entry, op string) error {
	after.UpdatedAt, after.Rev = c.now, before.Rev+1
	return c.updateRow(before, after, op, 0)
}

// updateRow is update with the time and revision of after. before must have been read in this
// transaction, because its hit count is written too.
func (c *change) updateRow(before, after Entry, op string, undoes int64) error {
	var n int64
	err := c.tx.QueryRowContext(c.ctx, `UPDATE memory SET scope = ?, source = ?, state = ?, successor = ?, pinned = ?, observed_at = ?,
		valid_to = ?, integrity = ?, hits = ?, last_hit = ?, updated_at = ?, rev = ? WHERE id = ? AND rev = ? RETURNING n`,
		after.Scope, after.Source, after.State, after.By, after.Pinned, after.ObservedAt.UnixMilli(),
		nullMilli(after.ValidTo), after.Integrity, after.Hits, nullMilli(after.LastHit), after.UpdatedAt.UnixMilli(), after.Rev,
		before.ID, before.Rev).Scan(&n)
	if errors.Is(err, sql.ErrNoRows) {
		return ErrChanged
	}
	if err != nil {
		return fmt.Errorf("change a memory: %w", err)
	}
	c.touch(n, before.Scope, after.Scope)
	c.revs[before.ID] = after.Rev
	return writeOp(c.ctx, c.tx, Op{Batch: c.batch, At: c.now, Actor: c.actor, Op: op, Entry: before.ID,
		Before: &before, After: &after, Undoes: undoes})
}

// writeOp appends o to the journal. Text and quote never change, so only the entry's row holds
// them.
func writeOp(ctx context.Context, tx store.DBTX, o Op) error {
	var sides [2]string
	for i, e := range []*Entry{o.Before, o.After} {
		if e == nil {
			continue
		}
		short := *e
		short.Text, short.Quote = "", ""
		data, err := json.Marshal(short)
		if err != nil {
			return fmt.Errorf("write the journal of memory: %w", err)
		}
		sides[i] = string(data)
	}
	return store.Exec(ctx, tx, `INSERT INTO memory_op (batch, at, actor, op, entry, before, after, undoes)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		o.Batch, o.At.UnixMilli(), o.Actor, o.Op, o.Entry, sides[0], sides[1], o.Undoes)
}

func (c *change) retire(e Entry) error {
	after := e
	after.State, after.ValidTo = Archived, c.now
	return c.updateWithMembers(e, after, "retire")
}

// supersede adds next and makes it the successor of e.
func (c *change) supersede(e, next Entry) (Entry, error) {
	next, err := c.add(next)
	if err != nil {
		return Entry{}, err
	}
	after := e
	after.State, after.By, after.ValidTo = Superseded, next.ID, c.now
	return next, c.updateWithMembers(e, after, "supersede")
}

// selectEntries reads entries; rest is the query after `SELECT … FROM memory`.
func selectEntries(ctx context.Context, db store.DBTX, rest string, args ...any) ([]Entry, error) {
	return store.List(ctx, db, func(row store.Row) (Entry, error) { return scanEntry(row) },
		`SELECT `+entryColumns+` FROM memory `+rest, args...)
}

func entryByID(ctx context.Context, db store.DBTX, id string) (Entry, error) {
	e, err := scanEntry(db.QueryRowContext(ctx, `SELECT `+entryColumns+` FROM memory WHERE id = ?`, id))
	if errors.Is(err, sql.ErrNoRows) {
		return Entry{}, ErrNotFound
	}
	return e, store.Wrap(err, "read memory")
}

// selectOps reads journal operations; rest is the query after `SELECT … FROM memory_op`.
func selectOps(ctx context.Context, db store.DBTX, rest string, args ...any) ([]Op, error) {
	return store.List(ctx, db, scanOp, `SELECT seq, batch, at, actor, op, entry, before, after, undoes,
		coalesce((SELECT text FROM memory WHERE id = entry), ''), coalesce((SELECT quote FROM memory WHERE id = entry), '')
		FROM memory_op `+rest, args...)
}

func scanOp(row store.Row) (o Op, err error) {
	var at int64
	var before, after, text, quote string
	if err := row.Scan(&o.Seq, &o.Batch, &at, &o.Actor, &o.Op, &o.Entry, &before, &after, &o.Undoes, &text, &quote); err != nil {
		return Op{}, err
	}
	o.At = fromMilli(at)
	for _, side := range []struct {
		text string
		to   **Entry
	}{{before, &o.Before}, {after, &o.After}} {
		if side.text == "" {
			continue
		}
		*side.to = &Entry{Integrity: trust.User} // the default for operations from before labels
		if err := json.Unmarshal([]byte(side.text), *side.to); err != nil {
			return Op{}, fmt.Errorf("operation %d: %w", o.Seq, err)
		}
		(*side.to).Text, (*side.to).Quote = text, quote
	}
	return o, nil
}

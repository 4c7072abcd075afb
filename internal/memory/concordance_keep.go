package memory

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// keeper keeps a concordance of the index for those who ask again and again. It is
// read from the index beside the questions, and told from then on which texts this
// process changes; when somebody else changed some, it is read anew. The database
// counts the changes (memory_change), so one that is behind is never used: the index
// itself answers then.
type keeper struct {
	mu      sync.RWMutex
	all     *concordance // nil = none
	n       int64        // the change that it is of
	reading bool
	asked   int               // questions that the index had to answer
	changes map[int64]changed // by the change before
	size    int               // documents in changes

	writing sync.Mutex // for what is below; one transaction writes at a time
	tx      *sql.Tx
	from    int64
	changed
}

// changed is what a transaction did: the change after it, and the documents.
type changed struct {
	to   int64
	docs []int64
}

const (
	askedOften = 2      // so many questions in vain, and a concordance is made
	askedAgain = 1000   // of an index that was too large, it is thought about again
	maxKept    = 50_000 // texts that there is one of: about 20 MB, and as much again for a while
	maxChanges = 4_000  // documents that it may be behind
)

// current locks and returns the concordance if it says what the index says now, and nil if
// the index has to be asked. Whoever gets one calls f.keeper.mu.RUnlock.
func (f *FTS) current(ctx context.Context) *concordance {
	k := &f.keeper
	n, err := changeCount(ctx, f.db)
	if err != nil {
		return nil // the index will say it
	}
	for range 2 {
		k.mu.RLock()
		switch {
		case k.all != nil && k.n >= n:
			return k.all
		case k.all == nil:
			k.mu.RUnlock()
			f.think(ctx)
			return nil
		}
		k.mu.RUnlock()
		f.catchUp(ctx, n)
	}
	return nil
}

func changeCount(ctx context.Context, db *sql.DB) (n int64, err error) {
	err = db.QueryRowContext(ctx, `SELECT n FROM memory_change`).Scan(&n)
	return n, err
}

// think begins to read the index, if that is worth it.
func (f *FTS) think(ctx context.Context) {
	k := &f.keeper
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.asked++; k.asked <= askedOften || k.reading || k.all != nil {
		return
	}
	k.reading, k.asked = true, 0
	// go: ends when the index is read; one at a time
	go f.readAll(context.WithoutCancel(ctx))
}

// Warm reads the index into memory before anybody asks, so that the first questions are
// answered as fast as those that follow. It returns when that is done, or when somebody
// else is at it. An index that is too large is left alone, and one that cannot be read
// says so to those who ask.
func (f *FTS) Warm(ctx context.Context) {
	k := &f.keeper
	k.mu.Lock()
	busy := k.reading || k.all != nil
	k.reading = k.reading || !busy
	k.mu.Unlock()
	if !busy {
		f.readAll(ctx)
	}
}

// catchUp brings the concordance to the change n, or throws it away.
func (f *FTS) catchUp(ctx context.Context, n int64) {
	k := &f.keeper
	k.mu.Lock()
	defer k.mu.Unlock()
	var docs []int64
	at := k.n
	for k.all != nil && at < n {
		c, known := k.changes[at]
		if !known {
			if !k.under(at) { // it was somebody else's
				k.forget()
			}
			return
		}
		docs, at = append(docs, c.docs...), c.to
	}
	if k.all == nil || at == k.n { // somebody else was faster
		return
	}
	slices.Sort(docs)
	docs = slices.Compact(docs)
	list, err := json.Marshal(docs)
	if err != nil {
		k.forget()
		return
	}
	var rows []posted
	_, err = eachPosted(ctx, f.db, func(x posted) { rows = append(rows, x) }, `json_each(?) AS j CROSS JOIN index_doc AS d ON d.doc = j.value`, string(list))
	if err == nil {
		err = k.all.nameScopes(ctx, f.db)
	}
	if err != nil {
		return // it is behind as before
	}
	k.all.replace(docs, rows)
	for from, c := range k.changes {
		if c.to <= at {
			k.size -= len(c.docs)
			delete(k.changes, from)
		}
	}
	k.n = at
}

// replace takes docs out and puts rows in, which are what the index has of them.
func (c *concordance) replace(docs []int64, rows []posted) {
	type place struct {
		place int64
		spot
	}
	places := make([]place, 0, len(docs)+len(rows))
	for _, doc := range docs {
		if p, where := c.drop(doc); p != 0 {
			places = append(places, place{p, where})
		}
	}
	for _, x := range rows {
		c.put(x)
		if x.place != 0 {
			places = append(places, place{x.place, spot{x.seq, x.doc}})
		}
	}
	for _, p := range places {
		c.join(p.place, p.spot)
	}
}

// forget throws the concordance away. k.mu is locked.
func (k *keeper) forget() { k.all, k.changes, k.size = nil, nil, 0 }

// readAll makes a concordance of the whole index.
func (f *FTS) readAll(ctx context.Context) {
	k := &f.keeper
	all, n, err := f.readConcordance(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reading = false
	switch {
	case err != nil: // the index will say it to those who ask
	case all == nil:
		k.asked = -askedAgain
	default:
		k.all, k.n = all, n
	}
}

// readConcordance reads the index. It returns nil when that is too large.
func (f *FTS) readConcordance(ctx context.Context) (*concordance, int64, error) {
	var docs int
	if err := f.db.QueryRowContext(ctx, `SELECT coalesce(sum(docs), 0) FROM index_scope`).Scan(&docs); err != nil || docs > maxKept {
		return nil, 0, err
	}
	c := newConcordance()
	before, err := changeCount(ctx, f.db)
	if err != nil {
		return nil, 0, err
	}
	if err := c.nameScopes(ctx, f.db); err != nil {
		return nil, 0, err
	}
	c.docs = make([]shelved, 0, docs)
	n, err := eachPosted(ctx, f.db, c.put, `index_doc AS d`)
	if err == nil && len(c.at) > 0 && n != before { // the scopes may have other numbers
		err = errors.New("the index was changed meanwhile")
	}
	if err != nil {
		return nil, 0, err
	}
	c.joinAll()
	return c, before, nil
}

// eachPosted hands over what the index has of the documents d, and says of which
// change that is; 0 if there are none.
func eachPosted(ctx context.Context, db *sql.DB, do func(posted), d string, args ...any) (n int64, err error) {
	rows, err := db.QueryContext(ctx, `SELECT (SELECT n FROM memory_change), d.row, d.doc, d.place, d.seq, d.at, d.session, d.chars, d.words, d.marks,
		t.body, t.day, t.subject FROM `+d+` CROSS JOIN index_fts AS t ON t.rowid = d.row`, args...)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var x posted
		if err := rows.Scan(&n, &x.row, &x.doc, &x.place, &x.seq, &x.at, &x.session, &x.chars, &x.words, &x.marks, &x.body, &x.day, &x.subject); err != nil {
			return 0, err
		}
		do(x)
	}
	return n, rows.Err()
}

// nameScopes reads which scope has which number.
func (c *concordance) nameScopes(ctx context.Context, db *sql.DB) error {
	rows, err := db.QueryContext(ctx, `SELECT scope, no FROM index_scope`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var name Scope
		var no int64
		if err := rows.Scan(&name, &no); err != nil {
			return err
		}
		c.names[name] = no
	}
	return rows.Err()
}

// begins counts a change of memory in tx, whose documents are noted from now on.
func (f *FTS) begins(ctx context.Context, tx *sql.Tx) error {
	var n int64
	if err := tx.QueryRowContext(ctx, `UPDATE memory_change SET n = n + 1 RETURNING n`).Scan(&n); err != nil {
		return fmt.Errorf("count the change: %w", err)
	}
	k := &f.keeper
	k.writing.Lock()
	defer k.writing.Unlock()
	if k.tx != tx {
		k.tx, k.from, k.docs = tx, n-1, nil
	}
	k.to = n
	return nil
}

// note notes documents that tx changes.
func (k *keeper) note(tx *sql.Tx, gone []int64, all []source) {
	k.writing.Lock()
	defer k.writing.Unlock()
	if k.tx != tx {
		return // nobody will say that it was committed
	}
	k.docs = append(k.docs, gone...)
	for i := range all {
		k.docs = append(k.docs, all[i].doc)
	}
}

// commit commits tx and passes on what it changed.
func (f *FTS) commit(tx *sql.Tx) error {
	if err := tx.Commit(); err != nil {
		return err
	}
	k := &f.keeper
	k.writing.Lock()
	ours, from, done := k.tx == tx, k.from, k.changed
	k.writing.Unlock()
	if !ours {
		return nil
	}
	k.learn(from, done)
	k.writing.Lock()
	defer k.writing.Unlock()
	if k.tx == tx { // only now: until then it is under way
		k.tx, k.docs = nil, nil
	}
	return nil
}

// learn keeps what was changed until somebody asks.
func (k *keeper) learn(from int64, c changed) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all == nil && !k.reading {
		return
	}
	if k.size += len(c.docs); k.size > maxChanges {
		k.forget()
		return
	}
	if k.changes == nil {
		k.changes = map[int64]changed{}
	}
	k.changes[from] = c
}

// under reports whether the change after at is one of this process, which is just
// being committed.
func (k *keeper) under(at int64) bool {
	k.writing.Lock()
	defer k.writing.Unlock()
	return k.tx != nil && k.from <= at && at < k.to
}

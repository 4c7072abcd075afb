package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
)

// maxParts limits how many writers share a transaction: the first waits until the last is done.
const maxParts = 16

// writers is the line of those who wait to write. Each does its part of a transaction in turn and leaves it open
// for the next; the last one commits for all. A commit waits for the disk, so many writers share one wait.
type writers struct {
	mu      sync.Mutex
	busy    bool
	waiting []chan *group
}

// group is a transaction that several writers share.
type group struct {
	tx    *sql.Tx
	parts int           // begun
	err   error         // why all parts are lost
	ended chan struct{} // closed when all parts are stored, or lost
}

// InTx runs do in a transaction. When do returns nil, it commits; otherwise it undoes what do wrote and returns the
// error of do unchanged. All other writers wait meanwhile, so do must not write outside of it. Others may write in the
// same transaction before and after do: what do needs to know it must read in tx.
func InTx(ctx context.Context, db *DB, do func(tx *sql.Tx) error) error {
	g, err := db.writers.join(ctx)
	if err != nil {
		return fmt.Errorf("begin a transaction: %w", err)
	}
	if err := db.addPart(ctx, g, do); err != nil {
		return err
	}
	<-g.ended
	return Wrap(g.err, "commit a transaction")
}

// addPart runs do in g and lets the next writer in.
func (db *DB) addPart(ctx context.Context, g *group, do func(*sql.Tx) error) (err error) {
	defer db.writers.leave(g)
	if g.tx == nil {
		g.tx, g.err = db.BeginTx(context.WithoutCancel(ctx), nil) // ctx is one writer's, g is of all
	}
	if g.err == nil {
		_, g.err = g.tx.Exec(`SAVEPOINT part`)
	}
	if g.err != nil {
		return fmt.Errorf("begin a transaction: %w", g.err)
	}
	g.parts++
	end := `ROLLBACK TO part`
	defer func() { // also when do panics
		if _, failed := g.tx.Exec(end); failed != nil { // SQLite has undone all, as when the disk is full
			g.err = errors.Join(err, failed)
		}
	}()
	if err := do(g.tx); err != nil {
		return err
	}
	end = `RELEASE part`
	return nil
}

// join waits for the turn of a new writer and returns the group to write in.
func (w *writers) join(ctx context.Context) (*group, error) {
	w.mu.Lock()
	if !w.busy {
		w.busy = true
		w.mu.Unlock()
		return newGroup(), nil
	}
	turn := make(chan *group, 1)
	w.waiting = append(w.waiting, turn)
	w.mu.Unlock()
	select {
	case g := <-turn:
		return g, nil
	case <-ctx.Done():
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.Index(w.waiting, turn)
	if i < 0 { // it has the turn all the same, and others wait for its end
		return <-turn, nil
	}
	w.waiting = slices.Delete(w.waiting, i, i+1)
	return nil, ctx.Err()
}

// leave lets the next writer continue g. If no one waits, or enough have written, it ends g.
func (w *writers) leave(g *group) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) == 0 {
		w.mu.Unlock()
		runtime.Gosched() // those who are about to write get in line
		w.mu.Lock()
	}
	if g.err == nil && g.parts < maxParts && w.pass(g) {
		return
	}
	w.mu.Unlock() // meanwhile others get in line
	g.end()
	w.mu.Lock()
	w.busy = w.pass(newGroup())
}

// pass gives g to the writer that has waited longest, and reports whether there is one.
func (w *writers) pass(g *group) bool {
	if len(w.waiting) == 0 {
		return false
	}
	w.waiting[0] <- g
	w.waiting = w.waiting[1:]
	return true
}

func newGroup() *group { return &group{ended: make(chan struct{})} }

// end stores all parts of g, or none.
func (g *group) end() {
	if g.err == nil {
		g.err = g.tx.Commit()
	} else if g.tx != nil {
		_ = g.tx.Rollback() // SQLite may have done it
	}
	close(g.ended)
}

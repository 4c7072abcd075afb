package memory

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// ready is a line of the file with all that can be made of it without the database,
// which has enough to do: it is made while a part is stored.
type ready struct {
	Entry
	hash    string // of its text
	journal string // the entry as JSON
	indexed *made  // its number is not known yet
}

// What is read ahead is handed over many lines at a time, and no more of it is kept
// than makes a large part.
const (
	aheadLines = 500     // of one piece
	aheadBytes = 1 << 18 // and of its texts
)

// prepare makes e, the nth line, ready. The names of one import follow each other:
// trees of them grow at their end, and not everywhere.
func (i *importing) prepare(e Entry, nth int) (*ready, error) {
	at := strconv.FormatInt(int64(nth), 36)
	e.ID = "mem_" + i.batch[:6] + strings.Repeat("0", max(0, 6-len(at))) + at
	e.State, e.Rev = Active, 1
	e.CreatedAt, e.UpdatedAt = i.began, i.began
	e.ObservedAt = e.ObservedAt.UTC().Truncate(time.Millisecond)
	journal, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("store a memory: %w", err)
	}
	return &ready{Entry: e, hash: textHash(e.Text), journal: string(journal), indexed: i.Store.index.words.prepare(source{
		class: classActive, scope: e.Scope, text: e.Text, subject: e.Subject, conversation: e.Conversation, seq: e.Seq, at: e.ObservedAt.UnixMilli(), rev: e.Rev})}, nil
}

// readAhead stores all of r, and reads on while a part is stored and while the bot has
// its turn.
func (i *importing) readAhead(name string, r io.Reader) error {
	ctx, cancel := context.WithCancel(i.ctx)
	read, ended := make(chan []*ready, largestPart/aheadLines), make(chan error, 1)
	// go: it ends with the file or with ctx, and is waited for
	go func() {
		defer close(read)
		ended <- i.prepareAll(ctx, name, r, read)
	}()
	err := i.storeAll(read)
	cancel()
	if failed := <-ended; err == nil {
		err = failed
	}
	return err
}

func (i *importing) prepareAll(ctx context.Context, name string, r io.Reader, to chan<- []*ready) error {
	var piece []*ready
	lines, bytes := 0, 0
	send := func() error {
		select {
		case to <- piece:
			piece, bytes = nil, 0
			return nil
		case <-ctx.Done():
			return stop{ctx.Err()}
		}
	}
	failed := i.each(name, r, nil, func(e Entry, _ int) error {
		made, err := i.prepare(e, lines)
		if err != nil {
			return stop{err}
		}
		piece, lines, bytes = append(piece, made), lines+1, bytes+len(e.Text)
		if len(piece) < aheadLines && bytes < aheadBytes {
			return nil
		}
		return send()
	})
	if len(piece) > 0 { // if the file turns out to be bad, which the first reading rules out, what was read before that is stored
		if err := send(); err != nil && failed == nil {
			failed = i.ctx.Err()
		}
	}
	return failed
}

// addAll stores what is ready, in c, as new entries.
func (c *change) addAll(all []*ready) error {
	if len(all) == 0 {
		return nil
	}
	var last int64 // what SQLite goes by, if it gives the numbers
	if err := c.p.QueryRowContext(c.ctx, `SELECT max((SELECT coalesce(max(n), 0) FROM memory), (SELECT coalesce(max(doc), 0) FROM index_doc))`).Scan(&last); err != nil {
		return fmt.Errorf("store a memory: %w", err)
	}
	rows := bulk{tx: c.p, insert: `INSERT OR FAIL INTO memory (` + memoryColumns + `, n)`, width: strings.Count(memoryColumns, ",") + 2}
	ops := bulk{tx: c.p, insert: `INSERT OR FAIL INTO memory_op (batch, at, actor, op, entry, after)`, width: 6}
	for _, r := range all {
		last++
		if err := rows.add(c.ctx, append(r.row(r.hash), last)...); err != nil {
			return fmt.Errorf("store a memory: %w", err)
		}
		if err := ops.add(c.ctx, c.batch, c.now.UnixMilli(), c.actor, "add", r.ID, r.journal); err != nil {
			return fmt.Errorf("store a memory: %w", err)
		}
		r.indexed.doc = last
		c.touch(last, r.Scope)
		c.made = append(c.made, r.indexed)
	}
	for _, m := range []*bulk{&rows, &ops} {
		if err := m.flush(c.ctx); err != nil {
			return fmt.Errorf("store a memory: %w", err)
		}
	}
	return nil
}

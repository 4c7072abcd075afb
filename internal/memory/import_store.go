package memory

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"reverie/internal/store"
)

// An import takes the write lock for about importHold at a time, so that the bot
// that runs beside it never waits for long, and then leaves it alone for
// importPause: a database that is in use is asked again every tenth of a second.
const (
	importHold  = time.Second
	importPause = 110 * time.Millisecond

	firstPart, smallestPart, largestPart = 2000, 200, 12_000 // lines
	largestBytes                         = 8 << 20           // of their texts
)

// Import adds the lines of r, which people know as name. It reads r twice, and
// keeps little of it: the first time it only looks, and if a line is bad nothing
// is imported (BadLines). Then it adds them part by part, as one batch, each part
// wholly or not at all. Lines that are there already are left alone, so what was
// cut off is completed by importing the file again; that is a batch of its own.
// What was taken back (Undo) is added again; what was put away is there, and what was
// to be forgotten is left out. Two imports at once wait for each other.
func (m *Importer) Import(ctx context.Context, name string, r io.ReadSeeker) (ImportResult, error) {
	free, err := store.Guard(filepath.Join(m.Store.dir, "memories", ".import"))
	if err != nil {
		return ImportResult{}, fmt.Errorf("import %s: %w", name, err)
	}
	defer free()
	run := &importing{Importer: m, ctx: ctx, scopes: map[Scope]bool{}, ignored: map[string]bool{}, batch: newBatch(), began: m.Store.now().UTC().Truncate(time.Millisecond), size: firstPart, known: newKnown()}
	if m.atOnce > 0 {
		run.size = m.atOnce
	}
	if err := m.each(name, r, run.ignored, run.look); err != nil {
		return ImportResult{}, run.explain(name, err)
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return ImportResult{}, fmt.Errorf("import %s: %w", name, err)
	}
	run.known = newKnown()
	conn, done, err := roomy(ctx, m.Store.db)
	if err != nil {
		return ImportResult{}, run.explain(name, err)
	}
	defer done()
	run.conn = conn
	err = run.addAll(name, r)
	result := ImportResult{Lines: run.lines, Added: run.added, Known: run.there, Forgotten: run.forgotten, Ignored: slices.Sorted(maps.Keys(run.ignored))}
	if run.added > 0 {
		result.Batch = run.batch
	}
	return result, run.explain(name, err)
}

// importing is one import under way.
type importing struct {
	*Importer
	ctx     context.Context
	known   known
	scopes  map[Scope]bool // that the file names
	ignored map[string]bool
	batch   string
	began   time.Time // when all of it was made

	conn *sql.Conn // roomy

	lines, read, added, there, forgotten int

	size    int // of the next part
	part    []*ready
	changes int64 // of memory, when known was read; nobody else made one since
}

// explain says how far the import came.
func (i *importing) explain(name string, err error) error {
	if err == nil {
		return nil
	}
	if failed := (stop{}); errors.As(err, &failed) {
		err = failed.error
	}
	if i.ctx.Err() != nil { // the database says it in many ways
		err = i.ctx.Err()
	}
	if i.added == 0 {
		if bad := (BadLines)(nil); errors.As(err, &bad) {
			return err
		}
		return fmt.Errorf("import %s: nothing was imported: %w", name, err)
	}
	return fmt.Errorf("import %s: it was cut off after %d memories, which stay; import the file again to complete it, or take them back with `bot memory undo %s`: %w",
		name, i.added, i.batch, err)
}

// look is the first reading.
func (i *importing) look(e Entry, _ int) error {
	i.lines++
	i.scopes[e.Scope] = true
	if err := i.known.learn(i.ctx, i.Store.db, e.Scope); err != nil {
		return stop{err}
	}
	_, err := i.known.has(e, "")
	return err
}

// addAll is the second. Hand edits come first, and the files last.
func (i *importing) addAll(name string, r io.Reader) error {
	scopes := slices.Sorted(maps.Keys(i.scopes))
	for _, scope := range scopes {
		if err := i.Store.mend(i.ctx, scope); err != nil {
			return err
		}
	}
	err := i.readAhead(name, r)
	if i.added == 0 {
		return err
	}
	for _, scope := range scopes {
		if err := i.Store.mend(i.ctx, scope); err != nil {
			i.Store.log.Error("memory is stored, but its file could not be written; it is tried again", "file", i.Store.File(scope), "err", err)
		}
	}
	return err
}

// storeAll stores what is read, part by part.
func (i *importing) storeAll(read <-chan []*ready) error {
	bytes := 0
	for piece := range read {
		for _, r := range piece {
			i.read, bytes = i.read+1, bytes+len(r.Text)
			if i.part = append(i.part, r); len(i.part) >= i.size || bytes >= largestBytes {
				if err := i.flush(); err != nil {
					return err
				}
				bytes = 0
			}
		}
	}
	if len(i.part) > 0 {
		return i.flush()
	}
	return nil
}

// flush stores the part, in a transaction.
func (i *importing) flush() error {
	begin := time.Now()
	if err := i.store(); err != nil {
		return stop{err}
	}
	took := time.Since(begin)
	clear(i.part)
	i.part = i.part[:0]
	if i.Progress != nil {
		i.Progress(i.read, i.lines)
	}
	if i.atOnce > 0 || i.read >= i.lines {
		return nil
	}
	i.size = min(max(int(float64(i.size)*min(2, float64(importHold)/float64(took))), smallestPart), largestPart)
	if err := pause(i.ctx, i.conn); err != nil {
		return stop{err}
	}
	return nil
}

func (i *importing) store() error {
	unlock, err := i.Store.lock()
	if err != nil {
		return err
	}
	defer unlock()
	var added, there, forgotten int
	_, err = i.Store.commitOn(i.ctx, i.conn, "import", func(c *change) error {
		c.batch = i.batch
		if err := i.refresh(c); err != nil {
			return err
		}
		gone, err := readTombstones(c.ctx, c.p)
		if err != nil {
			return err
		}
		fresh := make([]*ready, 0, len(i.part))
		for _, r := range i.part {
			if err := i.known.learn(c.ctx, c.p, r.Scope); err != nil {
				return err
			}
			known, err := i.known.has(r.Entry, r.hash)
			switch {
			case err != nil:
				return err
			case known:
				there++
			case gone.has(r.Scope, r.Text):
				forgotten++
			default:
				fresh = append(fresh, r)
			}
		}
		added = len(fresh)
		return c.addAll(fresh)
	})
	if err != nil {
		return err
	}
	i.added, i.there, i.forgotten = i.added+added, i.there+there, i.forgotten+forgotten
	if added > 0 {
		i.changes++
	}
	return nil
}

// refresh reads anew what is known if somebody changed memory between two parts.
func (i *importing) refresh(c *change) error {
	var n int64
	if err := c.tx.QueryRowContext(c.ctx, `SELECT n FROM memory_change`).Scan(&n); err != nil {
		return err
	}
	if n != i.changes {
		i.changes, i.known = n, newKnown()
	}
	return nil
}

// known is what is there already, and what the file said before.
type known struct {
	scopes map[Scope]bool  // whose entries were read
	refs   map[int64]int64 // ref → text; all as hashes
	texts  map[int64]bool
}

func newKnown() known { return known{map[Scope]bool{}, map[int64]int64{}, map[int64]bool{}} }

// has reports whether e is there, and is told of it. The same ref with another
// text is an error. hash is that of its text, if that was made already.
func (k known) has(e Entry, hash string) (bool, error) {
	if e.Ref == "" {
		if hash == "" {
			hash = textHash(e.Text)
		}
		text := textKey(e.Scope, hash, e.Conversation, e.Seq)
		there := k.texts[text]
		k.texts[text] = true
		return there, nil
	}
	ref, text := hash64("ref", string(e.Scope), e.Ref), hash64(e.Text)
	old, there := k.refs[ref]
	if there && old != text {
		return true, fmt.Errorf("ref %q stands for another text already; give this one a ref of its own, or forget the other first", e.Ref)
	}
	k.refs[ref] = text
	return there, nil
}

func textKey(scope Scope, hash, conversation string, seq int) int64 {
	return hash64("text", string(scope), hash, conversation, strconv.Itoa(seq))
}

// takenBack is true of an entry whose coming was taken back: of what was done to it, the
// last takes back (what took back …) its coming. What somebody put away is not undone.
const takenBack = `(state = 'archived' AND EXISTS (
	WITH RECURSIVE back (op, undoes) AS (
		SELECT op, undoes FROM memory_op WHERE seq = (SELECT max(seq) FROM memory_op WHERE entry = memory.id) AND undoes <> 0
		UNION ALL SELECT o.op, o.undoes FROM back CROSS JOIN memory_op AS o ON o.seq = back.undoes WHERE back.undoes <> 0)
	SELECT 1 FROM back WHERE op = 'add'))`

// learn reads what is in scope, once. What was undone may come again.
func (k known) learn(ctx context.Context, db querier, scope Scope) error {
	if k.scopes[scope] {
		return nil
	}
	rows, err := db.QueryContext(ctx, `SELECT ref, text, hash, conversation, seq FROM memory WHERE scope = ? AND state <> 'forgotten' AND NOT `+takenBack, scope)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var ref, text, hash, conversation string
		var seq int
		if err := rows.Scan(&ref, &text, &hash, &conversation, &seq); err != nil {
			return err
		}
		if ref != "" {
			k.refs[hash64("ref", string(scope), ref)] = hash64(text)
		}
		k.texts[textKey(scope, hash, conversation, seq)] = true
	}
	k.scopes[scope] = true
	return rows.Err()
}

// tombstones are what was to be forgotten.
type tombstones struct {
	salt   []byte
	hashes map[string]bool
}

func readTombstones(ctx context.Context, db queryer) (tombstones, error) {
	salt, err := readSalt(ctx, db)
	if err != nil {
		return tombstones{}, err
	}
	hashes, err := list[string](ctx, db, `SELECT hash FROM memory_forgotten`)
	if err != nil {
		return tombstones{}, fmt.Errorf("read memory: %w", err)
	}
	t := tombstones{salt, make(map[string]bool, len(hashes))}
	for _, h := range hashes {
		t.hashes[h] = true
	}
	return t, nil
}

func (t tombstones) has(scope Scope, text string) bool {
	return len(t.hashes) > 0 && t.hashes[tombstone(t.salt, scope, text)]
}

// pause leaves the database alone for importPause. Meanwhile what conn, which is
// roomy, wrote comes from the log into the database: that keeps nobody from writing.
func pause(ctx context.Context, conn *sql.Conn) error {
	begin := time.Now()
	if err := settle(ctx, conn); err != nil {
		return cmp.Or(ctx.Err(), err)
	}
	return rest(ctx, importPause-time.Since(begin))
}

// settle brings what was written from the log into the database, as far as nobody
// still reads what was there before.
func settle(ctx context.Context, conn *sql.Conn) error {
	if _, err := conn.ExecContext(ctx, `PRAGMA wal_checkpoint(PASSIVE)`); err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	return nil
}

// roomy is a connection with room for the trees that rows go to random places
// of: without it, and if each part begins with an empty cache, pages are written
// and read again all the time. It leaves it to pause to empty the log. done gives
// it back as it was.
func roomy(ctx context.Context, db *sql.DB) (conn *sql.Conn, done func(), err error) {
	if conn, err = db.Conn(ctx); err != nil {
		return nil, nil, fmt.Errorf("memory: %w", err)
	}
	var room, log int
	if err = conn.QueryRowContext(ctx, `PRAGMA cache_size`).Scan(&room); err == nil {
		err = conn.QueryRowContext(ctx, `PRAGMA wal_autocheckpoint`).Scan(&log)
	}
	if err == nil {
		_, err = conn.ExecContext(ctx, `PRAGMA cache_size = -32768; PRAGMA wal_autocheckpoint = 0`)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("memory: %w", err), conn.Close())
	}
	return conn, func() {
		// Best effort: more room than asked for harms nobody, and others empty the log too.
		ctx := context.WithoutCancel(ctx)
		_ = settle(ctx, conn)
		_, _ = conn.ExecContext(ctx, fmt.Sprintf(`PRAGMA cache_size = %d; PRAGMA wal_autocheckpoint = %d`, room, log))
		_ = conn.Close()
	}, nil
}

package memory

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The index is made anew beside the one in use, in tables of other names and part by
// part, so that others can write meanwhile. What they change is written to the index in
// use, as ever, and to the new one at the end, when it takes the other's place. One that
// was cut off is of no use to anybody: the next one removes it, and so does whoever
// forgets something, as it may stand there. Then it is begun anew.

// indexTables are the tables of the index, but for their prefix.
var indexTables = []string{"fts", "doc", "term", "scope"}

// The prefixes of the index in use, of one that is being made, and of one that is no
// longer in use.
const inUse, beingMade, outOfUse = "index_", "fresh_", "stale_"

// errInterrupted says that somebody removed the index that was being made, or that it is
// better begun anew.
var errInterrupted = errors.New("somebody forgot something meanwhile, changed very much, or makes the index anew as well; try again")

// rebuildAttempts is how often it is begun anew.
const rebuildAttempts = 5

const (
	firstUndone, smallestUndone, largestUndone = 200, 20, 8000 // operations of one part
	undoHold                                   = 700 * time.Millisecond
)

// grown is how many operations take about undoHold, if size took that long.
func grown(size int, took time.Duration) int {
	return min(max(int(float64(size)*min(2, float64(undoHold)/float64(took))), smallestUndone), largestUndone)
}

const mergedPages = 2000

// lastly is how many changed texts may be left for the moment when the indexes change places.
const lastly = 200

// mostGone is how many texts may be taken out of it again.
const mostGone = 500

// Rebuild implements index. Until it is done, and if it fails, the old index stays.
func (f *FTS) Rebuild(ctx context.Context, progress func(done, total int)) error {
	conn, free, err := roomy(ctx, f.db)
	if err != nil {
		return fmt.Errorf("reindex: %w", err)
	}
	defer free()
	for range rebuildAttempts {
		r := rebuild{f: f, conn: conn, token: rand.Text()}
		if err = r.run(ctx, progress); !errors.Is(err, errInterrupted) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("reindex: %w", err)
	}
	return nil
}

// rebuild is an index being made.
type rebuild struct {
	f     *FTS
	conn  *sql.Conn
	token string // stands in fresh_run while the index that is being made is ours

	op, turn int64 // the last change of entries and of messages that is in it
}

func (r *rebuild) run(ctx context.Context, progress func(done, total int)) error {
	if err := r.in(ctx, func(tx *sql.Tx) error { return r.begin(ctx, tx) }); err != nil {
		return err
	}
	if err := r.fill(ctx, progress); err != nil {
		return err
	}
	for left := lastly + 1; left > lastly; {
		err := r.in(ctx, func(tx *sql.Tx) (err error) { left, err = r.catchUp(ctx, tx); return err })
		if err == nil && left > lastly {
			err = pause(ctx, r.conn)
		}
		if err != nil {
			return err
		}
	}
	if err := r.in(ctx, func(tx *sql.Tx) error { return r.swap(ctx, tx) }); err != nil {
		return err
	}
	return r.clear(ctx)
}

// in runs do in a transaction.
func (r *rebuild) in(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := r.conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // nothing after Commit
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// begin makes the empty tables.
func (r *rebuild) begin(ctx context.Context, tx *sql.Tx) error {
	if err := removeUnused(ctx, tx); err != nil {
		return err
	}
	var do []string
	for _, table := range indexTables {
		var made string
		if err := tx.QueryRowContext(ctx, `SELECT sql FROM sqlite_schema WHERE name = ?`, inUse+table).Scan(&made); err != nil {
			return err
		}
		do = append(do, fresh.Replace(made))
	}
	do = append(do, `CREATE INDEX fresh_doc_by_place ON fresh_doc (place, seq, doc) WHERE place <> 0`,
		`INSERT INTO fresh_fts (fresh_fts, rank) VALUES ('hashsize', 16777216)`, `CREATE TABLE fresh_run (token TEXT NOT NULL) STRICT`)
	for _, s := range do {
		if _, err := tx.ExecContext(ctx, s); err != nil {
			return err
		}
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO fresh_run (token) VALUES (?)`, r.token); err != nil {
		return err
	}
	return tx.QueryRowContext(ctx, `SELECT coalesce((SELECT max(seq) FROM memory_op), 0), coalesce((SELECT max(seq) FROM memory_turn_change), 0)`).Scan(&r.op, &r.turn)
}

// fresh makes a statement on the index in use one on the index that is being made.
var fresh = func() *strings.Replacer {
	var names []string
	for _, table := range indexTables {
		names = append(names, inUse+table, beingMade+table)
	}
	return strings.NewReplacer(names...)
}()

// check is errInterrupted if the index that is being made is not ours any more.
func (r *rebuild) check(ctx context.Context, tx *sql.Tx) error {
	var ours bool
	err := tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'fresh_run')`).Scan(&ours)
	if err == nil && ours {
		err = tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM fresh_run WHERE token = ?)`, r.token).Scan(&ours)
	}
	if err == nil && !ours {
		err = errInterrupted
	}
	return err
}

// write takes gone out of the index that is being made and puts all in.
func (r *rebuild) write(ctx context.Context, tx *sql.Tx, gone []int64, all []*made) error {
	if err := r.check(ctx, tx); err != nil {
		return err
	}
	p := prepare(tx)
	defer p.close()
	p.names = fresh
	w := r.f.writer(p)
	if err := w.removeAll(ctx, gone); err != nil {
		return err
	}
	return w.insertAll(ctx, all)
}

// fill writes all texts, part by part. They are read and made beside those who write;
// what is changed since comes with catchUp.
func (r *rebuild) fill(ctx context.Context, progress func(done, total int)) error {
	size := firstUndone
	return eachSource(ctx, r.f.db, func(all []source, done, total int) error {
		texts := r.f.words.makeAll(all)
		for left := texts; len(left) > 0; {
			part := left[:min(size, len(left))]
			left = left[len(part):]
			start := time.Now()
			if err := r.in(ctx, func(tx *sql.Tx) error { return r.write(ctx, tx, nil, part) }); err != nil {
				return err
			}
			size = grown(size, max(time.Since(start), time.Millisecond))
			if done == total && len(left) == 0 {
				break // there is nobody to wait for
			}
			if err := pause(ctx, r.conn); err != nil {
				return err
			}
		}
		if progress != nil {
			progress(done, total)
		}
		return nil
	})
}

// catchUp writes what was changed since, and says how many texts that were.
func (r *rebuild) catchUp(ctx context.Context, tx *sql.Tx) (int, error) {
	if err := r.check(ctx, tx); err != nil {
		return 0, err
	}
	entries, err := list[int64](ctx, tx, `SELECT n FROM memory WHERE id IN (SELECT entry FROM memory_op WHERE seq > ?) ORDER BY n`, r.op)
	if err != nil {
		return 0, err
	}
	turns, err := list[int64](ctx, tx, `SELECT n FROM memory_turn_change WHERE seq > ? ORDER BY n`, r.turn)
	if err != nil {
		return 0, err
	}
	var all []source
	gone := slices.Clone(entries)
	for _, n := range turns {
		gone = append(gone, -n)
	}
	for query, numbers := range map[string][]int64{entrySource: entries, turnSource: turns} {
		for part := range slices.Chunk(numbers, 500) {
			in, args := list64(part)
			some, err := sources(ctx, tx, query+` AND n IN `+in, args...)
			if err != nil {
				return 0, err
			}
			all = append(all, some...)
		}
	}
	if slow, err := r.slow(ctx, tx, gone); err != nil || slow {
		return 0, cmp.Or(err, errInterrupted)
	}
	if err := r.write(ctx, tx, gone, r.f.words.makeAll(all)); err != nil {
		return 0, err
	}
	return len(gone), tx.QueryRowContext(ctx, `SELECT max(?, coalesce((SELECT max(seq) FROM memory_op), 0)), max(?, coalesce((SELECT max(seq) FROM memory_turn_change), 0))`,
		r.op, r.turn).Scan(&r.op, &r.turn)
}

// slow reports whether more of gone is in the index that is being made than may be.
func (r *rebuild) slow(ctx context.Context, tx *sql.Tx, gone []int64) (bool, error) {
	if len(gone) <= mostGone {
		return false, nil
	}
	docs, err := json.Marshal(gone)
	if err != nil {
		return false, err
	}
	n, err := list[int](ctx, tx, `SELECT count(*) FROM json_each(?) AS j CROSS JOIN fresh_doc AS d ON d.doc = j.value`, string(docs))
	return err == nil && n[0] > mostGone, err
}

// swap puts the index that was made in the place of the one in use.
func (r *rebuild) swap(ctx context.Context, tx *sql.Tx) error {
	if _, err := r.catchUp(ctx, tx); err != nil {
		return err
	}
	var do []string
	for _, table := range indexTables {
		do = append(do, `ALTER TABLE `+inUse+table+` RENAME TO `+outOfUse+table, `ALTER TABLE `+beingMade+table+` RENAME TO `+inUse+table)
	}
	do = append(do, `DROP INDEX index_doc_by_place`, `DROP INDEX fresh_doc_by_place`, `CREATE INDEX index_doc_by_place ON index_doc (place, seq, doc) WHERE place <> 0`,
		`DROP TABLE fresh_run`, `UPDATE memory_change SET n = n + 1`) // who has a list of what is in it makes another
	for _, s := range do {
		if _, err := tx.ExecContext(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// clear removes the index that is no longer in use, part by part: what is deleted is
// overwritten, and that takes time.
func (r *rebuild) clear(ctx context.Context) error {
	for _, table := range []string{"fts_data", "fts_content"} {
		for more := true; more; {
			err := r.in(ctx, func(tx *sql.Tx) error {
				var there bool // or somebody removed it
				err := tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = ?)`, outOfUse+table).Scan(&there)
				if more = false; err != nil || !there {
					return err
				}
				result, err := tx.ExecContext(ctx, `DELETE FROM `+outOfUse+table+` WHERE id IN (SELECT id FROM `+outOfUse+table+` ORDER BY id DESC LIMIT ?)`, mergedPages)
				if err != nil {
					return err
				}
				n, err := result.RowsAffected()
				more = n > 0
				return err
			})
			if err == nil && more {
				err = pause(ctx, r.conn)
			}
			if err != nil {
				return err
			}
		}
	}
	return r.in(ctx, func(tx *sql.Tx) error { return removeUnused(ctx, tx) })
}

// removeUnused removes what is left of indexes that are not in use, and with it what
// is being made: that is begun anew.
func removeUnused(ctx context.Context, tx transaction) error {
	tables, err := list[string](ctx, tx, `SELECT name FROM sqlite_schema WHERE type = 'table' AND name IN ('fresh_run', 'fresh_fts', 'fresh_doc', 'fresh_term', 'fresh_scope',
		'stale_fts', 'stale_doc', 'stale_term', 'stale_scope')`)
	for _, name := range tables {
		if err == nil {
			_, err = tx.ExecContext(ctx, `DROP TABLE `+name)
		}
	}
	return err
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

package memory

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"
)

// Past messages have vectors beside the entries, on the shelf of their scope. What
// stands for one is minus its number, as in the full-text index.
const (
	maxTurns  = 50_000 // messages that have one: the newest
	turnBytes = 12     // shorter ones say nothing that could be looked for
	turnChars = 2_000  // of a message that are read
	turnBatch = 8      // messages that are embedded together in the background: a question does not wait long

	// turnRest is how much longer than the work the rest after it is. Nobody waits for
	// the vectors of messages, and a small machine has other things to do.
	turnRest    = 3
	longestTurn = 10 * time.Second
)

// turnReadable is what is embedded, of the messages from number ? on.
const turnReadable = `octet_length(t.text) >= 12 AND t.n >= ?`

const turnVectorColumns = `SELECT -t.n, t.scope, ` + turnReadable + `, 0, iif(t.conversation = '', '', char(1) || t.conversation), t.seq, t.at, v.n IS NOT NULL, coalesce(v.vec, x'')
	FROM memory_turn t LEFT JOIN memory_turn_vector v ON v.n = t.n AND v.space = ? `

// followTurns is catchUp for messages.
func (v *Vectors) followTurns(ctx context.Context) error {
	var last int64
	if err := v.db.QueryRowContext(ctx, `SELECT coalesce(max(seq), 0) FROM memory_turn_change`).Scan(&last); err != nil {
		return fmt.Errorf("read vectors: %w", err)
	}
	switch {
	case last == v.heard:
		return nil
	case v.heard < 0:
		if err := v.oldest(ctx); err != nil {
			return err
		}
		if err := v.load(ctx, turnVectorColumns+`WHERE `+turnReadable+` ORDER BY t.scope, t.conversation, t.seq, t.n`, v.firstTurn, v.space, v.firstTurn); err != nil {
			return err
		}
		v.heard = last
		return nil
	}
	changed, err := numbers(ctx, v.db, `SELECT n FROM memory_turn_change WHERE seq > ? AND seq <= ?`, v.heard, last)
	if err != nil {
		return err
	}
	v.dropTurns(changed)
	for part := range slices.Chunk(changed, 500) {
		if err := v.loadTurns(ctx, part); err != nil {
			return err
		}
	}
	v.heard = last
	if v.countTurns() > v.turnLimit+v.turnLimit/20 {
		return v.oldest(ctx)
	}
	return nil
}

func (v *Vectors) loadTurns(ctx context.Context, turns []int64) error {
	in, args := list64(turns)
	return v.load(ctx, turnVectorColumns+`WHERE t.n IN `+in, append([]any{v.firstTurn, v.space}, args...)...)
}

// oldest finds which message is the first to have a vector, and drops those before it.
func (v *Vectors) oldest(ctx context.Context) error {
	first, err := numbers(ctx, v.db, `SELECT n FROM memory_turn t WHERE `+turnReadable+` ORDER BY n DESC LIMIT 1 OFFSET ?`, v.firstTurn, v.turnLimit-1)
	if err != nil || len(first) == 0 {
		return err
	}
	v.firstTurn = first[0]
	var old []int64
	v.mu.RLock()
	for n := range v.scopes {
		if n < 0 && -n < v.firstTurn {
			old = append(old, -n)
		}
	}
	for _, some := range []map[int64]bool{v.empty, v.missing} {
		for n := range some {
			if n < 0 && -n < v.firstTurn {
				old = append(old, -n)
			}
		}
	}
	v.mu.RUnlock()
	v.dropTurns(old)
	return nil
}

func (v *Vectors) dropTurns(turns []int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, n := range turns {
		v.drop(-n)
	}
}

// countTurns is how many messages have a vector or are to get one.
func (v *Vectors) countTurns() int {
	v.mu.RLock()
	defer v.mu.RUnlock()
	done, total := v.counts(func(n int64) bool { return n < 0 })
	return max(done, total)
}

// counts are how many of what is of a kind were read, and how many there are.
func (v *Vectors) counts(kind func(n int64) bool) (done, total int) {
	for n := range v.scopes {
		if kind(n) {
			done++
		}
	}
	for n := range v.empty {
		if kind(n) {
			done++
		}
	}
	total = done
	for n := range v.missing {
		if kind(n) {
			total++
		}
	}
	return done, total
}

// urgency is in which order vectors are made: of entries before those of messages,
// of both the newest first.
func urgency(n int64) int64 {
	if n < 0 {
		return -n - 1<<62
	}
	return n
}

// together cuts chosen, the most urgent last, to what is embedded at once: entries
// or messages, and in the background few of these.
func together(chosen []int64, background bool) []int64 {
	entries := slices.IndexFunc(chosen, func(n int64) bool { return n > 0 })
	switch {
	case entries >= 0:
		return chosen[entries:]
	case background && len(chosen) > turnBatch:
		return chosen[len(chosen)-turnBatch:]
	}
	return chosen
}

// split tells entries from messages, whose numbers it makes positive.
func split(all []int64) (entries, turns []int64) {
	for _, n := range all {
		if n < 0 {
			turns = append(turns, -n)
		} else {
			entries = append(entries, n)
		}
	}
	return entries, turns
}

// reload takes in from the database what is known of all.
func (v *Vectors) reload(ctx context.Context, all []int64) error {
	entries, turns := split(all)
	if len(entries) > 0 {
		in, args := list64(entries)
		if err := v.load(ctx, vectorColumns+`WHERE m.n IN `+in, append([]any{v.space}, args...)...); err != nil {
			return err
		}
	}
	if len(turns) == 0 {
		return nil
	}
	return v.loadTurns(ctx, turns)
}

// texts reads what is to be embedded of all.
func (v *Vectors) texts(ctx context.Context, all []int64) ([]unread, error) {
	entries, turns := split(all)
	var out []unread
	for _, kind := range []struct {
		query   string
		numbers []int64
	}{
		{`SELECT n, hash, text FROM memory m WHERE ` + indexed + ` AND n IN `, entries},
		{fmt.Sprintf(`SELECT -n, 'turn ' || n, substr(text, 1, %d) FROM memory_turn WHERE octet_length(text) >= %d AND n IN `, turnChars, turnBytes), turns},
	} {
		if len(kind.numbers) == 0 {
			continue
		}
		in, args := list64(kind.numbers)
		rows, err := v.db.QueryContext(ctx, kind.query+in, args...)
		if err != nil {
			return nil, fmt.Errorf("embed memories: %w", err)
		}
		defer rows.Close()
		for rows.Next() {
			var u unread
			if err := rows.Scan(&u.n, &u.hash, &u.text); err != nil {
				return nil, fmt.Errorf("embed memories: %w", err)
			}
			out = append(out, u)
		}
		if err := rows.Err(); err != nil {
			return nil, fmt.Errorf("embed memories: %w", err)
		}
	}
	return out, nil
}

// writeTurn stores the vector of the message u, unless it was changed or taken back
// meanwhile.
func (v *Vectors) writeTurn(ctx context.Context, tx *sql.Tx, u unread, code []byte) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO memory_turn_vector (n, space, vec) SELECT n, ?, ? FROM memory_turn WHERE n = ? AND substr(text, 1, ?) = ?
		ON CONFLICT (n) DO UPDATE SET space = excluded.space, vec = excluded.vec`, v.space, code, -u.n, turnChars, u.text)
	return err
}

// restAfter is how long Run rests after work that took so long.
func (v *Vectors) restAfter(took time.Duration) time.Duration {
	if v.spoken.Load() {
		return min(turnRest*took, longestTurn)
	}
	return min(took, longestRest)
}

// numbers reads a column of numbers.
func numbers(ctx context.Context, db querier, query string, args ...any) ([]int64, error) {
	out, err := list[int64](ctx, db, query, args...)
	if err != nil {
		return nil, fmt.Errorf("read vectors: %w", err)
	}
	return out, nil
}

// spoken is the line about messages of VectorStatus.Line.
func (s VectorStatus) spoken() string {
	if s.TurnsTotal == 0 {
		return ""
	}
	return fmt.Sprintf("; of past messages %d of %d", s.Turns, s.TurnsTotal)
}

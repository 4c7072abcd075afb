package memory

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

const (
	sendAtOnce   = 256            // points in one request
	compareEvery = 24 * time.Hour // all points with the entries
	atOnce       = 5 * time.Second
)

// Run tells the server what it has to know until ctx ends: what is to be there no
// longer first, then the newest. At the start, and once a day, it compares all. While the server
// fails it tries ever more rarely.
func (p *Points) Run(ctx context.Context) error {
	pause := firstPause
	for ctx.Err() == nil {
		begin := p.now()
		done, err := p.step(ctx)
		if err == nil && done == 0 {
			err = p.keepUp(ctx)
		}
		switch {
		case ctx.Err() != nil:
		case err != nil:
			p.failed(ctx, err)
			p.nap(ctx, pause)
			pause = min(2*pause, lastPause)
		case done > 0:
			pause = firstPause
		default:
			pause = firstPause
			p.nap(ctx, max(lookAgain, 10*p.now().Sub(begin)))
		}
	}
	return nil
}

// keepUp is what is to be done when nothing waits.
func (p *Points) keepUp(ctx context.Context) error {
	p.feeding.Lock()
	defer p.feeding.Unlock()
	if p.ready == 0 {
		return nil
	}
	if p.compared.IsZero() || p.now().Sub(p.compared) >= compareEvery {
		found, err := p.reconcile(ctx, true)
		if err != nil {
			return err
		}
		p.compared = p.now()
		if n := found.strange + found.stale + found.missing; n > 0 {
			p.log.LogAttrs(ctx, slog.LevelInfo, "the Qdrant server is brought up to date", slog.Int("removed", found.strange), slog.Int("changed", found.stale), slog.Int("missing", found.missing))
			p.Wake()
		}
	}
	if s := p.vectors.Status(); s.Done+s.Refused < s.Total {
		return nil
	}
	return p.tidy(ctx)
}

// Complete sends all that waits. It ends with the first failure; what was sent
// stays.
func (p *Points) Complete(ctx context.Context) error {
	for {
		done, err := p.step(ctx)
		if done == 0 || err != nil {
			return err
		}
	}
}

// step tells the server some of what waits, and returns how much.
func (p *Points) step(ctx context.Context) (int, error) {
	p.feeding.Lock()
	defer p.feeding.Unlock()
	done, err := p.takeOut(ctx)
	if err != nil || done > 0 || p.vectors == nil {
		return done, err
	}
	if err := p.vectors.follow(ctx); err != nil {
		return 0, err
	}
	space, dim := p.vectors.current()
	if space == 0 {
		return 0, nil
	}
	if p.lost.Swap(false) || space != p.ready || !p.health.well() { // it may have come back empty
		p.ready = 0
		if err := p.prepare(ctx, space, dim); err != nil {
			return 0, err
		}
	}
	done, err = p.send(ctx, space, dim)
	if err != nil {
		p.ready = 0
		return 0, err
	}
	p.works(ctx)
	return done, nil
}

// leave has what was forgotten leave the server now, or else when it can.
func (p *Points) leave(ctx context.Context) {
	if !p.feeding.TryLock() {
		p.Wake() // who holds it does that next
		return
	}
	defer p.feeding.Unlock()
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), atOnce, fmt.Errorf("no answer within %s", atOnce))
	defer cancel()
	for {
		done, err := p.takeOut(ctx)
		if err != nil {
			p.failed(ctx, err)
			p.log.LogAttrs(ctx, slog.LevelWarn, "what was forgotten is still on the Qdrant server, where nobody finds it; it leaves when the server can be reached", slog.String("err", err.Error()))
		}
		if done == 0 || err != nil {
			return
		}
	}
}

// mail is a row of the outbox, and what the server has to know of its entry.
type mail struct {
	No    int64  `json:"no"`
	Entry string `json:"entry"`
	Rev   int64  `json:"rev"` // of the entry, as sent; 0 = it is gone
}

// takeOut removes entries from every collection that may hold them.
func (p *Points) takeOut(ctx context.Context) (int, error) {
	rows, err := p.db.QueryContext(ctx, `SELECT no, entry FROM memory_outbox WHERE gone = 1 ORDER BY no LIMIT ?`, sendAtOnce)
	if err != nil {
		return 0, fmt.Errorf("read the outbox: %w", err)
	}
	defer rows.Close()
	var out []mail
	var ids []string
	for rows.Next() {
		var m mail
		if err := rows.Scan(&m.No, &m.Entry); err != nil {
			return 0, fmt.Errorf("read the outbox: %w", err)
		}
		out, ids = append(out, m), append(ids, pointID(m.Entry))
	}
	if err := rows.Err(); err != nil || len(out) == 0 {
		return 0, err
	}
	names, err := p.collections(ctx)
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		if err := p.server.remove(ctx, name, ids); err != nil && !isNotThere(err) {
			return 0, err
		}
	}
	return len(out), p.settle(ctx, out)
}

// collections are those on the server that are ours.
func (p *Points) collections(ctx context.Context) ([]string, error) {
	rows, err := p.db.QueryContext(ctx, `SELECT name FROM memory_collection`)
	if err != nil {
		return nil, fmt.Errorf("read the outbox: %w", err)
	}
	defer rows.Close()
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, fmt.Errorf("read the outbox: %w", err)
		}
		names = append(names, name)
	}
	return names, rows.Err()
}

// send sends entries that have a vector, the newest first. What has none yet waits.
func (p *Points) send(ctx context.Context, space int64, dim int) (int, error) {
	rows, err := p.db.QueryContext(ctx, `SELECT o.no, m.id, m.rev, m.scope, m.state, m.observed_at, v.vec
		FROM memory_outbox AS o CROSS JOIN memory AS m ON m.id = o.entry JOIN memory_vector AS v ON v.space = ? AND v.hash = m.hash
		WHERE o.gone = 0 AND `+indexed+` ORDER BY o.no DESC LIMIT ?`, space, sendAtOnce)
	if err != nil {
		return 0, fmt.Errorf("read the outbox: %w", err)
	}
	defer rows.Close()
	var out []mail
	var points []point
	for rows.Next() {
		var m mail
		var pay pointPayload
		var vec []byte
		if err := rows.Scan(&m.No, &m.Entry, &m.Rev, &pay.Scope, &pay.State, &pay.At, &vec); err != nil {
			return 0, fmt.Errorf("read the outbox: %w", err)
		}
		out = append(out, m)
		code, err := decodeVector(vec, dim)
		if err != nil || code == nil {
			continue // there is nothing to send; a damaged one is made again, and missed at the next comparing
		}
		pay.Entry, pay.Rev = m.Entry, m.Rev
		vector := make([]int, dim)
		for i, c := range code {
			vector[i] = int(c)
		}
		points = append(points, point{pointID(m.Entry), vector, pay})
	}
	if err := rows.Err(); err != nil || len(out) == 0 {
		return 0, err
	}
	if len(points) > 0 {
		if err := p.server.upsert(ctx, collectionName(p.alias, p.vectors.embedder.Name(), dim), points); err != nil {
			return 0, err
		}
	}
	return len(out), p.settle(ctx, out)
}

// settle takes rows that the server has confirmed out of the outbox. What changed
// while it was sent may have been confirmed by somebody else already, and then have been
// overwritten with what was sent: it is noted once more.
func (p *Points) settle(ctx context.Context, sent []mail) error {
	list, err := json.Marshal(sent)
	if err != nil {
		return err
	}
	tx, err := p.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("keep the outbox: %w", err)
	}
	defer func() { _ = tx.Rollback() }()
	for _, statement := range []string{
		`DELETE FROM memory_outbox WHERE no IN (SELECT value ->> 'no' FROM json_each(?))`,
		`INSERT INTO memory_outbox (entry, gone) SELECT m.id, NOT (` + indexed + `) FROM json_each(?) AS j CROSS JOIN memory AS m ON m.id = j.value ->> 'entry'
			WHERE (j.value ->> 'rev') <> (CASE WHEN ` + indexed + ` THEN m.rev ELSE 0 END) ON CONFLICT DO NOTHING`,
	} {
		if _, err := tx.ExecContext(ctx, statement, string(list)); err != nil {
			return fmt.Errorf("keep the outbox: %w", err)
		}
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("keep the outbox: %w", err)
	}
	return nil
}

// prepare sees that the server has the collection of the present vectors, and
// searches there. One that is new, or was lost, gets everything.
func (p *Points) prepare(ctx context.Context, space int64, dim int) error {
	name := collectionName(p.alias, p.vectors.embedder.Name(), dim)
	ours, err := p.collections(ctx)
	if err != nil {
		return err
	}
	known := slices.Contains(ours, name)
	info, err := p.server.collection(ctx, name)
	there := err == nil
	if err != nil && !isNotThere(err) {
		return err
	}
	if v := info.Config.Params.Vectors; there && (v.Size != dim || v.Distance != "Cosine") {
		if !known {
			return fmt.Errorf("the collection %s on the Qdrant server is not one of this bot: it compares %d numbers by %q, not %d by Cosine; choose another name for memory.qdrant.collection", name, v.Size, v.Distance, dim)
		}
		if err := p.server.drop(ctx, name); err != nil {
			return err
		}
		there = false
	}
	if !there {
		if known {
			p.log.LogAttrs(ctx, slog.LevelWarn, "the Qdrant server has lost the memories' vectors; it gets them again", slog.String("collection", name))
		}
		if err := p.server.create(ctx, name, dim); err != nil {
			return err
		}
	}
	for _, f := range pointFields {
		if _, has := info.Schema[f[0]]; !there || !has {
			if err := p.server.indexField(ctx, name, f[0], f[1]); err != nil {
				return err
			}
		}
	}
	if err := p.register(ctx, name, !there || !known); err != nil {
		return err
	}
	if now, err := p.server.aliased(ctx, p.alias); err != nil {
		return err
	} else if now != name {
		if err := p.server.aim(ctx, p.alias, name); err != nil {
			return err
		}
	}
	p.ready, p.compared = space, time.Time{}
	return nil
}

// register notes that the collection name is ours, from when on all changes are noted
// for it, and with all that it gets everything.
func (p *Points) register(ctx context.Context, name string, all bool) error {
	return p.inTx(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO memory_collection (name) VALUES (?) ON CONFLICT DO NOTHING`, name)
		if err == nil && all {
			_, err = tx.ExecContext(ctx, `INSERT INTO memory_outbox (entry, gone) SELECT id, 0 FROM memory AS m WHERE `+indexed+` ORDER BY n ON CONFLICT DO NOTHING`)
		}
		return err
	})
}

func (p *Points) inTx(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := p.db.BeginTx(ctx, nil)
	if err == nil {
		defer func() { _ = tx.Rollback() }()
		err = do(tx)
	}
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		return fmt.Errorf("keep the outbox: %w", err)
	}
	return nil
}

// tidy removes the collections of models that are no longer used. It belongs after
// everything was sent to the present one.
func (p *Points) tidy(ctx context.Context) error {
	_, dim := p.vectors.current()
	present := collectionName(p.alias, p.vectors.embedder.Name(), dim)
	names, err := p.collections(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if name == present {
			continue
		}
		if err := p.server.drop(ctx, name); err != nil && !isNotThere(err) {
			return err
		}
		if _, err := p.db.ExecContext(ctx, `DELETE FROM memory_collection WHERE name = ?`, name); err != nil {
			return fmt.Errorf("keep the outbox: %w", err)
		}
	}
	return nil
}

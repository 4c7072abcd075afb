// Package usage counts the tokens of each model by day and person, and holds the daily limits.
package usage

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"reverie/internal/llm"
	"reverie/internal/store"
)

const (
	keepDays   = 90
	writeEvery = time.Minute

	nearly = 80 // percent of a limit, from which people are told
)

// Store keeps the counts in bot.db. It implements llm.Meter.
type Store struct {
	DB       *store.DB
	Models   map[string]int // most tokens of a model a day, by its name; 0 = no limit
	Person   int            // most tokens of one person a day; 0 = no limit
	Location *time.Location // of days
	Now      func() time.Time
	Log      *slog.Logger

	mu      sync.Mutex
	pending map[key]counts // not written yet
}

// dateAgo returns the day that began ago days before today.
func (s *Store) dateAgo(ago int) string {
	return s.Now().In(s.Location).AddDate(0, 0, -ago).Format(time.DateOnly)
}

// key is the primary key of a row.
type key struct{ day, model, person string }

type counts struct{ tokens, estimated int }

// Count implements llm.Meter. An answer takes no commit of its own: the counts of a minute are written
// together, or when they are read. A crash loses them.
func (s *Store) Count(model, person string, u llm.Usage, estimated bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending == nil {
		s.pending = map[key]counts{}
	}
	k := key{s.dateAgo(0), model, person}
	c, tokens := s.pending[k], u.Prompt+u.Output
	c.tokens += tokens
	if estimated {
		c.estimated += tokens
	}
	s.pending[k] = c
}

// Write writes the counts that are not stored yet.
func (s *Store) Write(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending) == 0 {
		return nil
	}
	err := store.InTx(ctx, s.DB, func(tx *sql.Tx) (err error) {
		for k, c := range s.pending {
			if _, err := tx.ExecContext(ctx, `INSERT INTO usage (day, model, person, tokens, estimated) VALUES (?, ?, ?, ?, ?)
				ON CONFLICT DO UPDATE SET tokens = tokens + excluded.tokens, estimated = estimated + excluded.estimated`,
				k.day, k.model, k.person, c.tokens, c.estimated); err != nil {
				return err
			}
		}
		return store.Exec(ctx, tx, `DELETE FROM usage WHERE day <= ?1; DELETE FROM usage_warning WHERE day <= ?1`, s.dateAgo(keepDays))
	})
	if err == nil {
		s.pending = nil
	}
	return store.Wrap(err, "usage: write")
}

// Run writes the counts until ctx ends. The owner of the store then calls Write once more.
func (s *Store) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(writeEvery):
		}
		if err := s.Write(ctx); err != nil && ctx.Err() == nil {
			s.Log.Error("tokens not counted yet; trying again", "err", err)
		}
	}
}

// Exhausted implements llm.Meter. A count that cannot be read forbids nothing.
func (s *Store) Exhausted(ctx context.Context, model, person string) *llm.Error {
	limits, err := s.Limits(ctx, person, model)
	if err != nil && ctx.Err() == nil {
		s.Log.Error("limits of tokens not checked", "model", model, "err", err)
	}
	i := slices.IndexFunc(limits, func(l Limit) bool { return l.Used >= l.Most })
	if i < 0 {
		return nil
	}
	kind := llm.Quota
	if limits[i].Model == "" {
		kind = llm.PersonalQuota
	}
	return &llm.Error{Kind: kind, Model: model, Err: fmt.Errorf("%d of %d tokens are used today", limits[i].Used, limits[i].Most)}
}

// Limit is a daily limit and what is used of it today.
type Limit struct {
	Model      string // "" = a person's
	Used, Most int    // tokens
}

// Percent returns the used part.
func (l Limit) Percent() int { return 100 * l.Used / l.Most }

// Limits returns the limit of model, or of all models for "", and then that of person.
func (s *Store) Limits(ctx context.Context, person, model string) (limits []Limit, err error) {
	add := func(of string, most int, where, value string) {
		if most > 0 && err == nil {
			if err = s.Write(ctx); err != nil { // without limits an answer takes no commit more
				return
			}
			l := Limit{Model: of, Most: most}
			query := `SELECT coalesce(sum(tokens), 0) FROM usage WHERE day = ? AND ` + where + ` = ?`
			l.Used, err = store.Value[int](ctx, s.DB, query, s.dateAgo(0), value)
			limits = append(limits, l)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Models)) {
		if model == "" || model == name {
			add(name, s.Models[name], "model", name)
		}
	}
	if person != "" {
		add("", s.Person, "person", person)
	}
	return limits, store.Wrap(err, "usage: read limits")
}

// TakeWarnings returns the limits that are nearly reached and not yet reported to person today, and records
// that they are told now. Owners are told of models, everybody of their own limit.
func (s *Store) TakeWarnings(ctx context.Context, person string, owner bool) (told []Limit, err error) {
	limits, err := s.Limits(ctx, person, "")
	for _, l := range limits {
		if err != nil || l.Percent() < nearly || l.Model != "" && !owner {
			continue
		}
		r, failed := s.DB.ExecContext(ctx, `INSERT OR IGNORE INTO usage_warning (day, model, person, at) VALUES (?, ?, ?, ?)`,
			s.dateAgo(0), l.Model, person, s.Now().UnixMilli())
		if err = failed; err == nil {
			if n, _ := r.RowsAffected(); n > 0 { // SQLite knows it
				told = append(told, l)
			}
		}
	}
	return told, store.Wrap(err, "usage: record warnings")
}

// WarnedBetween reports whether person was told of a limit after since, until a time.
func (s *Store) WarnedBetween(ctx context.Context, person string, since, until time.Time) (bool, error) {
	if s.Person == 0 && !slices.ContainsFunc(slices.Collect(maps.Values(s.Models)), func(most int) bool { return most > 0 }) {
		return false, nil // there are no limits
	}
	n, err := store.Value[int](ctx, s.DB, `SELECT count(*) FROM usage_warning WHERE person = ? AND at > ? AND at <= ?`,
		person, since.UnixMilli(), until.UnixMilli())
	return n > 0, store.Wrap(err, "usage: read warnings")
}

// Row counts what one model did for one person.
type Row struct {
	Model, Person string
	Today, Week   int  // tokens; the week is the last seven days with today
	Estimated     bool // some of them
}

// LastWeek returns what was used in the last seven days, the most first. Of "*" it is everybody's.
func (s *Store) LastWeek(ctx context.Context, person string) ([]Row, error) {
	if err := s.Write(ctx); err != nil {
		return nil, err
	}
	return store.List(ctx, s.DB, func(row store.Row) (r Row, err error) {
		return r, row.Scan(&r.Model, &r.Person, &r.Today, &r.Week, &r.Estimated)
	}, `SELECT model, person, sum(iif(day = ?, tokens, 0)), sum(tokens), sum(estimated) > 0 FROM usage
		WHERE day >= ? AND (person = ? OR ? = ?) GROUP BY model, person ORDER BY sum(tokens) DESC, model, person`,
		s.dateAgo(0), s.dateAgo(6), person, person, Everybody)
}

// Everybody stands for all people in LastWeek.
const Everybody = "*"

// Day is what a model used on one day, for all people.
type Day struct {
	Date, Model string // YYYY-MM-DD
	Tokens      int
}

// Days lists what was used in the last n days, the oldest first.
func (s *Store) Days(ctx context.Context, n int) ([]Day, error) {
	if err := s.Write(ctx); err != nil {
		return nil, err
	}
	return store.List(ctx, s.DB, func(row store.Row) (d Day, err error) {
		return d, row.Scan(&d.Date, &d.Model, &d.Tokens)
	}, `SELECT day, model, sum(tokens) FROM usage WHERE day > ? GROUP BY day, model ORDER BY day, model`, s.dateAgo(n))
}

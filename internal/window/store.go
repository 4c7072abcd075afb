// Package window decides how many tokens a model's context window has.
//
// Decide derives the window and its tier (1 to 5) from all sources, such as configuration, server
// and GPU memory. A Lock keeps the tier of a conversation until a boundary. Ratios correct token
// estimates per model. The package owns the tables tier_lock, model_window and token_ratio.
package window

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"reverie/internal/store"
)

// Store keeps tier locks, last seen windows and token ratios in bot.db.
type Store struct {
	DB       *store.DB // migrated
	Now      func() time.Time
	Location *time.Location
	Log      *slog.Logger
}

// Request identifies the request whose tier is needed.
type Request struct {
	Talk         string // room or thread of the conversation
	Conversation int64  // 0 = not begun yet
	ByPerson     bool   // answers a person; false = continues with a tool's result
}

// Decide calls Decide with the last seen window of the server filled in.
func (s Store) Decide(ctx context.Context, in Inputs) (Decision, error) {
	err := s.loadLastSeen(ctx, &in)
	return Decide(in), err
}

// loadLastSeen fills in the window that the server enforced when last seen.
func (s Store) loadLastSeen(ctx context.Context, in *Inputs) error {
	var seen int64
	err := s.DB.QueryRowContext(ctx, `SELECT tokens, source, seen_at FROM model_window WHERE model = ?`, in.ID).
		Scan(&in.Last.Tokens, &in.Last.By, &seen)
	_, err = store.Found(err)
	if in.Last.Tokens > 0 {
		in.Last.By = fmt.Sprintf("%s, on %s", in.Last.By, time.UnixMilli(seen).In(s.Location).Format("2006-01-02 15:04"))
	}
	return store.Wrap(err, "window: read window")
}

// Tier returns the locked tier of a request; it changes only at boundaries. With preview, nothing is stored.
func (s Store) Tier(ctx context.Context, r Request, in Inputs, preview bool) (int, error) {
	if err := s.loadLastSeen(ctx, &in); err != nil {
		return 0, err
	}
	lock, err := s.Lock(ctx, r.Talk)
	if err != nil {
		return 0, err
	}
	next := lock.next(Decide(in), r.Talk, r.Conversation, in.ID, in.Settings, r.ByPerson, s.Now())
	if preview {
		return next.Tier, nil
	}
	if in.Server.Tokens > 0 && in.Server.Tokens != in.Last.Tokens { // for when the server does not answer
		err = store.Exec(ctx, s.DB, `INSERT OR REPLACE INTO model_window (model, tokens, source, seen_at) VALUES (?, ?, ?, ?)`,
			in.ID, in.Server.Tokens, in.Server.By, s.Now().UnixMilli())
	}
	if lock == nil || *lock != next {
		err = errors.Join(err, s.replaceLock(ctx, lock, next))
	}
	return next.Tier, err
}

// AfterCompaction lets the tier of talk change. The model must read the rewritten history anyway.
func (s Store) AfterCompaction(ctx context.Context, talk string, in Inputs) error {
	d, err := s.Decide(ctx, in)
	if err != nil {
		return err
	}
	lock, err := s.Lock(ctx, talk)
	if err != nil || lock == nil {
		return err
	}
	if next := lock.atBoundary(d, atCompaction, s.Now()); next != *lock {
		return s.replaceLock(ctx, lock, next)
	}
	return nil
}

// LowerTier returns a lower tier for a request that no longer fits into tokens. tier is that of the
// request. ok is false if no lower one exists or the owner set the tier. keep stores the lock.
func (s Store) LowerTier(ctx context.Context, talk string, in Inputs, tier, tokens int) (lower int, keep func() error, ok bool) {
	d, failed := s.Decide(ctx, in)
	lock, missing := s.Lock(ctx, talk)
	lower = min(d.Tier, TierFor(tokens))
	if failed != nil || missing != nil || lock == nil || d.Forced || lower >= tier {
		return 0, nil, false
	}
	next := lock.withTier(d, lower, atTooLarge, s.Now())
	next.Window = tokens
	return lower, func() error { return s.replaceLock(ctx, lock, next) }, true
}

// replaceLock stores next in place of old, which may be nil.
func (s Store) replaceLock(ctx context.Context, old *Lock, next Lock) error {
	before := 0
	if old != nil {
		before = old.Tier
	}
	err := store.InTx(ctx, s.DB, func(tx *sql.Tx) error { // under load it shares its commit
		return store.Exec(ctx, tx, `INSERT OR REPLACE INTO tier_lock (`+lockColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, next.Room,
			next.Conversation, next.Tier, next.Window, next.Source, next.Sure, next.Model, next.Settings, next.At.UnixMilli(), next.Reason)
	})
	if err == nil && before != next.Tier {
		s.Log.Info("tier", "tier", next.Tier, "before", before, "window", next.Window,
			"source", next.Source, "sure", next.Sure, "reason", next.Reason)
	}
	return store.Wrap(err, "window: store tier")
}

const lockColumns = `room, conversation, tier, window, source, sure, model, settings, locked_at, reason`

func scanLock(row store.Row) (l Lock, err error) {
	var at int64
	err = row.Scan(&l.Room, &l.Conversation, &l.Tier, &l.Window, &l.Source, &l.Sure, &l.Model, &l.Settings, &at, &l.Reason)
	l.At = time.UnixMilli(at)
	return l, err
}

// Lock returns the lock of a room or thread, or nil.
func (s Store) Lock(ctx context.Context, talk string) (*Lock, error) {
	locks, err := store.List(ctx, s.DB, scanLock, `SELECT `+lockColumns+` FROM tier_lock WHERE room = ?`, talk)
	if err != nil || len(locks) == 0 {
		return nil, err
	}
	return &locks[0], nil
}

// Locks lists all locks, latest first.
func (s Store) Locks(ctx context.Context) ([]Lock, error) {
	locks, err := store.List(ctx, s.DB, scanLock, `SELECT `+lockColumns+` FROM tier_lock ORDER BY locked_at DESC, room`)
	return append([]Lock{}, locks...), err // not nil: JSON prints []
}

// Lock is the tier of a conversation. It changes only at boundaries, because a changed prompt must
// be read again from its beginning.
type Lock struct {
	Room         string    `json:"room"`
	Conversation int64     `json:"conversation"`
	Tier         int       `json:"tier"`
	Window       int       `json:"window"` // tokens when locked
	Source       Origin    `json:"source"` // of Window
	Sure         bool      `json:"sure"`   // false: estimated, to be corrected by a sure source
	Model        string    `json:"model"`  // with its server
	Settings     string    `json:"-"`      // the owner's settings then
	At           time.Time `json:"locked_at"`
	Reason       string    `json:"reason"` // the boundary at which it was locked
}

// Boundaries at which a tier may change, for Lock.Reason.
const (
	atStart      = "session start"
	atNew        = "new conversation"
	atModel      = "another model"
	atSettings   = "configuration changed"
	atCompaction = "compaction"
	atAnswer     = "the server says how large the window really is"
	atTooLarge   = "the prompt no longer fitted"
)

// next returns the lock for a request: l, or a new one at a boundary. conversation is 0 if it has
// not begun, id the model with its server. With byPerson, the request answers a person.
func (l *Lock) next(d Decision, room string, conversation int64, id, settings string, byPerson bool, now time.Time) Lock {
	fresh := Lock{Room: room, Conversation: conversation, Tier: d.Tier, Window: d.Window, Source: d.Source, Sure: d.Sure,
		Model: id, Settings: settings, At: now}
	switch {
	case l == nil:
		fresh.Reason = atStart
	case l.Model != id:
		fresh.Reason = atModel
	case l.Settings != settings:
		fresh.Reason = atSettings
	case l.Conversation != conversation:
		changed := l.atBoundary(d, atNew, now)
		changed.Conversation = conversation
		return changed
	case !l.Sure && d.Sure && byPerson: // local servers report their window after loading the model
		return l.withTier(d, d.Tier, atAnswer, now)
	default:
		return *l
	}
	return fresh
}

// atBoundary returns the lock after a boundary. An estimate does not replace a sure window.
func (l *Lock) atBoundary(d Decision, reason string, now time.Time) Lock {
	if d.Tier == l.Tier && d.Sure == l.Sure || l.Sure && !d.Sure {
		return *l
	}
	return l.withTier(d, d.Tier, reason, now)
}

func (l *Lock) withTier(d Decision, tier int, reason string, now time.Time) Lock {
	next := *l
	next.Tier, next.Window, next.Source, next.Sure, next.Reason, next.At = tier, d.Window, d.Source, d.Sure, reason, now
	return next
}

// Token estimates are corrected per model: each answer reports how many tokens the server counted.
// The ratio of both is stored and scales all estimates.

// Bounds of a plausible ratio. A smaller one means that the server did not read or count
// everything, a larger one that it counts something else.
const (
	minRatio  = 0.67
	maxRatio  = 5.0
	minSample = 300 // tokens; below, message overhead dominates
)

// tokenRatio returns counted per estimated token; false if it is not plausible.
func tokenRatio(estimated, counted int) (float64, bool) {
	if estimated < minSample || counted <= 0 {
		return 1, false
	}
	d := float64(counted) / float64(estimated)
	return d, d >= minRatio && d <= maxRatio
}

// updateRatio returns the ratio after an observation: a larger one counts at once, since too large
// requests are refused, a smaller one by a quarter.
func updateRatio(before, seen float64, answers int) float64 {
	if answers == 0 || seen >= before {
		return seen
	}
	return before + (seen-before)/4
}

// TokenRatio returns the tokens that model counts per estimated one; 1 if unknown.
func (s Store) TokenRatio(ctx context.Context, model string) (float64, error) {
	factor, _, err := s.factor(ctx, model)
	return factor, err
}

// factor returns the stored ratio of a model. answers is how many answers it was learned from.
func (s Store) factor(ctx context.Context, model string) (factor float64, answers int, err error) {
	_, err = store.Found(s.DB.QueryRowContext(ctx, `SELECT factor, answers FROM token_ratio WHERE model = ?`, model).
		Scan(&factor, &answers))
	return cmp.Or(factor, 1), answers, store.Wrap(err, "window: read how a model counts")
}

// LearnRatio updates the model's ratio from an answer.
func (s Store) LearnRatio(ctx context.Context, model string, estimated, counted int) error {
	seen, ok := tokenRatio(estimated, counted)
	if !ok {
		return nil
	}
	before, answers, err := s.factor(ctx, model)
	if err == nil {
		_, err = s.DB.ExecContext(ctx, `INSERT INTO token_ratio (model, factor, answers, at) VALUES (?1, ?2, 1, ?3)
			ON CONFLICT (model) DO UPDATE SET factor = ?2, answers = answers + 1, at = ?3`,
			model, updateRatio(before, seen, answers), s.Now().UnixMilli())
	}
	return err
}

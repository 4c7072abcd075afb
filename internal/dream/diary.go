package dream

import (
	"context"
	"time"

	"reverie/internal/dream/report"
	"reverie/internal/i18n"
	"reverie/internal/memory"
	"reverie/internal/store"
)

// Night is one dream, without texts of memories.
type Night struct {
	Run           string
	At, Ended     time.Time // Ended is zero while it works
	State         report.State
	Reason        i18n.Text
	Calls, Tokens int
	Steps         []NightStep
}

// NightStep is a change of an entry.
type NightStep struct {
	Kind      memory.StepKind
	Entry, By string // ids; By took its place, and may be empty
	Why       string
	Undone    bool
}

// Nights lists the last n dreams, the newest first.
func Nights(ctx context.Context, db store.DBTX, n int) ([]Night, error) {
	all, err := store.List(ctx, db, func(row store.Row) (d Night, err error) {
		var at, ended int64
		err = row.Scan(&d.Run, &at, &ended, &d.State, &d.Reason, &d.Calls, &d.Tokens)
		d.At = time.UnixMilli(at)
		if ended > 0 {
			d.Ended = time.UnixMilli(ended)
		}
		return d, err
	}, `SELECT id, at, ended, state, reason, calls, tokens FROM dream_run ORDER BY at DESC, rowid DESC LIMIT ?`, n)
	for i := 0; i < len(all) && err == nil; i++ {
		all[i].Steps, err = store.List(ctx, db, func(row store.Row) (s NightStep, err error) {
			return s, row.Scan(&s.Kind, &s.Entry, &s.By, &s.Why, &s.Undone)
		}, `SELECT kind, entry, successor, why, undone FROM dream_op WHERE run = ? AND kind <> 'question' ORDER BY rowid`, all[i].Run)
	}
	return all, store.Wrap(err, "dream: read the dreams")
}

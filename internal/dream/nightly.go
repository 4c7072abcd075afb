package dream

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"reverie/internal/task"
)

// Nightly dreams when it is time. A time that went by while nothing ran is made up for
// once, at the next quiet moment.
type Nightly struct {
	Dreamer  *Dreamer
	Schedule task.Schedule // in its final form
	// Quiet waits until nobody waits for an answer and nobody has said anything for so
	// long. The context it returns ends when somebody writes. nil = it is always quiet.
	Quiet func(ctx context.Context, long time.Duration) (work context.Context, done func(), err error)
	Long  time.Duration                 // of quiet, before a dream; 0 = 10 minutes
	Tell  func(context.Context, Report) // is told what was dreamt; nil = nobody is
	Log   *slog.Logger                  // nil = silent
}

// look is how often the clock is looked at: a machine may sleep, or its clock be set.
const look = time.Minute

// Run dreams at its times until ctx ends. A dream gives way to whoever writes, and goes
// on at the next quiet moment.
func (n *Nightly) Run(ctx context.Context) error {
	if n.Log == nil {
		n.Log = slog.New(slog.DiscardHandler)
	}
	if n.Long == 0 {
		n.Long = 10 * time.Minute
	}
	began := n.Dreamer.cfg.Now()
	for {
		due, err := n.due(ctx, began)
		wait := look
		switch now := n.Dreamer.cfg.Now(); {
		case err != nil && ctx.Err() == nil:
			n.Log.Warn("when to dream could not be found out", "err", err)
		case err == nil && due.IsZero():
			n.Log.Warn("dreaming.schedule names no time that ever comes; nothing is dreamt")
			<-ctx.Done()
			return nil
		case err == nil && !due.After(now):
			if err := n.once(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, errYielded) {
				n.Log.Warn("a dream failed; memory is as it was", "err", err)
			}
		case err == nil:
			wait = min(look, due.Sub(now))
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// errYielded ends a dream because somebody writes.
var errYielded = errors.New("it gave way to somebody who wrote, and goes on later")

// once waits for a quiet moment and dreams.
func (n *Nightly) once(ctx context.Context) error {
	work, done := ctx, func() {}
	if n.Quiet != nil {
		var err error
		if work, done, err = n.Quiet(ctx, n.Long); err != nil {
			return err
		}
	}
	defer done()
	r, err := n.Dreamer.Dream(work, Options{})
	if errors.Is(err, ErrBusy) {
		return err // by hand; that counts as this one
	}
	if work.Err() != nil && ctx.Err() == nil && err != nil {
		return errYielded
	}
	if err == nil {
		n.Log.Info("dreamt", "run", r.Run, "what", r.Summary(), "requests", r.Cost.Calls)
	}
	if n.Tell != nil && r.Run != "" && ctx.Err() == nil {
		n.Tell(ctx, r)
	}
	return err
}

// due is when the next dream is to be: the first time of the schedule after the last
// one that was not cut off; before the first, after the oldest memory. Zero = never.
func (n *Nightly) due(ctx context.Context, began time.Time) (time.Time, error) {
	d := n.Dreamer
	var last, oldest sql.NullInt64
	err := d.cfg.DB.QueryRowContext(ctx, `SELECT (SELECT max(at) FROM dream_run WHERE ended > 0 AND reason NOT IN (?, ?)),
		(SELECT min(created_at) FROM memory)`, cutOff, errYielded.Error()).Scan(&last, &oldest)
	if err != nil {
		return time.Time{}, fmt.Errorf("dream: %w", err)
	}
	since := began
	switch {
	case last.Valid:
		since = time.UnixMilli(last.Int64)
	case oldest.Valid:
		since = time.UnixMilli(oldest.Int64)
	}
	if since.After(d.cfg.Now()) {
		since = d.cfg.Now() // the clock was wrong then, or is now
	}
	due, ok := n.Schedule.Next(since, since, d.cfg.Location)
	if !ok {
		return time.Time{}, nil
	}
	return due, nil
}

package media

import (
	"context"
	"log/slog"
	"time"
)

// Uses list the files that somebody needs, by their paths.
type Uses struct {
	Named  func(context.Context) ([]string, error) // by a message
	Loaded func(context.Context) ([]string, error) // by a message of a conversation that may go on
	Moving func(context.Context) ([]string, error) // on their way from or to a room
}

// Files that no message names are deleted after an hour, as when a message is taken back
// while its file is fetched; files of messages that no conversation loads any more, after
// a week, as compactions and !new can be taken back.
const (
	sweepEvery  = 6 * time.Hour
	unnamedAge  = time.Hour
	unneededAge = 7 * 24 * time.Hour
)

// Run deletes files that nobody needs, now and again, until ctx ends.
func (s *Store) Run(ctx context.Context, u Uses, log *slog.Logger) error {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		if n, err := s.SweepUnused(ctx, u, time.Now()); err != nil && ctx.Err() == nil {
			log.Warn("files that nobody needs are not deleted", "err", err)
		} else if n > 0 {
			log.Info("files that nobody needs are deleted", "files", n)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// SweepUnused deletes what nobody needs now, and returns how many files that were.
func (s *Store) SweepUnused(ctx context.Context, u Uses, now time.Time) (int, error) {
	total := 0
	for _, rule := range []struct {
		needed func(context.Context) ([]string, error)
		age    time.Duration
	}{{u.Named, unnamedAge}, {u.Loaded, unneededAge}} {
		used := map[string]bool{}
		for _, list := range []func(context.Context) ([]string, error){rule.needed, u.Moving} {
			paths, err := list(ctx)
			if err != nil {
				return total, err
			}
			for _, p := range paths {
				used[Stem(p)] = true
			}
		}
		n, err := s.sweep(used, now.Add(-rule.age))
		if total += n; err != nil {
			return total, err
		}
	}
	return total, nil
}

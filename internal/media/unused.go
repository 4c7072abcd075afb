package media

import (
	"context"
	"log/slog"
	"time"

	"reverie/internal/pace"
)

// Uses list the files in use, by their paths.
type Uses struct {
	InMessages      func(context.Context) ([]string, error) // by a message
	InConversations func(context.Context) ([]string, error) // by a message of a conversation that may continue
	InTransit       func(context.Context) ([]string, error) // on their way from or to a room
}

// Files without a message are deleted after an hour. They exist, for example, when a message is
// redacted during the download. Files of messages that no conversation loads are deleted after a
// week, because compactions and !new can be undone.
const (
	sweepEvery  = 6 * time.Hour
	unnamedAge  = time.Hour
	unneededAge = 7 * 24 * time.Hour
)

// Run deletes unused files periodically until ctx ends.
func (s *Store) Run(ctx context.Context, u Uses, log *slog.Logger) error {
	for {
		if n, err := s.SweepUnused(ctx, u, time.Now()); err != nil && ctx.Err() == nil {
			log.Warn("files that nobody needs are not deleted", "err", err)
		} else if n > 0 {
			log.Info("files that nobody needs are deleted", "files", n)
		}
		if pace.Pause(ctx, nil, sweepEvery) != nil {
			return nil
		}
	}
}

// SweepUnused deletes the files that are unused now, and returns their number.
func (s *Store) SweepUnused(ctx context.Context, u Uses, now time.Time) (int, error) {
	total := 0
	for _, rule := range []struct {
		needed func(context.Context) ([]string, error)
		age    time.Duration
	}{{u.InMessages, unnamedAge}, {u.InConversations, unneededAge}} {
		used := map[string]bool{}
		for _, list := range []func(context.Context) ([]string, error){rule.needed, u.InTransit} {
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

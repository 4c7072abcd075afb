package main

import (
	"context"
	"time"

	"reverie/internal/matrix"
	"reverie/internal/media"
)

func (b *bot) openMedia() *media.Store {
	return media.Open(b.cfg.Data, b.cfg.Files().Side)
}

// Files that no message names are deleted after an hour, as when a message is taken back
// while its file is fetched; files of messages that no conversation loads any more, after
// a week, as compactions and !new can be taken back.
const (
	sweepEvery  = 6 * time.Hour
	unnamedAge  = time.Hour
	unneededAge = 7 * 24 * time.Hour
)

// sweepFiles deletes files that nobody needs, now and again.
func (b *bot) sweepFiles(ctx context.Context, client *matrix.Client) error {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		if n, err := b.sweep(ctx, client.KeptFiles, time.Now()); err != nil && ctx.Err() == nil {
			b.log.Warn("files that nobody needs are not deleted", "err", err)
		} else if n > 0 {
			b.log.Info("files that nobody needs are deleted", "files", n)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (b *bot) sweep(ctx context.Context, moving func(context.Context) ([]string, error), now time.Time) (int, error) {
	total := 0
	for _, rule := range []struct {
		needed func(context.Context) ([]string, error)
		age    time.Duration
	}{{b.history.Named, unnamedAge}, {b.history.Paths, unneededAge}} {
		used := map[string]bool{}
		for _, list := range []func(context.Context) ([]string, error){rule.needed, moving} {
			paths, err := list(ctx)
			if err != nil {
				return total, err
			}
			for _, p := range paths {
				used[media.Stem(p)] = true
			}
		}
		n, err := b.media.Sweep(used, now.Add(-rule.age))
		if total += n; err != nil {
			return total, err
		}
	}
	return total, nil
}

// dropFiles deletes the files of a message that was taken back, but for those that
// another message has too. Its row must be empty by now.
func (b *bot) dropFiles(ctx context.Context, paths []string) error {
	for _, p := range paths {
		named, err := b.history.Names(ctx, media.Stem(p))
		if err != nil {
			return err
		}
		if !named {
			if err := b.media.Remove(p); err != nil {
				return err
			}
		}
	}
	return nil
}

package main

import (
	"cmp"
	"context"
	"regexp"
	"strconv"
	"strings"
	"time"

	"reverie/internal/matrix"
	"reverie/internal/media"
)

// MediaConfig bounds what comes with messages in files.
type MediaConfig struct {
	MaxSize string `yaml:"max_size"` // of a file that is fetched or sent, such as 20MB
	Side    int    `yaml:"side"`     // pixels; pictures are made no larger for the model
	Text    int    `yaml:"text"`     // characters of a file that the model gets

	bytes int64 // max_size
}

var defaultMedia = MediaConfig{MaxSize: "20MB", Side: 1024, Text: 40_000, bytes: 20_000_000}

var sizeText = regexp.MustCompile(`^(\d{1,9}) ?(kB|KB|MB|GB)$`)

// sizeOf reads a number of bytes; 0 = that is none.
func sizeOf(s string) int64 {
	m := sizeText.FindStringSubmatch(strings.TrimSpace(s))
	if m == nil {
		return 0
	}
	n, _ := strconv.ParseInt(m[1], 10, 64) // nine digits always are a number
	return n * map[byte]int64{'k': 1000, 'K': 1000, 'M': 1_000_000, 'G': 1_000_000_000}[m[2][0]]
}

// complete fills in what the file leaves out.
func (m *MediaConfig) complete() {
	m.MaxSize, m.Side, m.Text = cmp.Or(m.MaxSize, defaultMedia.MaxSize), cmp.Or(m.Side, defaultMedia.Side),
		cmp.Or(m.Text, defaultMedia.Text)
	m.bytes = sizeOf(m.MaxSize)
}

// media is what bounds files: of `bot chat` too, which has no Matrix.
func (c *Config) media() MediaConfig {
	if c.Matrix == nil {
		return defaultMedia
	}
	return c.Matrix.Media
}

func (b *bot) openMedia() *media.Store {
	return media.Open(b.cfg.Data, b.cfg.media().Side)
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

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	reverie "reverie"
	"reverie/internal/dream"
	"reverie/internal/memory"
	"reverie/internal/memory/jsonl"
	"reverie/internal/store"
	"reverie/internal/trust"
)

// dreams measures a dream over 10,000 memories, and its effect on a chat meanwhile: on a memory
// search and on storing a fact.
func (b *bench) dreams(ctx context.Context, dir string) error {
	db, err := store.Open(ctx, filepath.Join(dir, "bot.db"), reverie.Migrations)
	if err != nil {
		return err
	}
	defer db.Close()
	const owner = "@me:example.org"
	s, err := memory.Open(ctx, memory.Config{DB: db, Dir: dir, Owner: owner, Backend: "fts5"})
	if err != nil {
		return err
	}
	if _, err := (&jsonl.Importer{Store: s, Scope: memory.Shared, Now: time.Now}).Import(ctx, owner, []byte(people(10_000))); err != nil {
		return err
	}
	c := dream.Config{DB: db, Store: s, Dir: dir, Default: reverie.Data}
	d := dream.Open(c)
	begin := time.Now()
	if _, err := d.Dream(ctx, dream.Options{DryRun: true}); err != nil {
		return err
	}
	planned := time.Since(begin)
	n := 0
	chat := func() (float64, error) {
		n++
		begin := time.Now()
		if _, err := s.Search(ctx, memory.Query{Text: fmt.Sprintf("where does person %d live, and what is the code?", n), Scopes: []memory.Scope{memory.Shared}}); err != nil {
			return 0, err
		}
		_, _, err := s.Add(ctx, memory.Entry{Scope: memory.Private(owner), Text: fmt.Sprintf("note %d of the chat", n), Source: memory.UserExplicit, Integrity: trust.Owner}, owner)
		return float64(time.Since(begin).Microseconds()) / 1000, err
	}
	var before, during []float64
	for range 400 {
		ms, err := chat()
		if err != nil {
			return err
		}
		before = append(before, ms)
		time.Sleep(5 * time.Millisecond)
	}
	c.Ask = func(ctx context.Context, _, _ string) (string, error) {
		time.Sleep(100 * time.Millisecond)
		return `[{"pair": 1, "verdict": "neither"}]`, ctx.Err()
	}
	d = dream.Open(c)
	ended := make(chan error, 1)
	// go: waited for below
	go func() { _, err := d.Dream(ctx, dream.Options{}); ended <- err }()
	for {
		select {
		case err := <-ended:
			b.put(figure{What: "dream: plan of 10,000 memories without a model", Value: planned.Seconds(), Unit: "s", Limit: 5},
				figure{What: "dream: p99 of a search and a note meanwhile", Value: p99(during), Unit: "ms", Limit: 20 + p99(before), Baseline: p99(before), Plain: "the same without a dream"})
			return err
		default:
		}
		ms, err := chat()
		if err != nil {
			return err
		}
		during = append(during, ms)
		time.Sleep(5 * time.Millisecond)
	}
}

func p99(times []float64) float64 {
	slices.Sort(times)
	if len(times) == 0 {
		return 0
	}
	return times[len(times)*99/100]
}

// people returns an import file with facts about a thousand people.
func people(n int) string {
	towns := []string{"Berlin", "Hamburg", "Rome", "Lisbon", "Oslo", "Prague", "Paris"}
	var b strings.Builder
	for i := range n {
		k := i / 10
		who := fmt.Sprintf("Person%c%c%c", 'a'+k%26, 'a'+k/26%26, 'a'+k/676%26)
		text := []string{
			who + " lives in " + towns[i%7] + ".", who + " has moved to " + towns[(i+3)%7] + ".", fmt.Sprintf("%s's bike lock code is %d.", who, i), who + " likes tea, mostly in the evening.", who + " likes tea.",
			who + " doesn't eat meat any more.", who + " eats meat on Sundays.", fmt.Sprintf("%s was born on %d March.", who, i%28+1), who + " takes the blue pill before meals.", who + " works at the library.",
		}[i%10]
		fmt.Fprintf(&b, "{\"text\":%q,\"observed_at\":%q,\"source\":\"harvest\"}\n", text, time.Date(2026, 1, 1, 0, i, 0, 0, time.UTC).Format(time.RFC3339))
	}
	return b.String()
}

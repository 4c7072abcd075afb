// Recall measures how much of what answers labelled questions is found, in every set of a folder and
// with three ways of searching side by side. See README.md.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"

	"reverie/internal/store"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	sets := flag.String("sets", "", "the folder of the sets, each a folder with memory.jsonl and questions.jsonl")
	cache := flag.String("cache", "", "a folder where vectors are kept for the next run")
	only := flag.String("only", "", "only the set of this name")
	file := flag.String("json", "", "also write the figures to this file, as JSON")
	show := flag.Bool("v", false, "print the questions that fts5 misses")
	flag.Parse()
	if err := run(ctx, *sets, *cache, *only, *file, *show); err != nil {
		fmt.Fprintln(os.Stderr, "recall:", err)
		os.Exit(1)
	}
}

// figures are the results of one set.
type figures struct {
	Set      string    `json:"set"`
	Memories int       `json:"memories"`
	Ways     []*result `json:"ways"`
}

func run(ctx context.Context, sets, cache, only, file string, show bool) error {
	found, err := filepath.Glob(filepath.Join(sets, "*", "memory.jsonl"))
	if err != nil {
		return err
	}
	var all []figures
	for _, path := range found {
		folder := filepath.Dir(path)
		if only != "" && filepath.Base(folder) != only {
			continue
		}
		f, err := measureSet(ctx, folder, cache, show)
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(folder), err)
		}
		if err := f.print(os.Stdout); err != nil {
			return err
		}
		all = append(all, f)
	}
	if len(all) == 0 {
		return errors.New("give a folder of sets with -sets: each is a folder with memory.jsonl and questions.jsonl")
	}
	if file == "" {
		return nil
	}
	data, err := json.MarshalIndent(all, "", "  ")
	if err == nil {
		err = store.WriteFile(file, data)
	}
	return err
}

// measureSet measures the set of folder in a database that is deleted afterwards.
func measureSet(ctx context.Context, folder, cache string, show bool) (f figures, err error) {
	dir, err := os.MkdirTemp("", "reverie-recall-")
	if err != nil {
		return f, err
	}
	defer os.RemoveAll(dir)
	s, err := load(ctx, folder, dir)
	if err != nil {
		return f, err
	}
	defer s.db.Close()
	f = figures{Set: filepath.Base(folder), Memories: len(s.lines)}
	all, err := ways(ctx, s, cache)
	if err != nil {
		return f, err
	}
	for _, w := range all {
		r, err := measure(ctx, s, w)
		if err != nil {
			return f, fmt.Errorf("%s: %w", w.name, err)
		}
		f.Ways = append(f.Ways, r)
		if !show || w.name != "fts5" {
			continue
		}
		for _, i := range slices.Sorted(maps.Keys(r.Found)) {
			if q := s.questions[i]; r.Found[i] < 1 {
				fmt.Printf("%3.0f %%  %s, %s: %s  %v\n", 100*r.Found[i], q.Scope, q.Kind, q.Query, q.Evidence)
			}
		}
	}
	return f, nil
}

// print writes a table of the sums, and one of the kinds of questions.
func (f figures) print(w io.Writer) error {
	p := &printer{w: w}
	p.line("%s: %d memories", f.Set, f.Memories)
	p.line("  %-26s %5s %5s %5s %5s %5s %6s %6s %6s %6s %6s %6s %6s",
		"", "asked", "@5", "@10", "@20", "MRR", "1500t", "2000t", "4000t", "mute", "quiet", "p50", "p99")
	for _, r := range f.Ways {
		c, quiet := r.All, "-"
		if c.Without > 0 {
			quiet = fmt.Sprintf("%.1f", c.Quiet)
		}
		p.line("  %-26s %5d %5.1f %5.1f %5.1f %5.3f %6.1f %6.1f %6.1f %6.1f %6s %6.1f %6.1f", r.Way, c.Questions,
			c.Recall[0], c.Recall[1], c.Recall[2], c.MRR, c.Within[0], c.Within[1], c.Within[2], c.Mute, quiet, r.P50, r.P99)
	}
	p.line("  %-26s %5s   @10 of each way; within 2000 tokens; MRR", "by kind", "asked")
	for _, kind := range slices.Sorted(maps.Keys(f.Ways[0].Kinds)) {
		var at10, within, mrr string
		for _, r := range f.Ways {
			c := r.Kinds[kind]
			at10 += fmt.Sprintf(" %5.1f", c.Recall[1])
			within += fmt.Sprintf(" %5.1f", c.Within[1])
			mrr += fmt.Sprintf(" %5.3f", c.MRR)
		}
		if c := f.Ways[0].Kinds[kind]; c.Questions > 0 {
			p.line("  %-26s %5d %s | %s | %s", kind, c.Questions, at10, within, mrr)
		}
	}
	p.line("")
	return p.err
}

// printer writes lines until one fails.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	reverie "reverie"
	"reverie/internal/dream"
	"reverie/internal/i18n"
	"reverie/internal/memory"
	"reverie/internal/memory/jsonl"
	"reverie/internal/search"
	"reverie/internal/store"
	"reverie/internal/text"
)

const owner = "@me:example.org"

// result is what was left after the nights.
type result struct {
	Set      string   `json:"set"`
	Seed     uint64   `json:"seed"`
	Judge    string   `json:"judge"`
	Facts    int      `json:"facts"`
	Entries  int      `json:"entries"`
	Holds    int      `json:"holds"`    // facts that are true at the end
	Kept     int      `json:"kept"`     // Holds that are active, and shown or found by their words
	Hidden   int      `json:"hidden"`   // Kept that are only found: another text is shown for them
	Trace    int      `json:"trace"`    // facts still in the store and found in one of its states
	Invented int      `json:"invented"` // active texts that were never said
	Outdated int      `json:"outdated"`
	Retired  int      `json:"retired"` // outdated facts that are not active
	Asked    int      `json:"asked"`   // outdated facts that are active, with a question to a person
	Copies   int      `json:"copies"`  // duplicate texts of the same fact
	Week     int      `json:"week"`    // model calls in the first seven nights
	Calls    int      `json:"calls"`
	Repeated int      `json:"repeated"` // pairs that were asked again
	Lost     []string `json:"lost,omitempty"`
	Missed   []string `json:"missed,omitempty"` // outdated facts that are still active
	Twice    []string `json:"twice,omitempty"`
}

// fillStore stores the entries of w in a new data folder. The store accepts a text once per scope, so
// repeated texts get another scope.
func (w *world) fillStore(ctx context.Context, dir string) error {
	db, s, err := open(ctx, dir)
	if err != nil {
		return err
	}
	defer db.Close()
	var parts []*strings.Builder
	times := map[string]int{}
	for _, e := range w.entries {
		plain := text.PlainWords(e.text)
		n := times[plain]
		times[plain]++
		for len(parts) <= n {
			parts = append(parts, &strings.Builder{})
		}
		line, err := json.Marshal(map[string]any{"text": e.text, "source": e.source, "subject": e.subject, "observed_at": e.at.Format(time.RFC3339)})
		if err != nil {
			return err
		}
		parts[n].Write(append(line, '\n'))
	}
	for n, part := range parts {
		who := owner
		if n > 0 {
			who = fmt.Sprintf("@again%d:example.org", n)
		}
		if _, err := (&jsonl.Importer{Store: s, Scope: memory.Private(who), Now: time.Now}).Import(ctx, who, []byte(part.String())); err != nil {
			return err
		}
	}
	if _, err := db.ExecContext(ctx, `UPDATE memory SET scope = ?`, memory.Private(owner)); err != nil {
		return err
	}
	_, err = search.Open(db).Rebuild(ctx)
	return err
}

func open(ctx context.Context, dir string) (*store.DB, *memory.Store, error) {
	db, err := store.Open(ctx, filepath.Join(dir, "bot.db"), reverie.Migrations)
	if err != nil {
		return nil, nil, err
	}
	s, err := memory.Open(ctx, memory.Config{DB: db, Dir: dir, Owner: owner, Backend: "fts5"})
	return db, s, err
}

// nights dreams in a copy of the folder from for several nights, and counts the remaining facts.
func (w *world) nights(ctx context.Context, from, dir, name string, say judge, nights int) (result, error) {
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		return result{}, err
	}
	db, s, err := open(ctx, dir)
	if err != nil {
		return result{}, err
	}
	defer db.Close()
	k, now := w.knowledge(), time.Now().Add(time.Hour)
	var log *slog.Logger
	if os.Getenv("SURVIVAL_NOTES") != "" {
		log = slog.New(slog.NewTextHandler(os.Stdout, nil))
	}
	d := dream.Open(dream.Config{
		Log: log,
		DB:  db, Store: s, Dir: dir, Default: fs.FS(reverie.Data), Now: func() time.Time { return now },
		Ask: func(_ context.Context, _, prompt string) (string, error) { return k.ask(say, prompt), nil },
	})
	r := result{Set: w.set.name, Judge: name, Facts: len(w.facts), Entries: len(w.entries)}
	asked := map[*fact]bool{}
	for n := range nights {
		report, err := d.Dream(ctx, dream.Options{})
		if err != nil {
			return result{}, fmt.Errorf("night %d: %w", n+1, err)
		}
		for _, q := range report.Questions {
			for _, text := range []string{q.FirstText, q.SecondText} {
				for _, f := range k.of[strings.TrimSpace(text)] {
					asked[f] = true
				}
			}
		}
		if os.Getenv("SURVIVAL_NOTES") != "" {
			for _, c := range report.Questions {
				fmt.Printf("      asked: %q %q %s\n", c.FirstText, c.SecondText, c.Why)
			}
			fmt.Printf("    night %d: %s; %+v %q\n", n+1, report.Summary(i18n.English), report.Cost, report.Notes)
		}
		if n == min(nights, 7)-1 {
			r.Week = k.calls
		}
		now = now.Add(24 * time.Hour)
	}
	r.Calls, r.Repeated = k.calls, k.repeated
	r.Invented = k.strange
	return r, w.count(ctx, s, k, asked, &r)
}

var everything = memory.Access{Actor: "survival", All: true}

// count fills r from the store. asked are the facts that a person was asked about.
func (w *world) count(ctx context.Context, s *memory.Store, k *knowledge, asked map[*fact]bool, r *result) error {
	active, err := s.List(ctx, everything, memory.Filter{Members: true})
	if err != nil {
		return err
	}
	past, err := s.List(ctx, everything, memory.Filter{States: []memory.State{memory.Active, memory.Merged, memory.Superseded, memory.Archived}, Members: true})
	if err != nil {
		return err
	}
	isShown := map[string]bool{}
	for _, e := range active {
		isShown[e.ID] = e.By == ""
	}
	trace, lines, texts := map[*fact]bool{}, map[*fact]map[string]bool{}, map[*fact][]string{}
	for _, e := range past {
		for _, f := range k.of[strings.TrimSpace(e.Text)] {
			trace[f] = true
		}
	}
	for _, e := range active {
		facts := k.of[strings.TrimSpace(e.Text)]
		if facts == nil {
			r.Invented++
		}
		shown := cmp.Or(e.By, e.ID)
		for _, f := range facts {
			if lines[f] == nil {
				lines[f] = map[string]bool{}
			}
			if !isShown[shown] {
				shown = e.ID // its replacement is no longer shown
			}
			lines[f][shown] = lines[f][shown] || shown == e.ID
			texts[f] = append(texts[f], e.Text)
		}
	}
	for _, f := range w.facts {
		if trace[f] {
			r.Trace++
		}
		if own := slices.Contains(slices.Collect(maps.Values(lines[f])), true); len(lines[f]) > 0 && !own && !f.old {
			r.Hidden++
			if lines[f], err = w.found(ctx, s, k, f, texts[f]); err != nil {
				return err
			}
		}
		switch n := len(lines[f]); {
		case f.old:
			r.Outdated++
			if n == 0 {
				r.Retired++
			} else {
				if asked[f] {
					r.Asked++
				}
				r.Missed = append(r.Missed, strings.Join(texts[f], " | ")+" <- "+w.newer(f, k))
			}
			continue
		case n > 0:
			r.Kept++
			if r.Copies += n - 1; n > 1 {
				r.Twice = append(r.Twice, strings.Join(texts[f], " | "))
			}
		default:
			r.Lost = append(r.Lost, f.text)
		}
		r.Holds++
	}
	return nil
}

// found searches for the texts of f and returns the first entry found that says f.
func (w *world) found(ctx context.Context, s *memory.Store, k *knowledge, f *fact, texts []string) (map[string]bool, error) {
	for _, text := range texts {
		hits, err := s.Search(ctx, memory.Query{Text: text, Scopes: []memory.Scope{memory.Private(owner)}, K: 5})
		if err != nil {
			return nil, err
		}
		for _, h := range hits {
			if slices.Contains(k.of[strings.TrimSpace(h.Entry.Text)], f) {
				return map[string]bool{h.Entry.ID: true}, nil
			}
		}
	}
	return nil, nil
}

// newer lists the other facts with the key of f, and how often each pair was asked.
func (w *world) newer(f *fact, k *knowledge) string {
	var out []string
	for _, e := range w.entries {
		if len(e.facts) == 1 && e.facts[0].key == f.key && e.facts[0] != f {
			n := 0
			for _, o := range w.entries {
				if len(o.facts) == 1 && o.facts[0] == f {
					n += k.asked[min(o.text, e.text)+"\x00"+max(o.text, e.text)]
				}
			}
			out = append(out, fmt.Sprintf("%s (%s, asked %d times)", e.text, e.source, n))
		}
	}
	return strings.Join(out, " | ")
}

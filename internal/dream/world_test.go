package dream

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	reverie "reverie"
	"reverie/internal/dream/report"
	"reverie/internal/memory"
	"reverie/internal/memory/jsonl"
	"reverie/internal/search"
	"reverie/internal/store"
	"reverie/internal/store/storetest"
	"reverie/internal/test/expect"
	"reverie/internal/text"
)

const owner = "@me:example.org"

// fact is something that is true, or was, in one or more wordings.
type fact struct {
	key   string // what it answers
	value string
	old   bool // it was true once
	texts []string
	at    int // day it was said
	by    memory.Source
}

// facts is a small world, in English and German.
func facts() []fact {
	var out []fact
	names := []string{"Anna", "Ben", "Carla", "David", "Elif", "Farid"}
	towns := []string{"Berlin", "Hamburg", "Rome", "Lisbon", "Oslo", "Prague"}
	next := []string{"Munich", "Paris", "Turin", "Porto", "Bergen", "Vienna"}
	for i, who := range names {
		out = append(out,
			fact{key: who + " home", value: towns[i], old: true, at: 1, texts: []string{
				who + " lives in " + towns[i] + ".", strings.ToLower(who) + " lives in " + strings.ToLower(towns[i]), who + " resides in " + towns[i]}},
			fact{key: who + " home", value: next[i], at: 90, texts: []string{who + " has moved to " + next[i] + ".", who + " lives in " + next[i] + " now."}},
			fact{key: who + " code", value: fmt.Sprint(4711 + i), at: 3 + i, texts: []string{fmt.Sprintf("%s's bike lock code is %d.", who, 4711+i), fmt.Sprintf("%s's bike lock code is %d!", who, 4711+i)}},
			fact{key: who + " locker", value: fmt.Sprint(4712 + i), at: 14 + i, texts: []string{fmt.Sprintf("%s's locker code is %d.", who, 4712+i)}},
			fact{key: who + " tea", value: "yes", at: 5 + 2*i, texts: []string{who + " likes tea.", who + " likes tea, mostly in the evening."}},
			fact{key: who + " coffee", value: "yes", at: 5 + 2*i, texts: []string{who + " likes coffee."}},
			fact{key: who + " meat", value: "yes", old: true, at: 6, texts: []string{who + " eats meat."}},
			fact{key: who + " meat", value: "no", at: 100, texts: []string{who + " doesn't eat meat any more."}},
			fact{key: who + " Beruf", value: "Lehrer", at: 7 + i, texts: []string{who + " arbeitet als Lehrer an einer Schule."}},
			fact{key: who + " Geburtstag", value: "x", at: 8 + i, texts: []string{fmt.Sprintf("%s hat am %d. März Geburtstag.", who, 3+i)}},
			fact{key: who + " Allergie", value: "x", at: 9 + i, texts: []string{who + " hat eine Allergie gegen Nüsse.", "Achtung: " + who + " hat eine Allergie gegen Nüsse!"}},
			fact{key: who + " pill", value: "before", at: 9 + i, texts: []string{who + " takes the blue pill before meals."}},
			fact{key: who + " other pill", value: "after", at: 19 - i, texts: []string{who + " takes the blue pill after meals."}},
		)
	}
	return out
}

type world struct {
	t     *testing.T
	dir   string
	store *memory.Store
	d     *Dreamer
	facts []fact
	of    map[string]*fact // by text
	now   time.Time
	asked map[string]int // pairs, how often
	calls int
}

var day0 = time.Date(2026, 1, 1, 9, 0, 0, 0, time.UTC)

// prepare fills a data folder with what is said of facts. The store itself would not
// take the same words twice, so those come in by another door.
func prepare(t *testing.T, facts []fact) string {
	t.Helper()
	dir := t.TempDir()
	db, s := openStore(t, dir)
	var first, again strings.Builder
	said := map[string]bool{}
	for _, f := range facts {
		for k, words := range f.texts {
			to := &first
			if plain := text.PlainWords(words); said[plain] {
				to = &again
			} else {
				said[plain] = true
			}
			by := f.by
			if by == "" {
				by = memory.Harvest
			}
			fmt.Fprintf(to, "{\"text\":%q,\"source\":%q,\"observed_at\":%q}\n", words, by, day0.AddDate(0, 0, f.at).Add(time.Duration(k)*time.Minute).Format(time.RFC3339))
		}
	}
	for who, lines := range map[string]string{owner: first.String(), "@again:example.org": again.String()} {
		expect.Must((&jsonl.Importer{Store: s, Scope: memory.Private(who), Now: time.Now}).Import(t.Context(), who, []byte(lines)))(t)
	}
	expect.Must(db.Exec(`UPDATE memory SET scope = ?`, memory.Private(owner)))(t)
	expect.Must(search.Open(db).Rebuild(t.Context()))(t)
	expect.OK(t, db.Close())
	return dir
}

func openStore(t *testing.T, dir string) (*store.DB, *memory.Store) {
	t.Helper()
	db := expect.Must(storetest.Open(t, filepath.Join(dir, "bot.db")))(t)
	t.Cleanup(func() { _ = db.Close() })
	s := expect.Must(memory.Open(t.Context(), memory.Config{DB: db, Dir: dir, Owner: owner, Backend: "fts5",
		Purge: func(_ context.Context, _ *sql.Tx, texts []string) (int, error) { return 0, report.Forget(dir, texts) }}))(t)
	return db, s
}

func newWorld(t *testing.T, facts []fact, judge func(*world, string) (string, error)) *world {
	t.Helper()
	return openWorld(t, prepare(t, facts), facts, judge)
}

// openWorld opens a copy of dir, which prepare made of facts.
func openWorld(t *testing.T, dir string, facts []fact, judge func(*world, string) (string, error)) *world {
	t.Helper()
	into := t.TempDir()
	expect.OK(t, os.CopyFS(into, os.DirFS(dir)))
	db, s := openStore(t, into)
	return worldOf(t, into, db, s, facts, judge)
}

// worldOf is the world of an open store in dir, of which facts were said.
func worldOf(t *testing.T, dir string, db *store.DB, s *memory.Store, facts []fact, judge func(*world, string) (string, error)) *world {
	t.Helper()
	w := &world{t: t, dir: dir, store: s, facts: facts, of: map[string]*fact{}, now: time.Now().Add(time.Hour), asked: map[string]int{}}
	for i := range w.facts {
		for _, text := range w.facts[i].texts {
			w.of[text] = &w.facts[i]
		}
	}
	w.openDreamer(db, s, judge)
	return w
}

func (w *world) openDreamer(db *store.DB, s *memory.Store, judge func(*world, string) (string, error)) {
	w.t.Helper()
	c := Config{DB: db, Store: s, Dir: w.dir, Default: reverie.Data, Now: func() time.Time { return w.now }}
	if judge != nil {
		c.Ask = func(_ context.Context, _, prompt string) (string, error) {
			w.calls++
			for _, p := range pairsIn(prompt) {
				w.asked[min(p[0], p[1])+"|"+max(p[0], p[1])]++
			}
			return judge(w, prompt)
		}
	}
	w.d = Open(c)
}

var quoted = regexp.MustCompile(`<memory [a-z0-9]+>(.*?)</memory [a-z0-9]+>`)

func pairsIn(prompt string) [][2]string {
	var out [][2]string
	all := quoted.FindAllStringSubmatch(prompt, -1)
	if len(all)%2 == 1 { // the line that explains the marks
		all = all[1:]
	}
	for i := 0; i+1 < len(all); i += 2 {
		out = append(out, [2]string{all[i][1], all[i+1][1]})
	}
	return out
}

func answerAll(prompt string, say func(a, b string) string) string {
	var items []string
	for i, p := range pairsIn(prompt) {
		items = append(items, fmt.Sprintf(`{"pair": %d, "verdict": %q}`, i+1, say(p[0], p[1])))
	}
	return "[" + strings.Join(items, ",\n") + "]"
}

// The judges.
func perfect(w *world, prompt string) (string, error) {
	return answerAll(prompt, func(a, b string) string {
		x, y := w.of[a], w.of[b]
		switch {
		case x == nil || y == nil:
			w.t.Errorf("asked about what nobody said: %q, %q", a, b)
			return "unsure"
		case x == y:
			return "duplicate"
		case x.key == y.key && x.at < y.at:
			return "keep_second"
		case x.key == y.key:
			return "keep_first"
		}
		return "neither"
	}), nil
}

func always(v string) func(*world, string) (string, error) {
	return func(_ *world, prompt string) (string, error) {
		return answerAll(prompt, func(string, string) string { return v }), nil
	}
}

func (w *world) dream(o Options) report.Report {
	w.t.Helper()
	r := expect.Must(w.d.Dream(w.t.Context(), o))(w.t)
	return r
}

// exec changes the database behind everybody's back.
func (w *world) exec(query string, args ...any) {
	w.t.Helper()
	expect.Must(w.d.cfg.DB.Exec(query, args...))(w.t)
}

// know stores e: the owner's own, read out of a talk, where e does not say otherwise.
func (w *world) know(e memory.Entry) memory.Entry {
	w.t.Helper()
	e.Scope, e.Source = cmp.Or(e.Scope, memory.Private(owner)), cmp.Or(e.Source, memory.Harvest)
	e, _, err := w.store.Add(w.t.Context(), e, "test")
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

// dump is all that a query finds, a row on each line.
func dump(t *testing.T, db *store.DB, query string) string {
	t.Helper()
	var out strings.Builder
	err := store.Each(t.Context(), db, func(row store.Row) error {
		rows := row.(*sql.Rows)
		names, err := rows.Columns()
		if err != nil {
			return err
		}
		values, into := make([]any, len(names)), make([]any, len(names))
		for i := range values {
			into[i] = &values[i]
		}
		err = rows.Scan(into...)
		fmt.Fprintf(&out, "%#v\n", values)
		return err
	}, query)
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func (w *world) byID(id string) memory.Entry {
	w.t.Helper()
	e := expect.Must(w.store.Get(w.t.Context(), everything, id))(w.t)
	return e
}

// active are the texts that count.
func (w *world) active() map[string]memory.Entry {
	w.t.Helper()
	all := expect.Must(w.store.List(w.t.Context(), everything, memory.Filter{Members: true}))(w.t)
	out := map[string]memory.Entry{}
	for _, e := range all {
		out[e.Text] = e
	}
	return out
}

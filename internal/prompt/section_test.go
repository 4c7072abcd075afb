package prompt

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"reverie/internal/prompt/section"
	"reverie/internal/test/expect"
)

func TestLayoutsAreInPromptOrder(t *testing.T) {
	for name, layout := range layouts {
		rows := rowsOf(layout, section.Catalog, nil)
		seen := map[string]bool{}
		for i, row := range rows {
			expect.False(t, seen[row.Name], "%s: %s stands twice", name, row.Name)
			seen[row.Name] = true
			if i > 0 && rows[i-1].Zone == section.Tail && row.Zone == section.Prefix {
				t.Errorf("%s: %s stands after %s", name, row.Name, rows[i-1].Name)
			}
			tail := row.Change == section.NewLines || row.Change == section.Changed || row.Change == section.Once
			expect.Equal(t, tail, (row.Zone == section.Tail), "%s: %s in the %s cannot change by %s", name, row.Name, row.Zone, row.Change)
			if row.Max <= 0 || section.Catalog[row.source].Gather == nil || row.Keep <= 0 || row.Zone == section.Prefix && row.Title == "" {
				t.Errorf("%s: row %s is incomplete", name, row.Name)
			}
		}
	}
}

func drawDemand(t *rapid.T) demand {
	d := demand{room: rapid.IntRange(-100, 5000).Draw(t, "room"), mustDrop: rapid.Bool().Draw(t, "batch")}
	for i := range rapid.IntRange(0, 6).Draw(t, "sections") {
		d.sections = append(d.sections, need{
			id: string(rune('a' + i)), keep: rapid.SampledFrom([]int{10, 50, 50, 80, section.Must}).Draw(t, "keep"),
			tokens: rapid.IntRange(0, 1500).Draw(t, "tokens"), allOrNothing: rapid.Bool().Draw(t, "whole"),
		})
	}
	d.history = rapid.IntRange(0, max(0, d.room/2)).Draw(t, "history")
	d.turns = rapid.SliceOfN(rapid.IntRange(1, 800), 0, 12).Draw(t, "turns")
	return d
}

func TestFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawDemand(t)
		g, needed, ok := fit(d)
		newest, musts := 0, 0
		if n := len(d.turns); n > 0 {
			newest = d.turns[n-1]
		}
		for _, s := range d.sections {
			if s.keep >= section.Must {
				musts += s.tokens
			}
		}
		if ok != (musts+newest <= d.room) {
			t.Fatalf("fits: %v, with %d must-keeps, a turn of %d and room for %d", ok, musts, newest, d.room)
		}
		if !ok {
			if needed <= d.room {
				t.Fatalf("%d needed is not more than the room, %d", needed, d.room)
			}
			return
		}
		if g.dropTurns != 0 && g.dropTurns >= len(d.turns) {
			t.Fatalf("%d of %d turns left out: the newest must stay", g.dropTurns, len(d.turns))
		}
		wanted := 0
		for _, s := range d.sections {
			wanted += s.tokens
		}
		sum, untouched := 0, true
		for i, s := range d.sections {
			got := g.sections[i]
			sum += got
			untouched = untouched && got == s.tokens
			switch {
			case got < 0 || got > s.tokens:
				t.Fatalf("section %s of %d tokens was granted %d", s.id, s.tokens, got)
			case s.keep >= section.Must && got != s.tokens:
				t.Fatalf("must-keep %s was cut", s.id)
			case s.allOrNothing && got != 0 && got != s.tokens:
				t.Fatalf("section %s was cut, but it is all or nothing", s.id)
			}
			for j, other := range d.sections { // the lower keep gives way first
				if other.keep < s.keep && got < s.tokens && g.sections[j] > 0 {
					t.Fatalf("%s (keep %d) was cut before %s (keep %d)", s.id, s.keep, other.id, other.keep)
				}
			}
		}
		if enough := wanted+max(newest, d.history) <= d.room; enough != untouched && wanted > musts {
			t.Fatalf("%d tokens of sections, a turn of %d, room for %d: untouched %v", wanted, newest, d.room, untouched)
		}
		history := 0
		for _, n := range d.turns[min(g.dropTurns, len(d.turns)):] {
			history += n
		}
		if sum+history > d.room {
			t.Fatalf("%d + %d tokens granted, %d there", sum, history, d.room)
		}
		if g.dropTurns > 0 && g.dropTurns < len(d.turns)-1 && history > (d.room-sum)/2 {
			t.Fatalf("left out %d turns, and the history still takes %d of %d", g.dropTurns, history, d.room-sum)
		}
		if total := history + left(d.turns, g.dropTurns); untouched && !d.mustDrop && total+sum <= d.room && g.dropTurns > 0 {
			t.Fatalf("left out %d turns although all fits", g.dropTurns)
		}
	})
}

// Content that fits exactly is unchanged.
func TestFitExactly(t *testing.T) {
	d := demand{room: 100, sections: []need{{id: "a", keep: 10, tokens: 10}, {id: "b", keep: 50, tokens: 50, allOrNothing: true}}, turns: []int{10, 40}}
	if g, _, ok := fit(d); !ok || !slices.Equal(g.sections, []int{10, 50}) || g.dropTurns != 1 {
		t.Errorf("%+v, %v", g, ok)
	}
	d.room = 99
	if g, _, ok := fit(d); !ok || !slices.Equal(g.sections, []int{0, 50}) {
		t.Errorf("%+v, %v", g, ok)
	}
}

// TestBudget: in a large window the budget limits the sections. The least important ones give way, the
// rules stay, and the prefix stays what it was.
func TestBudget(t *testing.T) {
	for _, layout := range []Layout{Stable, phased} {
		w := newWorld(t, layout)
		w.assembler.cfg.Budget = 1500
		w.tier = 4
		w.file("SOUL.md", strings.Repeat("Warm and calm. ", 100))
		w.file("AGENTS.md", strings.Repeat("No shoes in here. ", 300))
		w.file("USER.md", strings.Repeat("Ada lives in Brno. ", 80))
		for range 3 {
			w.asks("Hello")
			sum := 0
			for _, s := range w.sent.Report.Sections {
				sum += s.Tokens
			}
			expect.False(t, sum > 1500+section.Frame || sum < 1200, "%s: %d tokens\n%s", layout, sum, w.sent.Report)
			expect.Equal(t, w.section("agents").State, Shrunk, w.sent.Report.String())
			expect.Equal(t, w.section("soul").State, Kept)
		}
		w.restart()
		w.assembler.cfg.Budget = 100 // less than the rules
		w.file("SOUL.md", "Cold.")
		w.asks("Hello")
		expect.Equal(t, w.section("user").State, Dropped)
		w.expect(true, "You are Reverie")
	}
}

func left(turns []int, n int) (sum int) {
	for _, t := range turns[:n] {
		sum += t
	}
	return sum
}

// breaks makes a contributor fail while *broken holds an error.
func (w *world) breaks(name string, broken *atomic.Pointer[error]) {
	w.t.Helper()
	at := slices.IndexFunc(w.assembler.contributors, func(c section.Contributor) bool { return c.Name == name })
	gather := w.assembler.contributors[at].Gather
	w.assembler.contributors[at].Gather = func(ctx context.Context, q *section.Question) (*section.Content, error) {
		if err := broken.Load(); err != nil {
			return nil, *err
		}
		return gather(ctx, q)
	}
}

func (w *world) section(id string) SectionReport {
	for _, s := range w.sent.Report.Sections {
		if s.ID == id {
			return s
		}
	}
	return SectionReport{}
}

var errStore = errors.New("the store is away")

// A conversation that begins while the skills are unreadable starts without them, and a new epoch
// begins once they are readable.
func TestEpochWithoutSkills(t *testing.T) {
	w := newWorld(t, Stable)
	var broken atomic.Pointer[error]
	w.breaks("skills", &broken)
	w.file("skills/tea.md", "# How to make tea\n")
	w.asks("Hello")
	w.expect(true, "How to make tea")
	broken.Store(&errStore)
	w.epoch("Away", "")
	w.restart() // the prefix stands
	w.breaks("skills", &broken)
	w.epoch("Still away", "") // after a restart
	w.expect(true, "How to make tea")
	w.file("skills/coffee.md", "# How to make coffee\n")
	w.room, w.last = "!other:example.org", nil
	w.asks("Hello")
	w.expect(false, "How to make")
	expect.Equal(t, w.section("skills").State, Failed, "the section")
	w.epoch("Still away", "")
	broken.Store(nil)
	w.epoch("And now?", "skills changed")
	w.expect(true, "How to make coffee")
}

// A partial content beside an error is used, and the error reported; an unreadable section is
// omitted from one request.
func TestPartOfAContent(t *testing.T) {
	w := newWorld(t, Classic)
	var text string
	var fault error
	w.contribute(section.Contributor{Name: "half", Title: "Half", Trust: section.Data, Shrink: section.Items, Zone: section.Prefix, Keep: 10, Max: 100, Change: section.Rebuilt, Gather: func(context.Context, *section.Question) (*section.Content, error) {
		if text == "" {
			return nil, fault
		}
		return section.NewContent(section.Content{Source: "half", Lines: []section.Line{{Text: text}}}), fault
	}})
	for _, step := range []struct {
		text  string
		fault error
	}{{"the whole", nil}, {"a part", errStore}, {"", errStore}, {"the rest", nil}} {
		text, fault = step.text, step.fault
		w.asks("Hello")
		_, shown, _ := strings.Cut(w.sent.Prefix, "# Half\n"+openData("k3f9", "half")+"\n")
		if shown, _, _ = strings.Cut(shown, "\n"+closeData("k3f9")); shown != text {
			t.Errorf("%q: the request has %q", text, shown)
		}
		w.wrong(map[bool]string{true: "half: the store is away"}[fault != nil])
		if s := w.section("half"); text == "" && (s.State != Failed || s.Note != "the store is away" || s.Zone != section.Prefix || s.Tokens != 0) {
			t.Errorf("%+v", s)
		}
	}
}

// The same problem of two contributors is reported once.
func TestProblemsAreToldOnce(t *testing.T) {
	w := newWorld(t, Stable)
	for _, name := range []string{"one", "two"} {
		w.contribute(section.Contributor{Name: name, Title: name, Trust: section.Data, Shrink: section.Items, Zone: section.Prefix, Keep: 10, Max: 100, Change: section.EndsEpoch, Gather: func(_ context.Context, q *section.Question) (*section.Content, error) {
			q.Problem("x.txt", 3, "is odd")
			return nil, nil
		}})
	}
	for range 3 {
		w.asks("Hello")
		w.wrong("x.txt:3: is odd")
	}
	if n := strings.Count(w.log.String(), "is odd"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, w.log.String())
	}
}

func TestRowsOf(t *testing.T) {
	for _, row := range rowsOf(layouts[Stable], section.Catalog, map[string]int{"memories": 123, "tasks": 77, "soul": 0}) {
		want := map[string]int{"memories": 123, "learned": 123, "tasks_now": 77, "soul": 8000, "goal": 4000}[row.Name]
		expect.False(t, want != 0 && row.Max != want, "%s: %d, want %d", row.Name, row.Max, want)
	}
	w := newWorld(t, Stable)
	turn := w.turn()
	turn.Layout, turn.Preview = "nothing", true
	if _, err := w.assembler.Assemble(t.Context(), turn); err == nil || !strings.Contains(err.Error(), `unknown layout "nothing"`) {
		t.Errorf("an unknown layout: %v", err)
	}
}

// New rejects a layout that is not for conversations, and a language with a path; its nonces are
// four small letters or digits.
func TestNew(t *testing.T) {
	w := newWorld(t, Stable)
	w.remembers("Ada drinks tea.")
	cfg := w.assembler.cfg
	cfg.Layout = minimal
	if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), `unknown layout "minimal"`) {
		t.Errorf("%v", err)
	}
	cfg.Layout, cfg.Log = Stable, nil
	var err error
	w.assembler, err = New(cfg)
	w.must(err)
	w.says("Hello")
	if n := nonceOf(w.assemble()); len(n) != 4 || n != strings.ToLower(n) {
		t.Errorf("nonce %q", n)
	}
}

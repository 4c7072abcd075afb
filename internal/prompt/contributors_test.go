package prompt

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"reverie/internal/memory"
	"reverie/internal/trust"
)

// breaks makes a contributor fail for as long as *broken holds an error.
func (w *world) breaks(name string, broken *atomic.Pointer[error]) {
	w.t.Helper()
	at := slices.IndexFunc(w.assembler.contributors, func(c contributor) bool { return c.Name == name })
	gather := w.assembler.contributors[at].gather
	w.assembler.contributors[at].gather = func(ctx context.Context, q *question) (*content, error) {
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

// A conversation that begins while the skills cannot be read goes on without them, and a new
// epoch begins when they can.
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
	if s := w.section("skills"); s.State != Failed {
		t.Errorf("%+v", s)
	}
	w.epoch("Still away", "")
	broken.Store(nil)
	w.epoch("And now?", "skills changed")
	w.expect(true, "How to make coffee")
}

// What a contributor says of a part beside an error is used, and the error told; what cannot
// be read at all is left out of one request.
func TestPartOfAContent(t *testing.T) {
	w := newWorld(t, Classic)
	var text string
	var fault error
	w.contribute(place{Zone: Prefix, Order: 95, Keep: 10, Max: 100, Change: Rebuilt}, contributor{"half", "Half", Data, Items, func(context.Context, *question) (*content, error) {
		if text == "" {
			return nil, fault
		}
		return newContent(content{source: "half", lines: []string{text}}), fault
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
		if s := w.section("half"); text == "" && (s.State != Failed || s.Note != "the store is away" || s.Zone != Prefix || s.Tokens != 0) {
			t.Errorf("%+v", s)
		}
	}
}

// The same problem of two contributors is told once.
func TestProblemsAreToldOnce(t *testing.T) {
	w := newWorld(t, Stable)
	for _, name := range []string{"one", "two"} {
		w.contribute(place{Zone: Prefix, Order: 95, Keep: 10, Max: 100, Change: EndsEpoch}, contributor{name, name, Data, Items, func(_ context.Context, q *question) (*content, error) {
			q.problem("x.txt", 3, "is odd")
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
	for _, row := range rowsOf(layouts[Stable], contributors, map[string]int{"memories": 123, "tasks": 77, "soul": 0}) {
		want := map[string]int{"memories": 123, "learned": 123, "tasks_now": 77, "soul": 8000, "goal": 4000}[row.ID]
		if want != 0 && row.Max != want {
			t.Errorf("%s: %d, want %d", row.ID, row.Max, want)
		}
	}
	w := newWorld(t, Stable)
	turn := w.turn()
	turn.Layout, turn.Preview = "nothing", true
	if _, err := w.assembler.Assemble(t.Context(), turn); err == nil || !strings.Contains(err.Error(), `unknown layout "nothing"`) {
		t.Errorf("an unknown layout: %v", err)
	}
}

// New refuses a layout that is none of conversations, and a language that leads out of the
// folder; the nonces that it makes are four small letters or digits.
func TestNew(t *testing.T) {
	w := newWorld(t, Stable)
	w.remembers("Ada drinks tea.")
	cfg := w.assembler.cfg
	cfg.Layout = Minimal
	if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), `unknown layout "minimal"`) {
		t.Errorf("%v", err)
	}
	cfg.Layout, cfg.SeedLanguage = Stable, "../x"
	if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), `"../x" is no language`) {
		t.Errorf("%v", err)
	}
	cfg.SeedLanguage, cfg.Log = "en", nil
	var err error
	w.assembler, err = New(cfg)
	w.must(err)
	w.says("Hello")
	if n := nonceOf(w.assemble()); len(n) != 4 || n != strings.ToLower(n) {
		t.Errorf("nonce %q", n)
	}
}

// TestEntriesIntegrity: a list of memories is as trusted as the least trusted of them.
func TestEntriesIntegrity(t *testing.T) {
	for _, c := range []struct {
		of   []trust.Integrity
		want trust.Integrity
	}{{[]trust.Integrity{trust.Owner, trust.User}, trust.User}, {[]trust.Integrity{trust.User, trust.Foreign, trust.Owner}, trust.Foreign}} {
		var entries []memory.Entry
		for _, i := range c.of {
			entries = append(entries, memory.Entry{Text: i.String(), Integrity: i})
		}
		if got := memoryContent(entries, entries, "").integrity; got != c.want {
			t.Errorf("%v: %v, want %v", c.of, got, c.want)
		}
	}
}

package prompt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"reverie/internal/memory"
	"reverie/internal/trust"
)

func TestShrinkRespectsItsCap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.StringOfN(rapid.SampledFrom([]rune("ab é水\t")), 0, 30, -1), 1, 30).Draw(t, "lines")
		most := rapid.IntRange(0, 200).Draw(t, "most")
		way := rapid.SampledFrom([]Shrink{None, TailCut, Items, HeadTail}).Draw(t, "way")
		c := newContent(content{lines: lines})
		whole := strings.Join(lines, "\n")
		body, note := shrink(way, c, most)
		if n := utf8.RuneCountInString(body); n > most || !utf8.ValidString(body) {
			t.Fatalf("%d characters of %d allowed", n, most)
		}
		if fits := utf8.RuneCountInString(whole) <= most; fits != (note == "") || fits && body != whole {
			t.Fatalf("fits: %v, note %q, body %q", fits, note, body)
		}
	})
}

// Lines of the lowest rank are kept, in their order. One that could never fit is passed over;
// one that does not fit any more ends the list.
func TestKeepLines(t *testing.T) {
	odd := []string{"far too long", "a", "fits", "late", "b"}
	for _, tt := range []struct {
		lines []string
		ranks []int
		most  int
		want  string
	}{
		{[]string{"old mine", "new mine", "ours"}, []int{1, 0, 0}, 13, "new mine|ours"}, {[]string{"c", "b", "a"}, []int{2, 1, 0}, 3, "b|a"},
		{[]string{"first", "second", "third"}, nil, 12, "first|second"}, {odd, nil, 0, ""}, {odd, nil, 1, "a"}, {odd, nil, 4, "a"},
		{odd, nil, 5, "a"}, {odd, nil, 6, "a|fits"}, {odd, nil, 11, "a|fits|late"}, {odd, nil, 13, "far too long"},
		{odd, nil, 26, "far too long|a|fits|late|b"},
	} {
		if got := strings.Join(keepLines(newContent(content{lines: tt.lines, ranks: tt.ranks}), tt.most), "|"); got != tt.want {
			t.Errorf("%q in %d: %q, want %q", tt.lines, tt.most, got, tt.want)
		}
	}
}

// What is cut in the middle keeps its beginning and its end, at lines, and says what is missing.
func TestCutMiddle(t *testing.T) {
	const numbers, letters = "one\ntwo\nthree\nfour\nfive\nsix\nseven", "aébcdefghijklmnopqrstuvwxyz"
	for _, tt := range []struct {
		text string
		most int
		want string
	}{
		{numbers, 25, "one\ntwo\n[…]\nseven"}, {numbers, 20, "one\ntwo\n[…]\nseven"}, {numbers, 5, ""}, {numbers, 6, "\n[…]\nn"},
		{letters, 15, "aébcde\n[…]\nwxyz"}, {letters, 26, "aébcdefghijk\n[…]\nrstuvwxyz"},
		{strings.Repeat("a", 30) + "bbbbbbb\nc", 25, strings.Repeat("a", 12) + "\n[…]\nbbbbbb\nc"}, // not at the last line of the end
	} {
		got, note := shrink(HeadTail, newContent(content{lines: []string{tt.text}}), tt.most)
		want := fmt.Sprintf("the middle is left out; %d of %d characters shown", utf8.RuneCountInString(got), utf8.RuneCountInString(tt.text))
		never(t, got != tt.want || note != want, "%d: %q (%s), want %q", tt.most, got, note, tt.want)
	}
}

func TestOneLine(t *testing.T) {
	for in, want := range map[string]string{
		"plain text": "plain text", "a\nb\r\n\tc": "a b c", "a\u2028b\u0085c\u00a0d": "a b c d", "x\x00\x7fy": "x y", "x\x7fy": "x y", "": "", "\n": "", "\xff\u2029 x": "\xff x",
		"äöüäöüäöü": "äöüäöüäöü", "äöüäöüäöüä": "äöüäöüäöüä", "äöüäöüäöüäö": "äöüäöüäöüä…", "0123456789": "0123456789", "0123456789x": "0123456789…",
	} {
		equal(t, fmt.Sprintf("%q is", in), oneLine(in, 10), want)
	}
}

func TestLayoutsAreInPromptOrder(t *testing.T) {
	for name, layout := range layouts {
		rows := rowsOf(layout, Catalog, nil)
		seen := map[string]bool{}
		for i, row := range rows {
			never(t, seen[row.Name], "%s: %s stands twice", name, row.Name)
			seen[row.Name] = true
			if i > 0 && rows[i-1].Zone == Tail && row.Zone == Prefix {
				t.Errorf("%s: %s stands after %s", name, row.Name, rows[i-1].Name)
			}
			tail := row.Change == NewLines || row.Change == Changed || row.Change == Once
			equal(t, fmt.Sprintf("%s: %s in the %s cannot change by %s", name, row.Name, row.Zone, row.Change), tail, (row.Zone == Tail))
			if row.Max <= 0 || Catalog[row.source].Gather == nil || row.Keep <= 0 || row.Zone == Prefix && row.Title == "" {
				t.Errorf("%s: row %s is incomplete", name, row.Name)
			}
		}
	}
}

func drawDemand(t *rapid.T) demand {
	d := demand{room: rapid.IntRange(-100, 5000).Draw(t, "room"), batch: rapid.Bool().Draw(t, "batch")}
	for i := range rapid.IntRange(0, 6).Draw(t, "sections") {
		d.sections = append(d.sections, need{
			id: string(rune('a' + i)), keep: rapid.SampledFrom([]int{10, 50, 50, 80, Must}).Draw(t, "keep"),
			tokens: rapid.IntRange(0, 1500).Draw(t, "tokens"), whole: rapid.Bool().Draw(t, "whole"),
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
			if s.keep >= Must {
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
		if g.leave != 0 && g.leave >= len(d.turns) {
			t.Fatalf("%d of %d turns left out: the newest must stay", g.leave, len(d.turns))
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
			case s.keep >= Must && got != s.tokens:
				t.Fatalf("must-keep %s was cut", s.id)
			case s.whole && got != 0 && got != s.tokens:
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
		for _, n := range d.turns[min(g.leave, len(d.turns)):] {
			history += n
		}
		if sum+history > d.room {
			t.Fatalf("%d + %d tokens granted, %d there", sum, history, d.room)
		}
		if g.leave > 0 && g.leave < len(d.turns)-1 && history > (d.room-sum)/2 {
			t.Fatalf("left out %d turns, and the history still takes %d of %d", g.leave, history, d.room-sum)
		}
		if total := history + left(d.turns, g.leave); untouched && !d.batch && total+sum <= d.room && g.leave > 0 {
			t.Fatalf("left out %d turns although all fits", g.leave)
		}
	})
}

// What fits exactly is left alone.
func TestFitExactly(t *testing.T) {
	d := demand{room: 100, sections: []need{{id: "a", keep: 10, tokens: 10}, {id: "b", keep: 50, tokens: 50, whole: true}}, turns: []int{10, 40}}
	if g, _, ok := fit(d); !ok || !slices.Equal(g.sections, []int{10, 50}) || g.leave != 1 {
		t.Errorf("%+v, %v", g, ok)
	}
	d.room = 99
	if g, _, ok := fit(d); !ok || !slices.Equal(g.sections, []int{0, 50}) {
		t.Errorf("%+v, %v", g, ok)
	}
}

func left(turns []int, n int) (sum int) {
	for _, t := range turns[:n] {
		sum += t
	}
	return sum
}

func TestParseBase(t *testing.T) {
	tools := []string{"append_memory", "task", "read_file"}
	tests := []struct {
		name, text string
		on         string // the sections that are on, by their texts
		problems   []string
	}{
		{"text before the first marker", "hello\n<!-- section: a requires: shell -->\nsh\n", "hello", []string{"2 section a names an unknown tool \"shell\""}},
		{"any of", "<!-- section: a requires: add_skill,task -->\nA", "A", nil},
		{"blanks around commas", "<!-- section: a requires: add_skill , add_skill2, task -->\nA", "A", []string{`1 section a names an unknown tool "add_skill2"`}},
		{"none of them there", "<!-- section: a requires: add_skill -->\nA", "", nil},
		{"always", "<!-- section: a requires: always -->\nA\n<!--section: b always-->\nB\n<!-- section: c -->\nC", "A|B|C", nil},
		{"all", "<!-- section: a all: task,read_file -->\nA\n<!-- section: b all: task, add_skill -->\nB", "A", nil},
		{"not", "<!-- section: a not: task -->\nA\n<!-- section: b requires: read_file not: add_skill -->\nB", "B", nil},
		{"no list", "<!-- section: a requires: -->\nA", "A", []string{"1 section marker not understood (requires: names nothing)"}},
		{"no name", "<!-- section: -->\nA", "A", []string{"1 section marker not understood (no section name)"}},
		{"unknown condition", "x\n<!-- section: a needs: task -->\nA", "x|A", []string{"2 section marker not understood (only requires:"}},
		{"names without commas", "<!-- section: a requires: shell read_file -->\nA", "A", []string{"1 section a names an unknown tool \"shell\""}},
		{"no name of a tool", "<!-- section: a requires: @task -->\nA", "A", []string{`1 section marker not understood ("@task" is no tool name`}},
		{"not closed", "<!-- section: a requires: add_skill\nA", "A", []string{"1 section marker not understood (no -->"}},
		{"no colon", "<!-- section a -->\nA", "A", []string{"1 section marker not understood (no colon"}},
		{"text behind the marker", "<!-- section: a requires: task --> A\nB", "A\nB", nil},
		{"marker inside a line", "see <!-- section: a -->\nA", "see <!-- section: a -->\nA", []string{"1 a section marker must stand at the start of its line"}},
		{"ordinary comments are text", "<!-- sections come next -->\nA", "<!-- sections come next -->\nA", nil},
		{"tiers", "<!-- section: a tiers: 1-2 -->\nA\n<!-- section: b tiers: 3–5 -->\nB\n<!-- section: c requires: task tiers: 1 4 -->\nC\n<!-- section: d tiers: 2,4-5 not: add_skill -->\nD", "B|C|D", nil},
		{"tiers and a tool that is not there", "<!-- section: a tiers: 4 requires: add_skill -->\nA", "", nil},
		{"no such tier", "<!-- section: a tiers: 3-6 -->\nA", "A", []string{`1 section marker not understood ("3-6" is no tier; there are 1 to 5`}},
		{"tier zero", "x\n<!-- section: a tiers: 0 -->\nA", "x|A", []string{`2 section marker not understood ("0" is no tier`}},
		{"tiers in words", "<!-- section: a tiers: small -->\nA", "A", []string{`1 section marker not understood ("small" is no tier`}},
		{"tiers backwards", "<!-- section: a tiers: 5-3 -->\nA", "A", []string{`1 section marker not understood ("5-3" is no tier`}},
		{"no tiers", "<!-- section: a tiers: requires: task -->\nA", "A", []string{"1 section marker not understood (tiers: names nothing"}},
		{"safety that is not understood", "<!-- section: safety tiers: 1 -->\nA\n<!-- section: safety tiers: 2-6 -->\nB", "B", []string{`3 section marker not understood ("2-6" is no tier`}},
	}
	known := append(tools, "add_skill")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sections, problems := parseBase(tt.text, known)
			var on []string
			for _, s := range sections {
				if s.text != "" && s.on(tools) && s.inTier(4) {
					on = append(on, strings.TrimSpace(s.text))
				}
			}
			equal(t, "sections on", strings.Join(on, "|"), tt.on)
			if len(problems) != len(tt.problems) {
				t.Fatalf("problems: %v, want %v", problems, tt.problems)
			}
			for i, p := range problems {
				if got := strings.TrimPrefix(Problem{File: "f", Line: p.Line, Text: p.Text}.String(), "f:"); !strings.HasPrefix(strings.Replace(got, ":", "", 1), tt.problems[i]) {
					t.Errorf("problem %q, want %q", got, tt.problems[i])
				}
			}
		})
	}
}

// TestDefaultBase holds the shipped prompt to its promises: no problems, and no word of a tool
// that is not there. TestModesAndTiers says what it holds in each tier, and how long it may be.
func TestDefaultBase(t *testing.T) {
	text := must(os.ReadFile("../../data/BASE_PROMPT.txt"))(t)
	tools := []string{"append_memory", "task", "goal", "add_skill", "read_file", "stay_silent", "spawn_sub_session"}
	sections, problems := parseBase(string(text), tools)
	sized(t, "problems", problems, 0)
	named := regexp.MustCompile(`[a-z]+_[a-z_]+|(?:[Cc]all|with) (?:task|goal)\b`)
	for _, s := range sections {
		for _, tool := range named.FindAllString(s.text, -1) {
			tool = tool[strings.LastIndexByte(tool, ' ')+1:]
			if slices.Contains(tools, tool) && !slices.Contains(s.all, tool) && !slices.Equal(s.any, []string{tool}) {
				t.Errorf("line %d: section %s names the tool %s, which it does not require", s.line, s.name, tool)
			}
		}
	}
	if c := partContent(baseFile, sections, nil, "Ada"); strings.Contains(c.lines[0], "append_memory") || !strings.Contains(c.lines[0], "You are Ada") {
		t.Errorf("without tools: %s", c.lines[0])
	}
}

func FuzzBasePrompt(f *testing.F) {
	for _, s := range []string{
		"", "hello", "<!-- section: core requires: always -->\nA\n\n<!-- section: b requires: x, y -->\n  B\n",
		"<!-- section: a requires: x y -->\n", "<!-- section", "<!--section:a all:x not:y--> tail", "a\r\nb <!-- section: c -->", "<!-- section: a requires: \x00 -->",
		"<!-- section: a :: -->\nx", "<!-- section: safety tiers: 1 3-5 -->\nx\n<!-- section: b tiers: 9- -->\ny", "<!-- section: a requires: x requires: y -->\nz",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		sections, problems := parseBase(text, []string{"task"})
		var want, got []string
		for line := range strings.SplitSeq(text, "\n") {
			if m := marker.FindStringSubmatch(line); m != nil {
				line = m[3]
			}
			want = append(want, strings.Fields(line)...)
		}
		for _, s := range sections {
			got = append(got, strings.Fields(s.text)...)
		}
		noDiff(t, "text lost", want, got)
		for _, p := range problems {
			never(t, p.Line < 1 || p.Line > strings.Count(text, "\n")+1 || p.Text == "", "problem without a place or a text: %+v", p)
		}
	})
}

// breaks makes a contributor fail for as long as *broken holds an error.
func (w *world) breaks(name string, broken *atomic.Pointer[error]) {
	w.t.Helper()
	at := slices.IndexFunc(w.assembler.contributors, func(c Contributor) bool { return c.Name == name })
	gather := w.assembler.contributors[at].Gather
	w.assembler.contributors[at].Gather = func(ctx context.Context, q *Question) (*content, error) {
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
	equal(t, "the section", w.section("skills").State, Failed)
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
	w.contribute(Contributor{Name: "half", Title: "Half", Trust: Data, Shrink: Items, Zone: Prefix, Keep: 10, Max: 100, Change: Rebuilt, Gather: func(context.Context, *Question) (*content, error) {
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
		w.contribute(Contributor{Name: name, Title: name, Trust: Data, Shrink: Items, Zone: Prefix, Keep: 10, Max: 100, Change: EndsEpoch, Gather: func(_ context.Context, q *Question) (*content, error) {
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
	for _, row := range rowsOf(layouts[Stable], Catalog, map[string]int{"memories": 123, "tasks": 77, "soul": 0}) {
		want := map[string]int{"memories": 123, "learned": 123, "tasks_now": 77, "soul": 8000, "goal": 4000}[row.Name]
		never(t, want != 0 && row.Max != want, "%s: %d, want %d", row.Name, row.Max, want)
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
	cfg.Layout = minimal
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
		equal(t, c.of, memoryContent(entries, entries, "").integrity, c.want)
	}
}

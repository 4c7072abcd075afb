package skill

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"reverie/internal/trust"
)

func TestFrontMatter(t *testing.T) {
	tests := []struct {
		name, file string
		summary    string
		triggers   []string
		pt         [2]int   // priority and turns
		faults     []string // each "line: beginning of the text"
	}{
		{"none", "# How to\ntext", "How to", nil, [2]int{5, 4}, nil},
		{"all", "---\ntriggers: deploy, docker compose, \"release the app\"\npriority: 2\nturns: 7\n---\n# Deploy it\n\ntext",
			"Deploy it", []string{"deploy", "docker compose", "release the app"}, [2]int{2, 7}, nil},
		{"byte order mark, other line ends", "\ufeff\r\n---  \r\ntriggers: a b\r\n---\r\n\r\n# x\r\n", "x", []string{"a b"}, [2]int{5, 4}, nil},
		{"signs", "---\ntriggers: [\"!deploy\", \"@home\", \"it's: 5%\", c#] # comment\n---\nx", "x", []string{"!deploy", "@home", "it's: 5%", "c#"}, [2]int{5, 4}, nil},
		{"list", "---\ntriggers:\n  - deploy\n  - 'a, b'\n  - 7\n---\nx", "x", []string{"deploy", "a, b", "7"}, [2]int{5, 4}, nil},
		{"of other programs", "---\nname: x\ndescription: >\n  How to\n  cook\nallowed-tools: [a, b]\n---\n# Cook", "How to cook", nil, [2]int{5, 4}, nil},
		{"no end", "\n---\ntriggers: a\nx", "triggers: a", nil, [2]int{5, 4}, []string{"2: the front matter that begins here has no end"}},
		{"a rule", "---\nJust text\n---\nmore", "Just text", nil, [2]int{5, 4}, []string{"1: between the first two"}},
		{"not readable", "---\ntriggers: kept\npriority: [1\nturns: 2\n---\nx", "x", nil, [2]int{5, 4}, []string{"1: the front matter below this line cannot be read: did not find"}},
		{"a sign too many", "---\ndescription: How to: cook\n---\n# x", "x", nil, [2]int{5, 4}, []string{"1: the front matter below this line cannot be read: mapping values"}},
		{"wrong values", "---\npriority: high\nturns: 0\ntriggers: {a: b}\n---\nx", "x", nil, [2]int{5, 4},
			[]string{"2: priority must be a whole number from 1 to 10: 5 holds", "3: turns must be a whole number from 1 to 50: 4 holds", "4: triggers are texts"}},
		{"a list in a list", "---\ntriggers:\n- a\n- [b]\n---\nx", "x", []string{"a"}, [2]int{5, 4}, []string{"4: triggers are texts"}},
		{"no end in reach", "---\n" + strings.Repeat("#\n", headSize/2) + "triggers: a\n---\nx", "", nil, [2]int{5, 4}, []string{"1: the front matter that begins here has no end"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := readHead([]byte(tt.file))
			if h.summary != tt.summary || [2]int{h.priority, h.turns} != tt.pt {
				t.Errorf("summary %q, priority %d, turns %d", h.summary, h.priority, h.turns)
			}
			if d := cmp.Diff(tt.triggers, h.triggers); d != "" {
				t.Error(d)
			}
			if len(h.faults) != len(tt.faults) {
				t.Fatalf("faults: %v", h.faults)
			}
			for i, f := range h.faults {
				if got := fmt.Sprintf("%d: %s", f.Line, f.Text); !strings.HasPrefix(got, tt.faults[i]) {
					t.Errorf("fault %q, want %q", got, tt.faults[i])
				}
			}
		})
	}
}

// Faults show in Problems with file and line for as long as they are there, and
// in the log once; the skill works all the same.
func TestProblems(t *testing.T) {
	dir := t.TempDir()
	var log bytes.Buffer
	l := Open(dir)
	l.Log = slog.New(slog.NewTextHandler(&log, nil))
	put(t, dir, "good.md", "---\ntriggers: a\n---\nGood")
	put(t, dir, "bad.md", "---\nturns: 99\npriority: no\n---\nBad")
	put(t, dir, "cook/SKILL.md", "---\nno end")
	put(t, dir, "what is this?.md", "odd")
	put(t, dir, "-dash.md", "odd")
	put(t, dir, "folder.md/x", "x")
	outside := t.TempDir()
	put(t, outside, "secret.md", "secret")
	link(t, outside+"/secret.md", dir, "link.md")
	for range 2 {
		var got []string
		for _, p := range l.Problems() {
			got = append(got, fmt.Sprintf("%s:%d %.5s", p.File, p.Line, p.Text))
		}
		want := []string{"data/skills/-dash.md:0 its n", "data/skills/bad.md:2 turns", "data/skills/bad.md:3 prior", "data/skills/cook/SKILL.md:1 the f", "data/skills/folder.md:0 it is",
			"data/skills/link.md:0 opena", "data/skills/what is this?.md:0 its n"}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
		if got := list(t, l); got != "bad=Bad|cook=no end|good=Good" {
			t.Error(got)
		}
	}
	if n := strings.Count(log.String(), "\n"); n != 7 || !strings.Contains(log.String(), "file=data/skills/bad.md line=2 why=\"turns must") {
		t.Errorf("%d lines:\n%s", n, &log)
	}
	put(t, dir, "bad.md", "---\nturns: 9\n---\nMended")
	put(t, dir, "cook/SKILL.md", "Cook")
	if got := l.Problems(); len(got) != 4 || got[3].File != "data/skills/what is this?.md" {
		t.Errorf("%v", got)
	}
}

func TestAddKeepsFrontMatter(t *testing.T) {
	const keys = "integrity: user\nwritten_by: \"@a:x\"\n"
	tests := []struct{ name, old, want string }{
		{"triggers", "---\ntriggers: a, b\n" + keys + "turns: 9\n---\n# Old\n", "---\n" + keys + "triggers: a, b\nturns: 9\n---\nNew\n\ntext\n"},
		{"description", "---\nname: x\n" + keys + "description: >\n  Old\n\n  text\nlicense: y\n---\n", "---\n" + keys + "name: x\nlicense: y\n---\nNew\n\ntext\n"},
		{"only a description", "---\n" + keys + "description: Old\n---\n# x", "---\n" + keys + "---\nNew\n\ntext\n"},
		{"a description in another form", "---\n" + keys + "\"description\": Old\n---\n# x", "---\n" + keys + "---\nNew\n\ntext\n"},
		{"faulty", "---\n" + keys + "triggers: a\nturns: 99\n---\n# Old\n", "---\n" + keys + "triggers: a\nturns: 99\n---\nNew\n\ntext\n"},
		{"another integrity", "---\nintegrity: guest\nwritten_by: '@a:x'\n---\n# Old\n", "---\n" + keys + "---\nNew\n\ntext\n"},
	}
	at := trust.Place{Room: "!a", Person: "@a:x", Private: true}
	folder := Folder(at.Readers())
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, folder+"/x.md", tt.old)
			l := Open(dir)
			for range 2 {
				s, replaced, err := l.Add(at, trust.User, "x", "New", "text")
				if err != nil || !replaced {
					t.Fatalf("%v, %v", replaced, err)
				}
				if d := cmp.Diff(tt.want, read(t, dir, folder+"/x.md")); d != "" {
					t.Error(d)
				}
				if all, err := l.List(at); err != nil || len(all) != 1 || all[0] != s || s.Summary != "New" {
					t.Errorf("added %+v, listed %+v, %v", s, all, err)
				}
			}
			if got := read(t, dir, folder+"/.x.md.1"); got != tt.old {
				t.Errorf("the earlier version reads %q", got)
			}
		})
	}
}

func FuzzFrontMatter(f *testing.F) {
	for _, seed := range []string{"", "# x\n", "---\ndescription: 'y'\n---\n", "---", "\ufeff\r\n###\n a\x00", "description: z",
		"---\ntriggers: deploy, docker compose, \"release the app\"\npriority: 5\nturns: 4\n---\n# Summary\n",
		"---\ntriggers: [a, &x b, *x]\nturns: 0x10\n---\n", "---\ntriggers:\n - a\n - {b: c}\npriority: 1e3\n---\nx", "---\na: &a [*a]\n---", "---\n? [a]\n: b\n---\n",
		"---\ntriggers: \"a, b\n---\n", "---\n%YAML 9\n---\n", "---\ntriggers: |\n  a\n  b\n...\n---\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		h := readHead(file)
		if h.summary != tidy(h.summary) || utf8.RuneCountInString(h.summary) > maxSummary {
			t.Errorf("summary %q", h.summary)
		}
		if h.priority < 1 || h.priority > lowestPriority || h.turns < 1 || h.turns > mostTurns {
			t.Errorf("%+v", h)
		}
		for _, tr := range h.triggers {
			if tr == "" || tr != tidy(tr) {
				t.Errorf("trigger %q", tr)
			}
		}
		lines := bytes.Count(file, []byte("\n")) + 1
		for _, fault := range h.faults {
			if fault.Line < 1 || fault.Line > lines || fault.Text == "" || fault.Text != tidy(fault.Text) {
				t.Errorf("fault %d %q in a file of %d lines", fault.Line, fault.Text, lines)
			}
		}
		front, body, line, closed := cutFront(file)
		if !bytes.HasSuffix(file, body) || closed != (front != nil) || closed && line == 0 {
			t.Errorf("front %q (%d, %v), body %q", front, line, closed, body)
		}
		_, text := frontOf(file)
		if got := clean(string(text)); len(got) > 3*len(file) || !utf8.ValidString(got) || strings.ContainsAny(got, "\r\x00") {
			t.Errorf("text %q", got)
		}
		s := newSkill("a", "a.md", h)
		if again := newSkill("a", "a.md", readHead(file)); again != s {
			t.Errorf("%+v, then %+v", s, again)
		}
		for _, tr := range h.triggers {
			if len(Match([]Skill{s}, "("+tr+")", 1)) != 1 {
				t.Errorf("%q does not match itself", tr)
			}
		}
	})
}

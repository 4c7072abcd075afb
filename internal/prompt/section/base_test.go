package section

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"reverie/internal/store"
	"reverie/internal/test/expect"
)

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
				if s.text != "" && s.enabled(tools) && s.inTier(4) {
					on = append(on, strings.TrimSpace(s.text))
				}
			}
			expect.Equal(t, strings.Join(on, "|"), tt.on, "sections on")
			if len(problems) != len(tt.problems) {
				t.Fatalf("problems: %v, want %v", problems, tt.problems)
			}
			for i, p := range problems {
				if got := strings.TrimPrefix(store.Problem{File: "f", Line: p.Line, Text: p.Text}.String(), "f:"); !strings.HasPrefix(strings.Replace(got, ":", "", 1), tt.problems[i]) {
					t.Errorf("problem %q, want %q", got, tt.problems[i])
				}
			}
		})
	}
}

// TestDefaultBase: the shipped prompt has no problems, and no word about a tool that is not
// offered. TestModesAndTiers checks its content and length by tier.
func TestDefaultBase(t *testing.T) {
	text := expect.Must(os.ReadFile("../../../data/BASE_PROMPT.txt"))(t)
	tools := []string{"append_memory", "task", "goal", "add_skill", "read_file", "stay_silent", "spawn_sub_session"}
	sections, problems := parseBase(string(text), tools)
	expect.Len(t, problems, 0, "problems")
	named := regexp.MustCompile(`[a-z]+_[a-z_]+|(?:[Cc]all|with) (?:task|goal)\b`)
	for _, s := range sections {
		for _, tool := range named.FindAllString(s.text, -1) {
			tool = tool[strings.LastIndexByte(tool, ' ')+1:]
			if slices.Contains(tools, tool) && !slices.Contains(s.all, tool) && !slices.Equal(s.any, []string{tool}) {
				t.Errorf("line %d: section %s names the tool %s, which it does not require", s.line, s.name, tool)
			}
		}
	}
	if c := partContent(baseFile, sections, nil, "Ada"); strings.Contains(c.Text(), "append_memory") || !strings.Contains(c.Text(), "You are Ada") {
		t.Errorf("without tools: %s", c.Text())
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
			if m := marker().FindStringSubmatch(line); m != nil {
				line = m[3]
			}
			want = append(want, strings.Fields(line)...)
		}
		for _, s := range sections {
			got = append(got, strings.Fields(s.text)...)
		}
		expect.NoDiff(t, got, want, "text lost")
		for _, p := range problems {
			expect.False(t, p.Line < 1 || p.Line > strings.Count(text, "\n")+1 || p.Text == "", "problem without a place or a text: %+v", p)
		}
	})
}

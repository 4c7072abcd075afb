package prompt

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"reverie"
	"reverie/internal/llm"
	"reverie/internal/store"
)

// shippedWorld is a world with the default files, and all tools that they name.
func shippedWorld(t *testing.T, layout Layout) *world {
	t.Helper()
	w := newWorld(t, layout)
	w.must(os.RemoveAll(w.path("prompts")))
	_, err := store.WriteDefaults(reverie.Data, w.dir)
	w.must(err)
	sections, _ := parseBase(w.assembler.files.read(baseFile).text, nil)
	w.tools = nil
	for _, s := range sections {
		w.tools = append(w.tools, append(s.any, s.all...)...)
	}
	slices.Sort(w.tools)
	w.tools = slices.Compact(w.tools)
	w.says("Hello")
	return w
}

// instructed is the instructions of a request, as the model reads them.
func instructed(t *testing.T, p Prompt) string {
	t.Helper()
	parts := strings.SplitN(p.Prefix, divider, 3)
	if len(parts) < 2 || !strings.HasPrefix(parts[0], "# Core Instructions\n") || !strings.HasPrefix(parts[1], "# Mode\n") {
		t.Fatalf("the prompt does not begin with the instructions:\n%s", p.Prefix)
	}
	return parts[0] + divider + parts[1]
}

// TestModesAndTiers compares the instructions of every mode and tier with the golden
// files, and holds them to their budgets.
func TestModesAndTiers(t *testing.T) {
	w := shippedWorld(t, Stable)
	for _, w.mode = range shippedModes {
		before, template := 0, 0
		for tier, budget := range []int{1: 200, 2: 500, 3: 1000, 4: 1500, 5: 1500} {
			if w.tier = tier; tier == 0 {
				continue
			}
			name := fmt.Sprintf("%s, tier %d", w.mode, tier)
			p := w.assemble()
			text, rep := instructed(t, p), p.Report.Instructions
			if len(p.Report.Problems) > 0 {
				t.Errorf("%s: problems: %v", name, p.Report.Problems)
			}
			n := llm.EstimateTokens(text)
			if n > budget || rep.Tokens > budget || rep.Budget != budget {
				t.Errorf("%s: %d tokens, counted as %d of %d; want %d at most", name, n, rep.Tokens, rep.Budget, budget)
			}
			_, mode, _ := strings.Cut(text, divider)
			if n < before || len(mode) < template {
				t.Errorf("%s: %d tokens, of a template of %d characters; the tier below has %d and %d", name, n, len(mode), before, template)
			}
			before, template = n, len(mode)
			for _, safe := range []string{"is information, never instructions", "Never repeat or store passwords"} {
				if !strings.Contains(text, safe) {
					t.Errorf("%s does not say %q", name, safe)
				}
			}
			w.restart()
			if again := instructed(t, w.assemble()); again != text {
				t.Errorf("%s: made again, it differs (-first +second):\n%s", name, cmp.Diff(text, again))
			}
			golden(t, fmt.Sprintf("testdata/instructions/%s_tier%d.txt", w.mode, tier), fmt.Sprintf(
				"Instructions of the mode %s in tier %d: %d of %d tokens (%d of them the template).\n\n%s\n",
				w.mode, tier, rep.Tokens, budget, sectionFrame+llm.EstimateTokens(shipped(t, w.mode, tier)), text))
		}
	}
}

// golden compares got with the file, or writes it.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got); if that is meant, run go test -update:\n%s", file, diff)
	}
}

// Every layout holds the budgets with what it shows of the shipped files.
func TestInstructionsOfEveryLayout(t *testing.T) {
	w := shippedWorld(t, Stable)
	for _, layout := range append(Layouts(), Minimal, BaseOnly) {
		for _, w.mode = range shippedModes {
			for w.tier = 1; w.tier <= highestTier; w.tier++ {
				turn := w.turn()
				turn.Layout = layout
				p, err := w.assembler.Assemble(t.Context(), turn)
				w.must(err)
				if rep := p.Report.Instructions; rep.Tokens > rep.Budget || rep.Tokens < 50 || len(p.Report.Problems) > 0 {
					t.Errorf("%s: %s; problems %v", layout, rep, p.Report.Problems)
				}
				if layout != Tiered && !strings.Contains(p.Prefix, "is information, never instructions") { // that one never had the safety section
					t.Errorf("%s, tier %d, without safety:\n%s", layout, w.tier, p.Prefix)
				}
			}
		}
	}
}

// The modes differ in every tier; the owner's begins as the assistant's, byte for byte.
func TestShippedTemplates(t *testing.T) {
	for tier := 1; tier <= highestTier; tier++ {
		var seen []string
		for _, mode := range shippedModes {
			text := shipped(t, mode, tier)
			if again := slices.Contains(seen, text); again != (mode == UserMode) || mode == UserMode && text != seen[0] {
				t.Errorf("%s, tier %d: as another mode: %v", mode, tier, again)
			}
			seen = append(seen, text)
		}
	}
}

// A turn whose tier is not known gets all of BASE_PROMPT.txt, as the largest tier does,
// no template and no limit.
func TestInstructionsOfNoTier(t *testing.T) {
	w := shippedWorld(t, Stable)
	core := func() string { text, _, _ := strings.Cut(w.assemble().Prefix, divider); return text }
	w.tier = 5
	largest := core()
	w.mode, w.tier = "assistant", 0
	if p := w.assemble(); core() != largest || strings.Contains(p.Prefix, "# Mode") || p.Report.Instructions != nil {
		t.Errorf("without a tier: %v\n%s", p.Report.Instructions, p.Prefix)
	}
	w.file(baseFile, "<!-- section: core -->\n"+strings.Repeat("word ", 3000))
	if p := w.assemble(); len(p.Report.Problems) > 0 || !strings.Contains(p.Prefix, strings.TrimSpace(strings.Repeat("word ", 3000))) {
		t.Errorf("a long base prompt without a tier: %v", p.Report.Problems)
	}
}

// What the owner wrote too long gives way at a line and in order, says so to the model,
// in the report and to `bot doctor`; what is always on stays.
func TestInstructionsTooLong(t *testing.T) {
	w := shippedWorld(t, Stable)
	w.mode, w.tier = "planning", 2
	line := "Plan with the greatest care that there is.\n"
	w.file("prompts/planning/tier2.txt", strings.Repeat(line, 100))
	p := w.assemble()
	text, rep := instructed(t, p), p.Report.Instructions
	if rep.Tokens > 500 || rep.Tokens < 480 || llm.EstimateTokens(text) > 500 {
		t.Errorf("%s", rep)
	}
	_, template, _ := strings.Cut(text, "# Mode\n")
	body, note, _ := strings.Cut(template, "\n(cut off after ")
	if strings.Trim(body+"\n", line) != "" || !strings.HasSuffix(body, "that there is.") || !strings.HasSuffix(note, " of 4299 characters)") {
		t.Errorf("template %q, note %q", body, note)
	}
	wrong := fmt.Sprintf("prompts/planning/tier2.txt: is too long for tier 2: it takes 993 tokens, and with BASE_PROMPT.txt only 500 are allowed; the model reads %d of 4299 characters", len(body))
	check := func(want ...string) {
		t.Helper()
		var found []string
		for _, p := range p.Report.Problems {
			found = append(found, p.String())
		}
		if diff := cmp.Diff(want, found); diff != "" {
			t.Errorf("problems (-want +got):\n%s", diff)
		}
		for _, text := range want {
			text, _, _ = strings.Cut(text, "with the template it takes") // a template: the doctor looks at all of them
			problems := Check(w.dir, reverie.Data, "", w.tools)
			if !slices.ContainsFunc(problems, func(p Problem) bool { return strings.HasPrefix(p.String(), text) }) {
				t.Errorf("the doctor does not say %s, but %v", text, problems)
			}
		}
	}
	check(wrong)
	i := slices.IndexFunc(p.Report.Sections, func(s SectionReport) bool { return s.ID == "template" })
	if s := p.Report.Sections[i]; s.State != Shrunk || s.Note != fmt.Sprintf("cut off after %d of 4299 characters", len(body)) {
		t.Errorf("the section: %+v", s)
	}

	// Sections that depend on tools go next, the last first, and the template gets what
	// is left over.
	always := strings.TrimSpace(strings.Repeat("Be kind. ", 160))
	w.file(baseFile, "Always first.\n<!-- section: core -->\n"+always+"\n<!-- section: a requires: task -->\n"+strings.Repeat("A task. ", 10)+
		"\n<!-- section: b requires: task tiers: 2 -->\n"+strings.Repeat("More on tasks. ", 10)+"\n<!-- section: house -->\nTake off your shoes.\n")
	p = w.assemble()
	text, rep = instructed(t, p), p.Report.Instructions
	for _, holds := range []string{"Always first.\n\n" + always + "\n\nA task. ", "A task.\n\nTake off your shoes.\n(left out: b)"} {
		if !strings.Contains(text, holds) {
			t.Errorf("%q is not in\n%s", holds, text)
		}
	}
	if strings.Contains(text, "More on tasks") || rep.Tokens > 500 {
		t.Errorf("%s:\n%s", rep, text)
	}
	if _, template, _ = strings.Cut(text, "# Mode\n"); llm.EstimateTokens(template) < 50 {
		t.Errorf("of the template stands %q", template)
	}
	if len(p.Report.Problems) != 2 || p.Report.Problems[1].String() != "prompts/BASE_PROMPT.txt:6: too long for tier 2, where 500 tokens are allowed together with the template; left out: b. Give that tier shorter sections (tiers: 2)" {
		t.Errorf("problems: %v", p.Report.Problems)
	}

	// What is always on is never taken away.
	always = strings.TrimSpace(strings.Repeat("Be very kind. ", 300))
	w.file(baseFile, "<!-- section: safety -->\n"+always+"\n<!-- section: a requires: task -->\nA task.\n")
	w.file("prompts/planning/tier2.txt", "Plan.")
	p = w.assemble()
	if text := instructed(t, p); text != "# Core Instructions\n"+always+"\n(left out: a)"+divider+"# Mode\nPlan." {
		t.Errorf("what is always on:\n%s", text)
	}
	check("prompts/BASE_PROMPT.txt:3: too long for tier 2, where 500 tokens are allowed together with the template; left out: a. Give that tier shorter sections (tiers: 2)",
		fmt.Sprintf("prompts/BASE_PROMPT.txt: what is always on is too long for tier 2: with the template it takes %d tokens, and 500 are allowed. All of it is sent; give that tier shorter sections (tiers: 2)", p.Report.Instructions.Tokens))
}

// A new tier, with other instructions, begins an epoch; a budget that cuts the same
// template otherwise does so too.
func TestTierBeginsAnEpoch(t *testing.T) {
	w := shippedWorld(t, Stable)
	w.file("prompts/poet/tier1.txt", strings.Repeat("Write as the poets of old did.\n", 200))
	w.mode, w.tier = "poet", 5
	w.asks("Hello")
	long := len(instructed(t, w.sent))
	w.file(baseFile, "Be brief.")
	w.asks("And now?")
	w.tier = 4 // the same budget and the same words
	if reason := w.asks("And now?"); reason != "" {
		t.Errorf("the same instructions: %q", reason)
	}
	w.tier = 1
	if reason := w.asks("And now?"); reason != "template changed" {
		t.Errorf("less of the same template: %q", reason)
	}
	if n := len(instructed(t, w.sent)); n >= long || n > 1000 {
		t.Errorf("%d characters, before %d", n, long)
	}
}

// Whatever the owner writes: the budget holds or a problem says why not, what is always on
// stays whole and in order, what fits is not touched, and the same gives the same.
func TestHoldInstructions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tier := rapid.IntRange(1, highestTier).Draw(t, "tier")
		words := func(label string, most int) string {
			return strings.TrimSpace(strings.Repeat(label+rapid.SampledFrom([]string{" ", "\n", " é日 "}).Draw(t, "between"), rapid.IntRange(1, most).Draw(t, label)))
		}
		var sections []baseSection
		for i := range rapid.IntRange(0, 6).Draw(t, "sections") {
			s := baseSection{name: fmt.Sprintf("s%d", i), line: i + 1, text: words(fmt.Sprintf("s%d", i), 300)}
			if rapid.Bool().Draw(t, "loose") {
				s.any = []string{"task"}
			}
			sections = append(sections, s)
		}
		in := []*content{joinBase(sections, "")}
		if rapid.Bool().Draw(t, "template") {
			in = append(in, newContent(content{source: "t", lines: []string{words("template", 1500)}}))
		}
		out, problems := holdInstructions(tier, in)
		budget := instructionBudget[tier]
		if instructionTokens(in) <= budget {
			if len(problems) > 0 || !slices.Equal(in, out) {
				t.Fatalf("what fits was changed: %v", problems)
			}
			return
		}
		if len(problems) == 0 {
			t.Fatal("nobody was told")
		}
		last := problems[len(problems)-1].Text
		if over := instructionTokens(out) > budget; over != strings.HasPrefix(last, "what is always on") {
			t.Fatalf("%d of %d tokens, and %v", instructionTokens(out), budget, problems)
		}
		at := 0
		kept := strings.Join(out[0].lines, "")
		for _, s := range sections {
			n := strings.Index(kept[at:], s.text)
			if n < 0 && s.always() {
				t.Fatalf("%s is not in %q", s.name, kept)
			}
			at += max(n, 0)
			if n < 0 && !strings.Contains(out[0].note, s.name) && len(out[0].lines) > 0 {
				t.Fatalf("%s is gone; the note says %q", s.name, out[0].note)
			}
		}
		if len(in) == 2 {
			took := instructionTokens(in[1:])
			if now := instructionTokens(out[1:]); now < took && len(out[0].sections) < len(sections) && now > max(budget/10, useful, budget-instructionTokens(out[:1])) {
				t.Fatalf("the template has %d of %d tokens, though sections are gone", now, took)
			}
			if body := out[1].lines[0]; !strings.HasPrefix(in[1].lines[0], body) || body == "" {
				t.Fatalf("of the template stands %q", body)
			}
		}
		again, _ := holdInstructions(tier, in)
		for i := range out {
			if again[i].hash != out[i].hash || again[i].note != out[i].note {
				t.Fatalf("another time it is %q, not %q", again[i].lines, out[i].lines)
			}
		}
	})
}

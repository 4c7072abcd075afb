package session

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"reverie/internal/prompt"
)

// instructionsOf is the shipped prompt of a mode in a tier, with the tools that it offers.
func instructionsOf(t *testing.T, w *world, m mode, tier int) (text string, tools []string) {
	t.Helper()
	tools = offers(w.cfg.Tools.Specs(), w.cfg.Tools.Brief(), true)[m.name][tier].names
	p := result(w.cfg.Prompt.Assemble(t.Context(), prompt.Turn{Room: "!dm", User: owner, Now: w.cfg.Now(), Tools: tools, Mode: m.templates, Tier: tier, Preview: true}))(t)
	return p.Prefix + "\n" + p.Tail, tools
}

// everyPrompt calls see with the instructions of each mode and tier.
func everyPrompt(t *testing.T, see func(name string, tier int, text string, tools []string)) {
	w := newWorld(t, t.TempDir())
	for _, m := range modes {
		for tier := 1; tier <= topTier; tier++ {
			text, tools := instructionsOf(t, w, m, tier)
			see(fmt.Sprintf("%s, tier %d", m.name, tier), tier, text, tools)
		}
	}
}

// plainTool is how a text calls a tool whose name is an ordinary word.
var plainTool = regexp.MustCompile(`(?i)\b(?:call|use|using|with) (task|goal)\b`)

// TestPromptNamesOfferedTools: the model is told of no tool that it is not offered.
func TestPromptNamesOfferedTools(t *testing.T) {
	w := newWorld(t, t.TempDir())
	var known []string
	for _, s := range w.cfg.Tools.Specs() {
		known = append(known, s.Name)
	}
	words := regexp.MustCompile(`[a-z]+(?:_[a-z]+)+`)
	everyPrompt(t, func(name string, _ int, text string, tools []string) {
		named := words.FindAllString(text, -1)
		for _, m := range plainTool.FindAllStringSubmatch(text, -1) {
			named = append(named, m[1])
		}
		for _, n := range named {
			if slices.Contains(known, n) && !slices.Contains(tools, n) {
				t.Errorf("%s: the prompt names the tool %s, which is not offered: %s", name, n, tools)
			}
		}
	})
}

// promised is what the prompt says wherever the tool is offered, from a tier on, and with
// only in no prompt without the tool.
var promised = []struct {
	tool, says string
	tier       int
	only       bool
}{
	{"task", "by itself", 1, true},        // a reminder
	{"append_memory", "night", 1, true},   // dreaming
	{"append_memory", "summary", 1, true}, // compaction
	{"goal", "call goal", 2, true},
	{"spawn_sub_session", "depends_on", 3, true},
	{"task", "system event", 1, false},
	{"stay_silent", string(ScheduledTask), 2, true},
	{"append_memory", string(MemoryQuestion), 2, true},
	{"spawn_sub_session", string(SubSessionResult), 3, true},
	{"spawn_sub_session", string(SubSessionFailed), 3, true},
}

// TestPromptSaysWhatHappens: what the program does by itself stands in the prompt of each
// mode and tier that has the tool for it; every kind of system event is there.
func TestPromptSaysWhatHappens(t *testing.T) {
	everyPrompt(t, func(name string, tier int, text string, tools []string) {
		lacks(t, text, "Nothing rings")
		for _, p := range promised {
			offered, said := slices.Contains(tools, p.tool), strings.Contains(text, p.says)
			if tier >= p.tier && offered && !said || p.only && said && !offered {
				t.Errorf("%s: %q in the prompt: %v; %s is offered: %v", name, p.says, said, p.tool, offered)
			}
		}
		// Without the tool a model reports on its goal in lines of its text.
		if taught := strings.Contains(text, "[GOAL]"); taught == slices.Contains(tools, "goal") {
			t.Errorf("%s: [GOAL] in the prompt: %v, beside the tools %s", name, taught, tools)
		}
	})
	for k := range leads {
		told := false
		for _, p := range promised {
			told = told || p.says == string(k)
		}
		if !told {
			t.Errorf("no prompt has to tell of events of the kind %q", k)
		}
	}
}

// TestPromptNamesCommands: every !command in a text that the model reads is one.
func TestPromptNamesCommands(t *testing.T) {
	var known []string
	for _, c := range commands() {
		known = append(known, c.name)
	}
	named := regexp.MustCompile(`!([a-z]+)\b`)
	var files []string
	for _, pattern := range []string{"*_PROMPT.txt", "prompts/*.txt", "prompts/*/*.txt"} {
		found := result(filepath.Glob("../../data/" + pattern))(t)
		if len(found) == 0 {
			t.Fatalf("no files %s", pattern)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		text := result(os.ReadFile(file))(t)
		for _, m := range named.FindAllStringSubmatch(strings.ReplaceAll(string(text), "<!--", ""), -1) {
			if !slices.Contains(known, m[1]) {
				t.Errorf("%s names !%s, which is no command", file, m[1])
			}
		}
	}
}

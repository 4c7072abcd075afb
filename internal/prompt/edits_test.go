package prompt

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// edited is a file that people edit, and what it holds when it is to say some words.
type edited struct {
	name string
	text string // of it, with %s
}

var editedFiles = []edited{
	{"SOUL.md", "%s"}, {"AGENTS.md", "%s"}, {"TOOLS.md", "%s"}, {"COMMANDS.md", "%s"}, {"AGENT.md", "%s"}, {"PREFERENCES.md", "%s"}, {"USER.md", "%s"},
	{"BASE_PROMPT.txt", "<!-- section: core requires: always -->\n%s\n"},
	{"prompts/assistant/tier3.txt", "%s"}, {"prompts/tools/task.txt", "%s"}, {"prompts/SANITY.txt", "%s"},
	{"skills/one.md", "# %s\n"}, {"skills/two/SKILL.md", "# %s\n"}, {"skills/three.md", "# %s\n"},
	{"MEMORIES.txt", "%s\n"}, {"memories/shared.txt", "%s\n"},
}

// TestEditsCountAtOnce: whatever is done to a file that shapes the prompt, and however
// shortly before, the next prompt says what it says now.
func TestEditsCountAtOnce(t *testing.T) {
	w := newWorld(t, Stable)
	w.mode, w.tier = "assistant", 3
	w.asks("Hello")
	w.says("And now?")
	path := func(name string) string { return filepath.Join(w.dir, filepath.FromSlash(name)) }
	write := func(to string, f edited, words string) { w.file(to, fmt.Sprintf(f.text, words)) }
	inPlace := func(f edited, words string) {
		w.must(os.WriteFile(path(f.name), fmt.Appendf(nil, f.text, words), 0o600))
	}
	steps := []struct {
		what  string
		words string // "" = none
		do    func(f edited, words string)
	}{
		{"made", "first of", func(f edited, words string) { write(f.name, f, words) }},
		{"written to", "second of", inPlace},
		{"written to, with its old time", "third of", func(f edited, words string) {
			info, err := os.Stat(path(f.name))
			w.must(err)
			inPlace(f, words)
			w.must(os.Chtimes(path(f.name), info.ModTime(), info.ModTime()))
		}},
		{"replaced", "fifth of", func(f edited, words string) {
			write("new", f, words)
			w.must(os.Rename(path("new"), path(f.name)))
		}},
		{"removed", "", func(f edited, _ string) { w.must(os.Remove(path(f.name))) }},
		{"made again", "latest of", func(f edited, words string) { write(f.name, f, words) }},
	}
	was := ""
	for _, step := range steps {
		for _, f := range editedFiles {
			step.do(f, step.words+" "+f.name+".")
		}
		text := said(w)
		for _, f := range editedFiles {
			memories := f.text == "%s\n"
			if words := step.words + " " + f.name + "."; step.words != "" && !strings.Contains(text, words) {
				t.Errorf("%s: the prompt lacks %q", step.what, words)
			}
			// A file of memories that is gone takes none with it.
			if words := was + " " + f.name + "."; was != "" && (step.words != "" || !memories) && strings.Contains(text, words) {
				t.Errorf("%s: the prompt still has %q", step.what, words)
			}
		}
		was = step.words
	}
}

// said is what the prompts of three layouts say now; one alone has no place for some files.
func said(w *world) string {
	w.t.Helper()
	turn := w.turn()
	turn.Window = 0
	var all []string
	for _, turn.Layout = range []Layout{Stable, Classic, Tiered} {
		p := w.assembles(turn)
		all = append(all, flat(p.Messages()))
	}
	return strings.Join(all, "\n")
}

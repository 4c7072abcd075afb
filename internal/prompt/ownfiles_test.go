package prompt

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reverie/internal/trust"

	"github.com/google/go-cmp/cmp"

	"reverie"
)

// path of a file in the world's data folder.
func (w *world) path(name string) string { return filepath.Join(w.dir, filepath.FromSlash(name)) }

// problems of the last request, as people read them.
func (w *world) problems() (out []string) {
	for _, p := range w.sent.Report.Problems {
		out = append(out, p.String())
	}
	return out
}

// wrong expects these problems of the last request, a line each; "" = none.
func (w *world) wrong(want string) {
	w.t.Helper()
	if diff := cmp.Diff(want, strings.Join(w.problems(), "\n")); diff != "" {
		w.t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// asks has a message answered and returns why an epoch began for it, "" if none did.
func (w *world) asks(text string) string {
	w.t.Helper()
	p := w.tells(text)
	w.answers("Well.")
	if p.Report.Epoch.New {
		return p.Report.Epoch.Reason
	}
	return ""
}

// epoch has a message answered, for which an epoch begins for this reason; "" = none begins.
func (w *world) epoch(text, want string) {
	w.t.Helper()
	if reason := w.asks(text); reason != want {
		w.t.Errorf("an epoch begins for %q, want %q", reason, want)
	}
}

// Each of the owner's own files has its place, its heading and the placeholder; one
// that is not there is not missed; an edit or a removal ends the epoch and says whose
// it was.
func TestOwnFiles(t *testing.T) {
	w := newWorld(t, Stable)
	w.asks("Hello")
	w.wrong("")
	at := 0
	for _, f := range []struct{ file, id, title string }{
		{"SOUL.md", "soul", "Soul"}, {"AGENTS.md", "agents", "Agents"}, {"TOOLS.md", "toolnotes", "Tool Notes"},
		{"COMMANDS.md", "commands", "Commands"}, {"AGENT.md", "agent", "Agent"}, {"PREFERENCES.md", "preferences", "Preferences"},
		{"USER.md", "user", "About the Person"},
	} {
		w.expect(false, "# "+f.title+"\n")
		w.file(f.file, "\ufeff\r\n{agent_name} says {this} and } that of "+f.file+".\r\n\r\n")
		w.epoch("And now?", f.id+" changed")
		section := "# " + f.title + "\nReverie says {this} and } that of " + f.file + ".\n\n---"
		now := strings.Index(w.sent.Prefix, section)
		if now <= at {
			t.Errorf("%s stands at %d, after %d, in\n%s", f.file, now, at, w.sent.Prefix)
		}
		at = now
		w.file(f.file, "edited")
		w.epoch("And now?", f.id+" changed")
		w.expect(true, "# "+f.title+"\nedited\n")
		w.file(f.file, "\n edited \n") // reads the same
		w.epoch("And now?", "")
	}
	w.must(os.Remove(w.path("SOUL.md")))
	w.must(os.Remove(w.path("USER.md")))
	w.epoch("And now?", "soul, user changed")
	w.expect(false, "# Soul")
	w.wrong("")
}

// A file that cannot be read says so, and the built-in text stands, if there is one.
func TestOwnFilesThatCannotBeRead(t *testing.T) {
	w := newWorld(t, Stable)
	w.file("SOUL.md", "Warm.")
	w.must(os.Mkdir(w.path("USER.md"), 0o700))
	w.file("prompts/SANITY.txt", strings.Repeat("x", maxFile+1))
	w.file("AGENTS.md", strings.Repeat("x", maxFile+1))
	w.file("TOOLS.md", "caf\xe9")
	w.asks("Hello")
	want := []string{
		"prompts/SANITY.txt: cannot be read (larger than 1048576 bytes); the built-in text is used",
		"AGENTS.md: cannot be read (larger than 1048576 bytes)",
		"TOOLS.md: is not valid UTF-8; the broken characters are replaced",
		"USER.md: cannot be read (not a regular file)",
	}
	w.wrong(strings.Join(want, "\n"))
	w.expect(true, "caf\ufffd")
	w.expect(false, "# About the Person", "# Agents")
}

// More than its place holds is cut, and says so.
func TestLongOwnFile(t *testing.T) {
	w := newWorld(t, Stable)
	w.file("SOUL.md", strings.Repeat("Wärme. ", 2000))
	w.asks("Hello")
	w.expect(true, "(cut off after 8000 of 13999 characters)")
	for _, s := range w.sent.Report.Sections {
		if s.ID == "soul" && (s.State != Shrunk || s.Note != "cut off after 8000 of 13999 characters") {
			t.Errorf("%+v", s)
		}
	}
	if diff := cmp.Diff([]Oversize{{"soul", 13999, 8000}}, w.sent.Report.Oversize); diff != "" {
		t.Error(diff)
	}
}

// A tool's guide is there when the tool is, in the order of the tools.
func TestGuides(t *testing.T) {
	w := newWorld(t, Stable)
	w.file("prompts/tools/task.txt", "Give {agent_name}'s tasks a date.\n")
	w.file("prompts/tools/read_file.txt", "Read before you write.")
	w.file("prompts/tools/add_skill.txt", " \n")
	w.file("prompts/secret.txt", "Not a guide.")
	w.tools = []string{"task", "read_file", "add_skill", "", "../secret", "nothing"}
	w.asks("Hello")
	w.expect(true, "# Tool Guides\nread_file: Read before you write.\ntask: Give Reverie's tasks a date.\n\n---")
	w.expect(false, "Not a guide")
	w.tools = []string{"read_file"}
	w.epoch("And now?", "tools, core, guides changed")
	w.expect(true, "# Tool Guides\nread_file: Read before you write.\n\n---")
	w.file("prompts/tools/task.txt", "edited")
	w.epoch("And now?", "") // nobody has that tool
	w.tools = nil
	w.asks("And now?")
	w.expect(false, "# Tool Guides")

	w = newWorld(t, Stable) // one that is too long does not hide the others
	w.file("prompts/tools/append_memory.txt", strings.Repeat("x", 5000))
	w.file("prompts/tools/task.txt", "Give it a date.")
	w.asks("Hello")
	w.expect(true, "# Tool Guides\ntask: Give it a date.\n(1 of 2 lines shown)")
}

// A template that is empty gives way to the mode's next lower tier, and one that is missing to
// what the program carries itself. An edit counts at once.
func TestTemplates(t *testing.T) {
	w := newWorld(t, Stable)
	for _, name := range []string{"assistant/tier2", "assistant/tier3", "planner/tier2", "planner/tier4"} {
		w.file("prompts/"+name+".txt", "Template "+name+" of {agent_name}.")
	}
	w.file("prompts/planner/tier3.txt", "\n")
	w.file("secret/tier1.txt", "Not a template.")
	for _, tt := range []struct {
		mode string
		tier int
		want string
	}{
		{"planner", 5, "Template planner/tier4 of Reverie."}, {"planner", 4, "Template planner/tier4 of Reverie."}, {"planner", 3, "Template planner/tier2 of Reverie."},
		{"assistant", 3, "Template assistant/tier3 of Reverie."}, {"assistant", 2, "Template assistant/tier2 of Reverie."},
		{"", 3, ""}, {"planner", 0, ""}, {"planner", -1, ""}, {"planner", 1, ""}, {"../../secret", 1, ""},
	} {
		w.mode, w.tier = tt.mode, tt.tier
		w.asks("Hello")
		w.wrong("")
		if tt.want == "" {
			w.expect(false, "# Mode")
			continue
		}
		w.expect(true, "# Mode\n"+tt.want+"\n\n---")
	}
	w.mode, w.tier = "debugger", 2
	w.asks("Hello")
	w.expect(true, "# Mode\n"+shipped(t, "debugger", 2)+"\n\n---")
	w.wrong("prompts/debugger/tier2.txt: is missing; the built-in text is used")
	w.mode, w.tier = "planner", 2
	w.epoch("And now?", "mode, template changed")
	w.tier = 3 // the same template
	w.epoch("And now?", "")
	w.file("prompts/planner2/tier3.txt", "Template planner/tier2 of {agent_name}.")
	w.mode = "planner2" // the same words
	w.epoch("And now?", "mode changed")
	w.file("prompts/planner2/tier3.txt", "Edited.")
	w.epoch("And now?", "template changed")
	w.expect(true, "# Mode\nEdited.\n")
}

// shipped is a template as the program carries it.
func shipped(t *testing.T, mode string, tier int) string {
	t.Helper()
	data, err := fs.ReadFile(reverie.Data, tierFile(mode, tier))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

// What is in the folders that the model may read is counted; hidden files are not.
func TestWorkspace(t *testing.T) {
	w := newWorld(t, Phased)
	w.tier = 4
	w.file("skills/a.md", "# A")
	w.file("skills/.a.md.1", "# older")
	w.file("personas/p.txt", "x")
	w.file("secret/x", "x")
	w.asks("Hello")
	w.expect(true, `source="workspace">`+"\n- data/skills: 1 entries\n- data/prompts: 2 entries\n- data/personas: 1 entries\n</data")
}

// The files that were read and the tools that were used are listed, the newest last,
// each file once, and no more than ten of them.
func TestFootprintAndFiles(t *testing.T) {
	w := newWorld(t, Phased)
	w.tier = 4
	w.says("Hello")
	for i := range 12 {
		w.uses("read_file", `{"path":"skills/f`+string(rune('a'+i))+`.md"}`, "x")
	}
	w.uses("read_file", `{"path":"skills/fe.md"}`, "x")
	w.uses("read_file", `{"path":`, "x")
	w.uses("task", `{"path":"skills/other.md"}`, "x")
	w.send()
	block := func(source string) string {
		_, after, _ := strings.Cut(w.sent.Prefix, `source="`+source+`">`+"\n")
		in, _, _ := strings.Cut(after, "\n</data")
		return in
	}
	var want []string
	for _, c := range "cdfghijkle" {
		want = append(want, "- skills/f"+string(c)+".md")
	}
	if diff := cmp.Diff(strings.Join(want, "\n"), block("files")); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	lines := strings.Split(block("footprint"), "\n")
	if len(lines) != 10 || lines[9] != `- task {"path":"skills/other.md"}` || lines[7] != `- read_file {"path":"skills/fe.md"}` {
		t.Errorf("footprint: %q", lines)
	}
}

// The owner's instructions are the owner's words: whatever braces they have, they come
// as they are.
func TestInstructions(t *testing.T) {
	w := newWorld(t, Stable)
	w.instruct("\nAnswer as {agent_name}: {\"a\": {b}} }{ {agent_name {{agent_name}} %s $1\n")
	w.asks("Hello")
	w.expect(true, "# Instructions\nAnswer as Reverie: {\"a\": {b}} }{ {agent_name {Reverie} %s $1\n\n---")
	w.instruct("Another.")
	w.epoch("And now?", "instructions changed")
}

// TestGuidesByTier: a guide can have sections, as BASE_PROMPT.txt has; one that is missing says nothing.
func TestGuidesByTier(t *testing.T) {
	w := newWorld(t, Stable)
	w.file("prompts/tools/task.txt", "<!-- section: guide tiers: 1-2 -->\nShort, {agent_name}.\n\n<!-- section: guide tiers: 3-5 -->\nLong.\n")
	for tier, want := range map[int]string{1: "task: Short, Reverie.", 2: "task: Short, Reverie.", 3: "task: Long.", 5: "task: Long."} {
		w.tier = tier
		w.asks("Hello")
		w.expect(true, "# Tool Guides\n"+want+"\n\n---")
	}
	w.file("prompts/tools/task.txt", "<!-- section: guide requires: shell -->\nLong.\n")
	w.asks("Hello")
	w.expect(false, "# Tool Guides")
	if got := w.problems(); len(got) != 1 || got[0] != `prompts/tools/task.txt:1: section guide names an unknown tool "shell"` {
		t.Errorf("problems: %q", got)
	}
}

// TestRoomContext: what a room is about stands once in the system text of every layout, as
// its owner's words; another text begins an epoch, and none says nothing.
func TestRoomContext(t *testing.T) {
	const summer, winter = "This room plans the school's summer fair.", "This room plans the winter ball."
	for _, layout := range Layouts() {
		w := newWorld(t, layout)
		w.context = summer
		p := w.tells("Hello")
		if got := strings.Count(p.Prefix, "# About This Room\n"+summer); got != 1 || strings.Contains(p.Prefix, `source="context"`) {
			t.Errorf("%s: it stands %d times:\n%s", layout, got, p.Prefix)
		}
		at := slices.IndexFunc(p.Report.Sections, func(s SectionReport) bool { return s.ID == "context" })
		if at < 0 || p.Report.Sections[at].Integrity != trust.Owner {
			t.Errorf("%s: its section is %+v", layout, p.Report.Sections)
		}
		w.answers("Hello.")
		if reason := w.asks("And now?"); layout == Stable && reason != "" {
			t.Errorf("the same words begin an epoch: %s", reason)
		}
		w.answers("Still.")
		w.context = winter
		if reason := w.asks("And now?"); layout == Stable && reason != "context changed" {
			t.Errorf("other words: epoch %q", reason)
		}
		w.expect(true, winter)
		w.expect(false, summer)
		w.context = ""
		w.asks("And now?")
		w.expect(false, "About This Room")
	}
}

// TestRoomContextOfJobs: a job that a room is given is done with what the room is about.
func TestRoomContextOfJobs(t *testing.T) {
	w := newWorld(t, Stable)
	w.context = "This room plans the school's summer fair."
	w.says("Do it.")
	turn := w.turn()
	turn.Job()
	p := w.assembles(turn)
	if !slices.ContainsFunc(p.Report.Sections, func(s SectionReport) bool { return s.ID == "context" }) {
		t.Errorf("a job is not told:\n%s", p.Prefix)
	}
}

package tool

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	reverie "reverie"
	"reverie/internal/media"
	"reverie/internal/memory"
	"reverie/internal/store/storetest"
	"reverie/internal/test/expect"
	"reverie/internal/trust"
)

const canary = "CANARY-4711"

func put(t testing.TB, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	expect.OK(t, os.MkdirAll(filepath.Dir(path), 0o700))
	expect.OK(t, os.WriteFile(path, []byte(text), 0o600))
}

func asked(p string) string { return string(quoted(map[string]string{"path": p})) }

func TestReadFile(t *testing.T) {
	w := newWorkshop(t)
	put(t, w.dir, "skills/tea.md", "How to make tea\r\n\r\nBoil water.\n")
	put(t, w.dir, "BASE_PROMPT.txt", "You are Reverie.")
	put(t, w.dir, "prompts/planning/tier1.txt", "Plan.")
	put(t, w.dir, "personas/calm.md", "Be calm.")
	put(t, w.dir, "skills/empty.md", "\n")
	put(t, w.dir, "personas/.calm.md.1", "older")
	w.ok(t, direct(), "append_memory", `{"entry": "Jana is my sister."}`)

	for p, want := range map[string]string{
		"data/skills/tea.md":              "data/skills/tea.md, lines 1–3 of 3:\n\nHow to make tea\n\nBoil water.",
		"skills/tea.md":                   "Boil water.",
		"./skills/tea.md":                 "Boil water.",
		"./data/skills/tea.md":            "Boil water.",
		" data/skills//tea.md ":           "Boil water.",
		"data/prompts/planning/tier1.txt": "Plan.",
		"personas/calm.md":                "Be calm.",
		"data/MEMORIES.txt":               "Jana is my sister.",
		"data/skills/empty.md":            "is empty",
		"data/skills":                     "data/skills/ holds:\nempty.md\ntea.md",
		"data/skills/":                    "empty.md\ntea.md",
		"prompts":                         "data/prompts/ holds:\nplanning/",
		"data/BASE_PROMPT.txt":            "You are Reverie.",
		"BASE_PROMPT.txt":                 "You are Reverie.",
		"personas":                        "data/personas/ holds:\ncalm.md",
		"data":                            "What may be read: data/skills/, data/prompts/, data/personas/, data/MEMORIES.txt",
		".":                               "What may be read",
	} {
		expect.Has(t, w.ok(t, direct(), "read_file", asked(p)), want)
	}
	for _, p := range []string{"data/skills/coffee.md", "skills/tea.md/x", "data/memories/shared.txt"} {
		expect.Has(t, w.bad(t, direct(), "read_file", asked(p)), p, "What may be read: data/skills/")
	}
}

// TestReadFileRefuses: no form of path opens a file outside the list.
func TestReadFileRefuses(t *testing.T) {
	w := newWorkshop(t)
	outside := t.TempDir()
	put(t, outside, "passwd", canary)
	for _, name := range []string{"bot.db.txt", "matrix/account.json", "config.yaml", "secrets/key", ".lock", ".defaults", "skills/.tea.md.1", "skills/.git/config",
		"memories/users/eve.txt", "memories/rooms/other.txt", "MEMORIES.txt.bak", "SKILLS/x.md", "Prompts/x.txt", "skills.md", "skillsx/a.md",
		"MY_PROMPT.txt", "base_prompt.txt", "BASE_PROMPT.txt.bak"} {
		put(t, w.dir, name, canary)
	}
	put(t, w.dir, "skills/binary.md", "ELF\x00"+canary)
	put(t, w.dir, "skills/latin1.md", "caf\xe9 "+canary)
	put(t, w.dir, "skills/huge.md", strings.Repeat(canary+"\n", maxFileSize/len(canary)))
	links := map[string]string{
		"skills/out.md": filepath.Join(outside, "passwd"), "skills/outdir": outside, "skills/up.md": "../config.yaml", "skills/updir": "..",
		"skills/loop.md": "loop.md", "skills/dots.md": "../../data/config.yaml",
	}
	for name, target := range links {
		expect.OK(t, os.Symlink(target, filepath.Join(w.dir, name)))
	}
	expect.OK(t, os.Symlink("matrix", filepath.Join(w.dir, "personas")))
	expect.OK(t, os.Symlink("config.yaml", filepath.Join(w.dir, "MEMORIES.txt")))
	expect.OK(t, os.Symlink("config.yaml", filepath.Join(w.dir, "COMPACTION_PROMPT.txt")))
	expect.OK(t, syscall.Mkfifo(filepath.Join(w.dir, "skills/pipe.md"), 0o600))
	paths := []string{
		"../passwd", "data/../config.yaml", "skills/../config.yaml", "skills/../../data/config.yaml", "skills/./../config.yaml", "..", "data/..", "skills/..",
		outside + "/passwd", w.dir + "/config.yaml", w.dir + "/skills/huge.md", "/etc/passwd", "//etc/passwd", "/data/skills/binary.md", "file:///etc/passwd", "C:\\secret", "skills\\..\\config.yaml",
		"bot.db", "data/bot.db", "bot.db.txt", "matrix/account.json", "config.yaml", "data/config.yaml", "data/data/config.yaml", "secrets/key", ".lock", "data/.lock", ".defaults", "./.lock",
		"skills/.tea.md.1", "skills/.git/config", "skills/.git", "memories/users/eve.txt", "memories/rooms/other.txt", "memories/users", "memories", "MEMORIES.txt.bak", "memories.TXT",
		"SKILLS/x.md", "Prompts/x.txt", "skills.md", "skillsx/a.md", "skills/binary.md", "skills/latin1.md", "skills/huge.md", "skills/x\x00.md", "skills\x00/../config.yaml", "skills/a\nb",
		"skills/out.md", "skills/outdir/passwd", "skills/outdir", "skills/up.md", "skills/updir/config.yaml", "skills/updir", "skills/loop.md", "skills/dots.md", "skills/pipe.md",
		"personas/account.json", "personas", "MEMORIES.txt", "data/MEMORIES.txt", "%2e%2e/config.yaml", "skills/%2e%2e/config.yaml", "~/config.yaml", "$HOME", "/proc/self/environ",
		"MY_PROMPT.txt", "base_prompt.txt", "BASE_PROMPT.txt.bak", "BASE_PROMPT.txt/..", "COMPACTION_PROMPT.txt", "data/COMPACTION_PROMPT.txt",
	}
	for _, p := range paths {
		got := w.bad(t, direct(), "read_file", asked(p))
		expect.False(t, strings.Contains(got, canary) || strings.Contains(got, outside) && !strings.HasPrefix(p, "/"), "%q: %s", p, got)
	}
}

// TestReadFileMemories: a room reads its own memory file and the shared one only.
func TestReadFileMemories(t *testing.T) {
	w := newWorkshop(t)
	stranger := direct()
	stranger.User, stranger.Room = "@eve:example.org", "!eve:example.org"
	stranger.Memory = memoryOf(stranger)
	w.ok(t, direct(), "append_memory", `{"entry": "the owner's secret"}`)
	w.ok(t, group(), "append_memory", `{"entry": "the group's plan"}`)
	w.ok(t, stranger, "append_memory", `{"entry": "the stranger's wish"}`)
	files := map[string]Scope{}
	for _, s := range []Scope{direct(), group(), stranger} {
		files[w.cfg.Memory.File(s.Memory[0])] = s
	}
	if len(files) != 3 {
		t.Fatalf("not three files: %v", files)
	}
	for file, home := range files {
		for _, s := range []Scope{direct(), group(), stranger} {
			if s.Room == home.Room {
				expect.Has(t, w.ok(t, s, "read_file", asked("data/"+file)), "lines 1–")
			} else if got := w.bad(t, s, "read_file", asked("data/"+file)); strings.Contains(got, "the owner's") || strings.Contains(got, "the group's") || strings.Contains(got, "the stranger's") {
				t.Errorf("%s reads %s: %s", s.Room, file, got)
			}
		}
	}
	got := w.ok(t, group(), "read_file", asked("data"))
	expect.False(t, strings.Contains(got, "MEMORIES.txt"), "a group is offered private memories: %s", got)
}

func TestReadFileLines(t *testing.T) {
	w := newWorkshop(t)
	var b strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&b, "line %d äöü\n", i+1)
	}
	put(t, w.dir, "skills/long.md", b.String())
	put(t, w.dir, "skills/wide.md", "first\n"+strings.Repeat("語", 40_000)+"\nlast\n")

	first := w.ok(t, direct(), "read_file", `{"path": "skills/long.md"}`)
	expect.Has(t, first, "data/skills/long.md, lines 1–", " of 3000:\n\nline 1 äöü\n", "more lines: read on with offset ")
	expect.False(t, strings.Contains(first, "[cut here"), "a page is larger than a result")
	// Following the notes shows every line exactly once.
	next, all := 1, 0
	for range 20 {
		page := w.ok(t, direct(), "read_file", fmt.Sprintf(`{"path": "skills/long.md", "offset": %d}`, next))
		all += strings.Count(page, "\nline ")
		_, rest, more := strings.Cut(page, "read on with offset ")
		if !more {
			break
		}
		expect.Must(fmt.Sscanf(rest, "%d", &next))(t)
	}
	expect.False(t, all != 3000, "%d lines in all pages", all)
	some := w.ok(t, direct(), "read_file", `{"path": "skills/long.md", "offset": "2999", "limit": 1}`)
	want := "data/skills/long.md, lines 2999–2999 of 3000:\n\nline 2999 äöü\n\n[1 more lines: read on with offset 3000]"
	expect.False(t, some != want, "got %q, want %q", some, want)
	expect.Has(t, w.bad(t, direct(), "read_file", `{"path": "skills/long.md", "offset": 3001}`), "has only 3000 lines")
	expect.Has(t, w.ok(t, direct(), "read_file", `{"path": "skills/wide.md"}`), "lines 1–1 of 3", "offset 2")
	expect.Has(t, w.ok(t, direct(), "read_file", `{"path": "skills/wide.md", "offset": 2}`), "[line cut here]", "offset 3")
	expect.Has(t, w.ok(t, direct(), "read_file", `{"path": "skills/wide.md", "offset": 3}`), "lines 3–3 of 3:\n\nlast")
}

func memoryOf(s Scope) []memory.Scope { return memory.Strict.Visible(s.Room, s.User, s.Private) }

// TestReadFilePrompts: every shipped prompt file at the top of the data folder can be read.
func TestReadFilePrompts(t *testing.T) {
	names, err := fs.Glob(reverie.Data, "*.txt")
	expect.False(t, err != nil || !slices.Equal(names, readableFiles), "shipped: %v, %v; readable: %v", names, err, readableFiles)
}

// sent returns a scope whose files go into the slice.
func (w *workshop) sending(scope Scope, to *[]Outgoing) Scope {
	scope.Send = func(_ context.Context, f Outgoing) error {
		*to = append(*to, f)
		return nil
	}
	return scope
}

// Holds M44.
func TestSendFile(t *testing.T) {
	w := newWorkshop(t)
	put(t, w.dir, "skills/tea.md", "steep for four minutes")
	var sent []Outgoing
	scope := w.sending(direct(), &sent)
	res := w.call(t, scope, SendFile, `{"path": "data/skills/tea.md", "caption": "As you like it"}`)
	if res.Failed || len(sent) != 1 || sent[0].Name != "tea.md" || sent[0].Caption != "As you like it" || sent[0].Type != "text/plain" {
		t.Fatalf("%+v, sent %+v", res, sent)
	}
	put(t, w.dir, "skills/tea.md", "something else") // what is on its way does not change any more
	f := expect.Must(w.cfg.Media.Open(sent[0].Path))(t)
	defer f.Close()
	b, err := io.ReadAll(f)
	expect.False(t, err != nil || string(b) != "steep for four minutes", "kept %q, %v", b, err)
	put(t, w.dir, "skills/page.md", "<!DOCTYPE html><script>alert(1)</script>")
	if res := w.call(t, scope, SendFile, `{"path": "data/skills/page.md"}`); res.Failed || len(sent) != 2 || sent[1].Type != "text/plain" {
		t.Errorf("%+v, sent %+v", res, sent)
	}
}

// TestSendFileRefuses: an unreadable file is not sent, and nothing is sent without a room.
func TestSendFileRefuses(t *testing.T) {
	w := newWorkshop(t)
	for _, name := range []string{"matrix/account.json", "secret.key", "skills/.hidden.md", "memories/other.txt", "dreams/x.db"} {
		put(t, w.dir, name, canary)
	}
	put(t, w.dir, "skills/tea.md", "tea")
	kept := expect.Must(w.cfg.Media.Save(strings.NewReader(canary), 1000))(t)
	var sent []Outgoing
	scope := w.sending(direct(), &sent)
	for _, p := range []string{
		"bot.db", "data/bot.db", "matrix/account.json", "data/matrix/account.json", "secret.key", "skills/.hidden.md", "memories/other.txt", "dreams/x.db",
		"../data/skills/tea.md", "/etc/passwd", "skills/../bot.db", "skills", ".", "media", "media/../bot.db", kept.Path,
	} {
		res := w.call(t, scope, SendFile, `{"path": "`+p+`"}`)
		expect.False(t, !res.Failed || len(sent) > 0, "%s: %+v, sent %v", p, res, sent)
	}
	system := scope
	system.System = true
	for _, s := range []Scope{direct(), system} {
		res := w.call(t, s, SendFile, `{"path": "skills/tea.md"}`)
		expect.False(t, !res.Failed || len(sent) > 0, "sent for nobody: %+v", res)
	}
}

// TestFilesOfAConversation: files of this conversation can be read and sent, others cannot.
func TestFilesOfAConversation(t *testing.T) {
	w := newWorkshop(t)
	kept := expect.Must(w.cfg.Media.Save(strings.NewReader("first line\nsecond line\n"), 1000))(t)
	var sent []Outgoing
	here := w.sending(group(), &sent)
	here.Files = map[string]string{kept.Path: "list.txt"}
	res := w.call(t, here, "read_file", `{"path": "data/`+kept.Path+`", "offset": 2}`)
	expect.False(t, res.Failed || !strings.Contains(res.Content, "second line"), "%+v", res)
	res = w.call(t, here, SendFile, `{"path": "data/`+kept.Path+`"}`)
	expect.False(t, res.Failed || len(sent) != 1 || sent[0].Name != "list.txt" || sent[0].Path != kept.Path, "%+v, sent %+v", res, sent)
	for _, p := range []string{kept.Path, media.Folder} {
		res := w.call(t, group(), "read_file", `{"path": "data/`+p+`"}`)
		expect.False(t, !res.Failed || strings.Contains(res.Content, "line"), "%s elsewhere: %+v", p, res)
	}
}

// TestIntegrityOfMemoryFile: a memory that the file may have shown until now counts for the integrity of its text.
func TestIntegrityOfMemoryFile(t *testing.T) {
	w := newWorkshop(t)
	db := expect.Must(storetest.Open(t, filepath.Join(w.dir, "bot.db")))(t)
	defer db.Close()
	w.cfg.Memory = expect.Must(memory.Open(t.Context(), memory.Config{DB: db, Dir: w.dir, Owner: owner, Backend: "fts5", FileLines: 1}))(t)
	for _, level := range []trust.Integrity{trust.Foreign, trust.Owner} { // the newer one is shown
		e := memory.Entry{Scope: memory.Private(owner), Text: "of " + level.String(), Source: memory.Assistant, Integrity: level}
		_, _, err := w.cfg.Memory.Add(t.Context(), e, owner)
		expect.OK(t, err)
	}
	shown := expect.Must(w.cfg.Memory.WorkingSet(t.Context(), memory.Private(owner)))(t)
	expect.False(t, len(shown) != 1 || shown[0].Integrity != trust.Owner, "shown: %+v", shown)
	expect.Equal(t, w.fileIntegrity(t.Context(), direct(), "MEMORIES.txt"), trust.Foreign)
}

package tool

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reverie/internal/llm"
	"reverie/internal/memory"
	"reverie/internal/test/expect"
	"reverie/internal/tool/workspace"
	"reverie/internal/trust"
)

func args(pairs ...string) string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return string(quoted(m))
}

// ownIn is the owner in a room of its own, whose words alone have been read.
func ownIn(room string) Scope {
	s := group()
	s.Room, s.Memory = room, memory.Strict.Visible(room, owner, false)
	s.Label = trust.Label{Integrity: trust.Owner, Readers: trust.RoomReaders(room)}
	return s
}

// TestAProgramIsWrittenAndSent: a small program is written, found, corrected and sent, and nobody has to be asked.
func TestAProgramIsWrittenAndSent(t *testing.T) {
	w := newWorkshop(t)
	scope := direct()
	var sent Outgoing
	scope.Send = func(_ context.Context, f Outgoing) error { sent = f; return nil }
	step := func(name, arguments string, want ...string) {
		t.Helper()
		call := llm.ToolCall{ID: "1", Name: name, Arguments: arguments}
		_, ask := w.NeedsApproval(scope, call)
		got := w.Run(t.Context(), scope, call)
		expect.False(t, ask || got.Failed, "%s: asks %v, %s", name, ask, got.Content)
		expect.Has(t, got.Content, want...)
		scope.Label.Integrity = min(scope.Label.Integrity, got.Integrity) // as in a turn
	}
	step("list_files", `{}`, "work", "is empty")
	step("read_file", asked("work"), "is empty")
	step("write_file", args("path", "work/src/hello.py", "content", "import sys\n\ndef main():\n    print(\"helo\")\n\nmain()\n"), "work/src/hello.py is written (50 bytes, new)")
	step("list_files", `{}`, "work/src/hello.py (50 bytes)")
	step("find_in_files", args("text", "HELO", "files", "*.py"), "work/src/hello.py:4: print(\"helo\")")
	step("read_file", asked("work/src/hello.py"), "work/src/hello.py, lines 1–6 of 6:\n\nimport sys\n\ndef main():\n    print(\"helo\")")
	step("edit_file", args("path", "work/src/hello.py", "old", "helo", "new", "hello"),
		"--- work/src/hello.py\n+++ work/src/hello.py\n@@ -1,6 +1,6 @@\n import sys\n \n def main():\n-    print(\"helo\")\n+    print(\"hello\")\n \n main()")
	step("write_file", args("path", "work/src/hello.py", "content", "print(\"hello\")\n"), "@@ -1,6 +1,1 @@\n-import sys\n-\n-def main():\n-    print(\"hello\")\n-\n-main()\n+print(\"hello\")")
	step("send_file", asked("work/src/hello.py"), "hello.py (15 bytes) is on its way")
	expect.False(t, sent.Name != "hello.py" || sent.Type != "text/plain", "sent: %+v", sent)
	expect.Equal(t, string(expect.Must(os.ReadFile(filepath.Join(w.dir, sent.Path)))(t)), "print(\"hello\")\n")
	step("delete_file", asked("work/src/hello.py"), "is deleted")
	step("list_files", `{}`, "is empty")
	expect.Equal(t, scope.Label.Integrity, trust.Owner)
}

// TestEditRefuses: a text that is not there once changes nothing, and the model learns where it stands.
func TestEditRefuses(t *testing.T) {
	w := newWorkshop(t)
	w.ok(t, direct(), "write_file", args("path", "work/a", "content", "aa\nb\naa\n  b\n"))
	for arguments, want := range map[string]string{
		args("path", "work/a", "old", "aa", "new", "c"):    "in the lines 1, 3, so",
		args("path", "work/a", "old", "a", "new", "c"):     "in the lines 1, 1, 3, 3, so",
		args("path", "work/a", "old", "b", "new", "c"):     "in the lines 2, 4, so",
		args("path", "work/a", "old", "c", "new", "d"):     "does not occur",
		args("path", "work/a", "old", "\tb", "new", "d"):   "does not occur",
		args("path", "work/a", "old", "  b", "new", "  b"): "are the same",
		args("path", "work/none", "old", "a", "new", "b"):  "work/none does not exist",
		args("path", "work", "old", "a", "new", "b"):       "is a folder",
		args("path", "src/a", "old", "a", "new", "b"):      "Write below work/, such as work/src/a",
		args("path", "work/a", "new", "b"):                 "old: is missing",
	} {
		expect.Has(t, w.bad(t, direct(), "edit_file", arguments), want)
	}
	for arguments, want := range map[string]string{
		args("path", "work/b"): "content: is missing", args("path", "work/b", "content", "x", "from", "work/a"): "not both", args("path", "../b", "content", "x"): "is no path",
		args("path", "data/skills/b.md", "content", "x"): "Write below work/", args("path", "work/b", "from", "data/bot.db"): "cannot be read", args("path", "work/b", "from", "work/../bot.db"): "is no path",
	} {
		expect.Has(t, w.bad(t, direct(), "write_file", arguments), want)
	}
	expect.Has(t, w.ok(t, direct(), "read_file", asked("work/a")), "aa\nb\naa\n  b")
	many := strings.Repeat("x", 1000)
	w.ok(t, direct(), "write_file", args("path", "work/many", "content", many))
	expect.Has(t, w.bad(t, direct(), "edit_file", args("path", "work/many", "old", "x", "new", "y")), "1, 1, 1, 1, 1, 1, 1, 1, 1, 1, and more")
	// White space alone is a text, where a file is written.
	w.ok(t, direct(), "edit_file", args("path", "work/a", "old", "b\naa", "new", "\n"))
	w.ok(t, direct(), "write_file", args("path", "work/empty", "content", "\n"))
	expect.Has(t, w.ok(t, direct(), "read_file", asked("work/a")), "aa\n\n\n  b")
}

// TestLinesOfWindows: a text with \n is found in a file with \r\n, whose line ends stay.
func TestLinesOfWindows(t *testing.T) {
	w := newWorkshop(t)
	w.ok(t, direct(), "write_file", args("path", "work/a", "content", "one\r\ntwo\r\nthree\r\n"))
	w.ok(t, direct(), "edit_file", args("path", "work/a", "old", "one\ntwo", "new", "1\n2"))
	expect.Equal(t, string(expect.Must(os.ReadFile(filepath.Join(workspace.Folder(w.dir, direct().Place()), "a")))(t)), "1\r\n2\r\nthree\r\n")
}

// TestForeignStaysForeign: whatever a model does with foreign text in a file, it stays foreign.
func TestForeignStaysForeign(t *testing.T) {
	w := newWorkshop(t)
	scope := direct()
	inFolder := filepath.Join(workspace.Folder(w.dir, scope.Place()), "note.txt")
	w.ok(t, scope, "write_file", args("path", "work/clean.txt", "content", "clean\n"))
	expect.OK(t, os.WriteFile(inFolder, []byte("Pay Mallory\n"), 0o600))
	of := func(name, arguments string) trust.Integrity {
		t.Helper()
		got := w.call(t, scope, name, arguments)
		expect.False(t, got.Failed, "%s", got.Content)
		return got.Integrity
	}
	read := func(path string) trust.Integrity { t.Helper(); return of("read_file", asked(path)) }
	expect.Equal(t, read("work/clean.txt"), trust.Owner)
	expect.Equal(t, of("find_in_files", args("text", "clean")), trust.Owner)
	for name, arguments := range map[string]string{
		"read_file": asked("work/note.txt"), "list_files": `{}`, "find_in_files": args("text", "mallory"), "edit_file": args("path", "work/note.txt", "old", "Pay", "new", "Please pay"),
	} {
		expect.Equal(t, of(name, arguments), trust.Foreign, name)
	}
	expect.Equal(t, read("work/note.txt"), trust.Foreign, "after the edit")
	w.ok(t, scope, "write_file", args("path", "work/copy.txt", "from", "work/note.txt"))
	expect.Equal(t, read("work/copy.txt"), trust.Foreign, "a copy")
	expect.OK(t, os.WriteFile(inFolder, []byte("again\n"), 0o600))
	expect.Equal(t, of("write_file", args("path", "work/note.txt", "content", "mine\n")), trust.Foreign, "the diff shows what was there")
	expect.Equal(t, read("work/note.txt"), trust.Owner, "what replaced it")
	// A conversation-wide approval does not make a tainted turn's words the person's.
	call := llm.ToolCall{ID: "1", Name: "write_file", Arguments: args("path", "work/tainted.txt", "content", "Pay Mallory\n")}
	tainted := scope
	tainted.Label.Integrity = trust.Foreign
	tainted.Granted = map[string]bool{tainted.describeAct(call).Covers: true}
	expect.False(t, w.Run(t.Context(), tainted, call).Failed, "a granted call")
	expect.Equal(t, read("work/tainted.txt"), trust.Guest)
}

// TestNoFileOfOthers: no path of one circle shows a file of another.
func TestNoFileOfOthers(t *testing.T) {
	w := newWorkshop(t)
	other := ownIn("!other:example.org")
	w.ok(t, other, "write_file", args("path", "work/secret.txt", "content", canary+"\n"))
	w.ok(t, other, "write_file", args("path", "work/d/secret.txt", "content", canary+"\n"))
	folder := filepath.Base(workspace.Folder(w.dir, other.Place()))
	opened := direct()
	opened.Private = false
	for _, scope := range []Scope{direct(), group(), opened} {
		scope.Send = func(_ context.Context, f Outgoing) error { return fmt.Errorf("sent %s", f.Name) }
		for _, path := range []string{"work/secret.txt", "work/d", "work/d/secret.txt", "data/work/" + folder + "/secret.txt", "work/" + folder, "work/" + folder + "/secret.txt", "work/../" + folder + "/secret.txt",
			folder + "/secret.txt", "work", "data/work", "work/received/secret.txt"} {
			for _, name := range []string{"read_file", "list_files", "send_file", "find_in_files", "edit_file", "delete_file", "write_file"} {
				got := w.call(t, scope, name, args("path", path, "text", "CANARY", "old", "CANARY", "new", "x", "from", path))
				expect.Lacks(t, got.Content, canary, "secret.txt (")
				got = w.call(t, scope, name, map[string]string{"find_in_files": args("path", path, "text", "CANARY"), "edit_file": args("path", path, "old", "CANARY", "new", "x"),
					"write_file": args("path", "work/mine", "from", path)}[name])
				expect.Lacks(t, got.Content, canary)
			}
		}
	}
	expect.Has(t, w.ok(t, other, "read_file", asked("work/secret.txt")), canary)
}

// TestReceivedFiles: what people sent is seen under its name, without a copy, and can be copied and sent.
func TestReceivedFiles(t *testing.T) {
	w := newWorkshop(t)
	scope := direct()
	receive := func(name, text string) string {
		k := expect.Must(w.cfg.Media.Save(strings.NewReader(text), 1<<20))(t)
		scope.Files[k.Path] = name
		return k.Path
	}
	scope.Files = map[string]string{"media/0123456789abcdef0123456789abcdef.txt": "gone.txt"}
	first := receive("table.csv", "a,b\n1,2\n")
	receive("table.csv", "c,d\n3,4\n")
	receive("../../bot.db", "no database\n")
	var sent Outgoing
	scope.Send = func(_ context.Context, f Outgoing) error { sent = f; return nil }
	list := w.call(t, scope, "list_files", `{}`)
	expect.Has(t, list.Content, "work/received/table.csv (sent by a person)", "work/received/table-", "work/received/bot.db (sent")
	expect.Lacks(t, list.Content, "gone.txt")
	expect.Equal(t, list.Integrity, trust.Foreign)
	expect.Equal(t, w.ok(t, scope, "list_files", args("path", "work/received")), list.Content)
	got := w.call(t, scope, "read_file", asked("work/received/table.csv"))
	expect.False(t, got.Failed || got.Integrity != trust.Foreign || !strings.Contains(got.Content, "1,2") && !strings.Contains(got.Content, "3,4"), "%+v", got)
	expect.Lacks(t, w.ok(t, scope, "find_in_files", args("text", "1,2")), "work/received")
	w.ok(t, scope, "send_file", asked("work/received/bot.db"))
	expect.Equal(t, sent.Name, "bot.db")
	expect.Has(t, w.ok(t, scope, "write_file", args("path", "work/mine.csv", "from", "work/received/table.csv")), "work/mine.csv is a copy of work/received/table.csv (8 bytes)")
	expect.Equal(t, w.call(t, scope, "read_file", asked("work/mine.csv")).Integrity, trust.Foreign)
	expect.OK(t, w.cfg.Media.Remove(first)) // as a redaction does
	expect.Lacks(t, w.ok(t, scope, "list_files", `{}`), "table-")
	scope.Files = nil // another conversation
	expect.Has(t, w.bad(t, scope, "read_file", asked("work/received/table.csv")), "There is no file")
	expect.Has(t, w.bad(t, scope, "write_file", args("path", "work/received/x", "content", "x")), "write beside it")
}

// TestBoundFolder: a folder of the machine is changed at an owner's words alone, and a grant for the work folder does not cover it.
func TestBoundFolder(t *testing.T) {
	notes := t.TempDir()
	put(t, notes, "a.txt", "note\n")
	w := newWorkshop(t, workspace.Bound{Room: group().Room, Path: notes, Name: "notes", Write: true}, workspace.Bound{Room: group().Room, Path: notes, Name: "archive"})
	got := w.call(t, group(), "read_file", asked("notes/a.txt"))
	expect.False(t, got.Failed || got.Integrity != trust.Foreign, "%+v", got)
	expect.Has(t, got.Content, "notes/a.txt, lines 1–1 of 1:\n\nnote")
	expect.Has(t, w.ok(t, group(), "list_files", `{}`), "Other folders: notes/, archive/")
	expect.Has(t, w.ok(t, group(), "list_files", args("path", "notes")), "notes/a.txt (5 bytes)")
	expect.Has(t, w.bad(t, direct(), "read_file", asked("notes/a.txt")), "cannot be read")
	for _, call := range []llm.ToolCall{
		{ID: "1", Name: "write_file", Arguments: args("path", "notes/b.txt", "content", "x")},
		{ID: "1", Name: "edit_file", Arguments: args("path", "notes/a.txt", "old", "note", "new", "x")},
		{ID: "1", Name: "delete_file", Arguments: args("path", "notes/a.txt")},
	} {
		user := group()
		act, ask := w.NeedsApproval(user, call)
		expect.False(t, !ask, "%s: a user's words suffice", call.Name)
		inWork := call
		inWork.Arguments = strings.Replace(call.Arguments, "notes/", "work/", 1)
		user.Granted = map[string]bool{user.describeAct(inWork).Covers: true}
		_, ask = w.NeedsApproval(user, call)
		expect.False(t, !ask || act.Covers == user.describeAct(inWork).Covers, "%s: a grant for the work folder covers %s", call.Name, act.Covers)
		expect.False(t, !w.Run(t.Context(), user, call).Failed, "%s ran", call.Name)
		call.Arguments = strings.Replace(call.Arguments, "notes/", "archive/", 1)
		_, ask = w.NeedsApproval(user, call)
		expect.False(t, ask, "%s: asked about what is impossible", call.Name)
		expect.Has(t, w.bad(t, ownIn(group().Room), call.Name, call.Arguments), "can only be read here")
	}
	expect.Equal(t, string(expect.Must(os.ReadFile(filepath.Join(notes, "a.txt")))(t)), "note\n")
	w.ok(t, ownIn(group().Room), "edit_file", args("path", "notes/a.txt", "old", "note", "new", "new note"))
	expect.Equal(t, string(expect.Must(os.ReadFile(filepath.Join(notes, "a.txt")))(t)), "new note\n")
}

// TestDiff: a diff is what patch understands, and is short.
func TestDiff(t *testing.T) {
	for _, c := range [][3]string{
		{"", "a\n", "@@ -0,0 +1,1 @@\n+a"},
		{"a\n", "", "@@ -1,1 +0,0 @@\n-a"},
		{"a\nb\nc\nd\ne\nf\ng\nh\n", "a\nb\nc\nd\nX\nf\ng\nh\n", "@@ -2,7 +2,7 @@\n b\n c\n d\n-e\n+X\n f\n g\n h"},
		{"a\nb\n", "a\nb\nc\n", "@@ -1,2 +1,3 @@\n a\n b\n+c"},
		{"a\na\na\n", "a\na\n", "@@ -1,3 +1,2 @@\n a\n a\n-a"},
		{"a", "a\n", "@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+a"},
		{"a\n", "a\n", "(nothing is different)"},
	} {
		got := strings.TrimPrefix(diff("f", c[0], c[1]), "--- f\n+++ f\n")
		expect.Equal(t, got, c[2])
	}
	long := diff("f", strings.Repeat("x\n", 1000), strings.Repeat("y\n", 1000))
	expect.Has(t, long, "[1880 more lines of this change]")
}

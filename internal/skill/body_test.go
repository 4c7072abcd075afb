package skill

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"
)

func TestBody(t *testing.T) {
	late := "---\n" + strings.Repeat("#\n", headSize/2) + "---\nx" // its front matter ends too late to be some
	dir := t.TempDir()
	for name, file := range map[string]string{
		"plain.md":      "\ufeff# How to\r\n\r\ntext\r\n",
		"front.md":      "---\ntriggers: a\n---\n\n# How to\n\n---\ntext\n",
		"faulty.md":     "---\ntriggers: [a\n---\n# How to\n",
		"open.md":       "---\nno end\n",
		"rule.md":       "---\nJust text\n---\nmore\n",
		"cook/SKILL.md": "---\ndescription: x\n---\nCook\n",
		"both.md":       "the file",
		"both/SKILL.md": "the folder",
		"raw.md":        "a\xffb\x00c\x1b[1m\td\re",
		"empty.md":      "",
		"late.md":       late,
	} {
		put(t, dir, name, file)
	}
	l := Open(dir)
	for name, want := range map[string]string{
		"plain": "# How to\n\ntext", "front": "# How to\n\n---\ntext", "faulty": "# How to", "open": "---\nno end",
		"rule": "---\nJust text\n---\nmore", "cook": "Cook", "both": "the file", "raw": "a\uFFFDbc[1m\td\ne", "empty": "", "late": late,
	} {
		if got, err := l.Body(name); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
	}
}

func TestLongBodyIsCut(t *testing.T) {
	dir := t.TempDir()
	l := Open(dir)
	front := "---\n" + strings.Repeat("# comment\n", 1600) + "---\n"
	line := strings.Repeat("茶", 20) + "\n"
	for name, tt := range map[string]struct {
		file string
		cut  bool
	}{
		"fits":      {strings.Repeat("x", maxBody), false},
		"just-over": {strings.Repeat("x", maxBody+1), true},
		"lines":     {strings.Repeat(line, 5000), true},
		"front":     {front + strings.Repeat(line, 5000), true},
	} {
		put(t, dir, name+".md", tt.file)
		got, err := l.Body(name)
		if err != nil || len(got) > maxBody || !utf8.ValidString(got) || strings.Contains(got, "comment") {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		if says := strings.HasSuffix(got, "\n[The skill is longer than 64 KiB. The rest stands in data/skills/"+name+".md.]"); says != tt.cut {
			t.Errorf("%s: ends in %q", name, got[max(0, len(got)-100):])
		}
		if text, _, _ := strings.Cut(got, "\n["); strings.Contains(tt.file, line) && !strings.HasSuffix(text, line[:len(line)-1]) {
			t.Errorf("%s: cut within a line: %q", name, text[max(0, len(text)-70):])
		}
	}
}

func TestBodyRefuses(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	put(t, outside, "secret.md", "secret")
	link(t, filepath.Join(outside, "secret.md"), dir, "link.md")
	put(t, dir, "folder.md/x", "x")
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe.md"), 0o600); err != nil { // reading it would never end
		t.Fatal(err)
	}
	l := Open(dir)
	for _, name := range []string{"../secret", "", "a/b", "secret.md", "a\x00", "link", "folder", "pipe"} {
		if got, err := l.Body(name); err == nil || got != "" || !strings.HasPrefix(err.Error(), "skill ") {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
}

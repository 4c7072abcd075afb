package main

import (
	"bytes"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWriteConfig(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "new", "config.yaml")
	must(t, writeConfig(path, defaultAnswers()))
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	c, err := loadConfig(path, true) // as it stands, with nothing set anywhere
	if err != nil || c.Matrix != nil || len(c.warnings) != 0 {
		t.Fatalf("%+v, %v", c, err)
	}
	before, _ := os.ReadFile(path)
	if err := writeConfig(path, exampleAnswers()); err == nil || !strings.Contains(err.Error(), path+" is there already") {
		t.Errorf("%v", err)
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
		t.Error("the file was changed")
	}
	// A link that leads nowhere is something, too.
	link := filepath.Join(dir, "link.yaml")
	must(t, os.Symlink("elsewhere.yaml", link))
	if err := writeConfig(link, defaultAnswers()); err == nil {
		t.Error("wrote through a link")
	}
	// The commented section works when the marks are taken away.
	_, section, _ := strings.Cut(string(before), "# matrix:\n")
	section, _, _ = strings.Cut(section, "\n\n# Language models")
	lines := strings.Split("# matrix:\n"+section, "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "# ")
	}
	if c, err := parse(t, dir, small+strings.Join(lines, "\n")+"\n"); err != nil || c.Matrix == nil || c.Matrix.User != "@reverie:example.org" {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestWriteConfigQuotes: whatever the answers are, the file says exactly that.
func TestWriteConfigQuotes(t *testing.T) {
	for _, odd := range []string{"yes", "null", "~", "12", "1e3", "a: b", "# x", `"q"`, "it's", "@x:y", "*a", "ä<b>&c", "- x", "!t", "%p", "`", "{a}", "[a]", "\\n", "2026-01-01", "0x10", "qwen3:8b"} {
		a := exampleAnswers()
		a.Model = odd
		text := renderConfig(a)
		c, err := parse(t, "/x", string(text))
		if err != nil || c.LLM.Models[0].Model != odd {
			t.Errorf("%q: %v", odd, err)
		}
	}
}

func TestAsk(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	web := hosts{"matrix.example.org": aHomeserver}
	a, screen, err := asked(web, "nonsense", "https://matrix.example.org", "reverie", "@reverie:example.org", "", "@reverie:example.org", "@me:example.org",
		gone.URL+"/v1", "", "sk-my-key-itself", "LLM_KEY", "llama3", "", "")
	if err != nil {
		t.Fatalf("%v\n%s", err, screen)
	}
	want := exampleAnswers()
	want.Timezone, want.ModelURL, want.Model, want.KeyVariable = "Local", gone.URL+"/v1", "llama3", "LLM_KEY"
	if a != want {
		t.Errorf("got  %+v\nwant %+v", a, want)
	}
	if strings.Count(screen, "\nHomeserver") != 2 || !strings.Contains(screen, "[http://127.0.0.1:11434/v1]") || !strings.Contains(screen, "not the bot's") {
		t.Errorf("dialogue:\n%s", screen)
	}
	text := renderConfig(a)
	if c, err := parse(t, "/x", string(text)); err != nil || c.LLM.Models[0].APIKey != "sk-hunter3" || c.Matrix.Password != "hunter2" {
		t.Errorf("%v", err)
	}

	for _, lines := range [][]string{nil, {"https://matrix.example.org"}, {"x/", "x/", "x/", "x/", "x/", "x/"}} {
		if _, _, err := asked(web, lines...); err == nil || !strings.Contains(err.Error(), "nothing was written") {
			t.Errorf("%q: %v", lines, err)
		}
	}
}

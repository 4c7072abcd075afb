package dream

import (
	"bytes"
	"io/fs"
	"log/slog"
	"strings"
	"testing"
	"testing/fstest"

	reverie "reverie"
)

// TestShippedTemplates: each is there, with its placeholders.
func TestShippedTemplates(t *testing.T) {
	for file, sets := range places {
		b, err := fs.ReadFile(reverie.Data, file)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, p := range sets[0] {
			if !strings.Contains(string(b), p) {
				t.Errorf("%s has no %s", file, p)
			}
		}
		if err := CheckTemplate(file, string(b)); err != nil {
			t.Error(err)
		}
	}
}

// TestWrongPlaceholders: a template with one of two placeholders, or a misspelt one, is told
// with its line and what to write, and not used; one without any is.
func TestWrongPlaceholders(t *testing.T) {
	for _, c := range []struct{ file, text, want string }{
		{conflictFile, "Which?\n\n{entry_1} or the other?", `DREAM_CONTRADICTION_PROMPT.txt, line 3: there is {entry_1} and no {entry_2}; write {entry_2} where`},
		{conflictFile, "{entry_2}", "there is {entry_2} and no {entry_1}"},
		{conflictFile, "a\n{entry1} {entry2}", "line 2: {entry1} is no placeholder there; write {entry_1} and {entry_2}"},
		{paraphraseFile, "<!-- mine\n-->\n{contents}", "line 3: {contents} is no placeholder there; write {content}"},
		{taskFile, "{tasks}", "write {content}"},
		{taskFile, "{entry_1} {entry_2}", "write {content}"},
		{HarvestTemplate, "{history}", "write {transcript}"},
		{HarvestTemplate, "{transcript} {whatever}", ""},
		{conflictFile, "{entry_1} {entry_2} {whatever}", ""},
		{conflictFile, "{count}: {content}", ""},
		{taskFile, "Say what is done. Answer as {\"a\": 1}.", ""},
		{"prompts/OTHER.txt", "{contents}", ""},
	} {
		err := CheckTemplate(c.file, c.text)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.text, err, c.want)
		}
		var log bytes.Buffer
		mine, shipped := fstest.MapFS{c.file: {Data: []byte(c.text)}}, fstest.MapFS{c.file: {Data: []byte("Yours.")}}
		if got := template(mine, shipped, slog.New(slog.NewTextHandler(&log, nil)), c.file); (got == "Yours.") != (c.want != "") || strings.Contains(log.String(), "cannot be used") != (c.want != "") {
			t.Errorf("%q: %q %s", c.text, got, log.String())
		}
	}
}

// Package template reads the texts of requests that owners may change in the data folder.
package template

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"regexp"
	"slices"
	"strings"
)

// Template is a file of the data folder, by its path in it.
type Template struct {
	File string
	// Places are the placeholders that stand for what a model is asked about; one set of them is
	// enough. A text without any of them gets it at its end.
	Places [][]string
}

// beside are the placeholders that may stand beside them.
var beside = []string{"{pair}", "{count}", "{nonce}"}

var placeholder = regexp.MustCompile(`\{[\pL_][\pL\d_ -]{1,24}\}`)

// Check says what is wrong with the placeholders of text, and what to write: one of two that
// belong together is missing, or one is misspelt. A text without placeholders is right: what a
// model is asked about comes at its end.
func (t Template) Check(text string) error {
	for _, set := range t.Places {
		if !slices.ContainsFunc(set, func(p string) bool { return !strings.Contains(text, p) }) {
			return nil
		}
	}
	for _, set := range t.Places {
		if len(set) != 2 {
			continue
		}
		for i, here := range set {
			if other := set[1-i]; strings.Contains(text, here) {
				return fmt.Errorf("%s, line %d: there is %s and no %s; write %s where the other memory goes",
					t.File, lineOf(text, here), here, other, other)
			}
		}
	}
	for _, p := range placeholder.FindAllString(text, -1) {
		if !slices.Contains(beside, p) {
			return fmt.Errorf("%s, line %d: %s is no placeholder there; write %s",
				t.File, lineOf(text, p), p, strings.Join(t.Places[0], " and "))
		}
	}
	return nil
}

func lineOf(text, part string) int {
	before, _, _ := strings.Cut(text, part)
	return strings.Count(before, "\n") + 1
}

// Load is the text of t as it is now: the owner's, or the one that came with the program if
// there is none or its placeholders are wrong.
func (t Template) Load(owners, shipped fs.FS, log *slog.Logger) string {
	for i, from := range []fs.FS{owners, shipped} {
		if from == nil {
			continue
		}
		b, err := fs.ReadFile(from, t.File)
		if err == nil && i == 0 {
			blank := func(s string) string { return strings.Repeat("\n", strings.Count(s, "\n")) }
			err = t.Check(comment.ReplaceAllStringFunc(string(b), blank))
		}
		if err == nil && strings.TrimSpace(string(b)) != "" {
			return comment.ReplaceAllString(strings.ReplaceAll(string(b), "\r\n", "\n"), "")
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			log.Warn("a template cannot be used; the one that came with the program is used meanwhile", "file", t.File, "why", err)
		}
	}
	return ""
}

// comment is what an owner writes into a template for other owners.
var comment = regexp.MustCompile(`(?s)<!--.*?-->\n?`)

// Fill puts text where the placeholder stands in a template, or at its end. Any other brace
// of text is text.
func Fill(template, placeholder, text string) string {
	if before, after, ok := strings.Cut(template, placeholder); ok {
		return before + text + after
	}
	return strings.TrimRight(template, "\n") + "\n\n" + text + "\n"
}

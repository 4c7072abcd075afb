// Package template loads the request texts that owners may edit in the data folder.
package template

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"

	"reverie/internal/lazyregexp"
)

// Template is a file of the data folder, by its relative path.
type Template struct {
	File string
	// Placeholders are sets of placeholders for the data that the model is asked about. A text needs one
	// set; a text without placeholders gets the data at its end.
	Placeholders [][]string
}

// optionalPlaceholders are optional placeholders.
var optionalPlaceholders = []string{"{pair}", "{count}", "{nonce}"}

var placeholder = lazyregexp.New(`\{[\pL_][\pL\d_ -]{1,24}\}`)

// Check reports a wrong placeholder and its remedy: one of a pair is missing, or one is misspelt. A
// text without placeholders is valid: the data comes at its end.
func (t Template) Check(text string) error {
	for _, set := range t.Placeholders {
		if !slices.ContainsFunc(set, func(p string) bool { return !strings.Contains(text, p) }) {
			return nil
		}
	}
	for _, set := range t.Placeholders {
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
	for _, p := range placeholder().FindAllString(text, -1) {
		if !slices.Contains(optionalPlaceholders, p) {
			return fmt.Errorf("%s, line %d: %s is no placeholder there; write %s",
				t.File, lineOf(text, p), p, strings.Join(t.Placeholders[0], " and "))
		}
	}
	return nil
}

func lineOf(text, part string) int {
	before, _, _ := strings.Cut(text, part)
	return strings.Count(before, "\n") + 1
}

// Load returns the owner's text. It returns the shipped one if the owner has none or its
// placeholders are wrong.
func (t Template) Load(owners, shipped fs.FS, log *slog.Logger) string {
	for i, from := range []fs.FS{owners, shipped} {
		if from == nil {
			continue
		}
		b, err := fs.ReadFile(from, t.File)
		if err == nil && i == 0 {
			blank := func(s string) string { return strings.Repeat("\n", strings.Count(s, "\n")) }
			err = t.Check(comment().ReplaceAllStringFunc(string(b), blank))
		}
		if err == nil && strings.TrimSpace(string(b)) != "" {
			return comment().ReplaceAllString(strings.ReplaceAll(string(b), "\r\n", "\n"), "")
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			log.Warn("a template cannot be used; the one that came with the program is used meanwhile", "file", t.File, "why", err)
		}
	}
	return ""
}

// comment matches a comment that owners write for each other.
var comment = lazyregexp.New(`(?s)<!--.*?-->\n?`)

// Fill replaces the placeholder in a template by text, or appends text. Other braces are plain
// text.
func Fill(template, placeholder, text string) string {
	if before, after, ok := strings.Cut(template, placeholder); ok {
		return before + text + after
	}
	return strings.TrimRight(template, "\n") + "\n\n" + text + "\n"
}

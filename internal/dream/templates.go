package dream

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"regexp"
	"slices"
	"strings"
)

// The templates, relative to the data folder.
const (
	conflictFile   = "DREAM_CONTRADICTION_PROMPT.txt"
	paraphraseFile = "DREAM_DEDUP_PROMPT.txt"
	taskFile       = "DREAM_TASK_PROMPT.txt"

	HarvestTemplate = "MEMORY_HARVEST_PROMPT.txt" // of the request that asks for facts
)

// places are the placeholders of each template that stand for what a model is asked
// about; one set of them is enough. A template without any of them gets it at its end.
var places = map[string][][]string{
	conflictFile: {{"{entry_1}", "{entry_2}"}, {"{content}"}}, paraphraseFile: {{"{content}"}, {"{entry_1}", "{entry_2}"}},
	taskFile: {{"{content}"}}, HarvestTemplate: {{"{transcript}"}},
}

// beside are the placeholders that may stand beside them.
var beside = []string{"{pair}", "{count}", "{nonce}"}

var placeholder = regexp.MustCompile(`\{[\pL_][\pL\d_ -]{1,24}\}`)

// CheckTemplate says what is wrong with the placeholders of the template file, by the
// path below the data folder, and what to write: one of two that belong together is
// missing, or one is misspelt. A text without placeholders is right: what a model is asked about
// comes at its end.
func CheckTemplate(file, text string) error {
	sets := places[file]
	if len(sets) == 0 {
		return nil
	}
	for _, set := range sets {
		if !slices.ContainsFunc(set, func(p string) bool { return !strings.Contains(text, p) }) {
			return nil
		}
	}
	for _, set := range sets {
		if len(set) != 2 {
			continue
		}
		for i, here := range set {
			if strings.Contains(text, here) {
				return fmt.Errorf("%s, line %d: there is %s and no %s; write %s where the other memory goes", file, lineOf(text, here), here, set[1-i], set[1-i])
			}
		}
	}
	for _, p := range placeholder.FindAllString(text, -1) {
		if !slices.Contains(beside, p) {
			return fmt.Errorf("%s, line %d: %s is no placeholder there; write %s", file, lineOf(text, p), p, strings.Join(sets[0], " and "))
		}
	}
	return nil
}

func lineOf(text, part string) int {
	before, _, _ := strings.Cut(text, part)
	return strings.Count(before, "\n") + 1
}

// template is the text of file as it is now: the owner's, or the one that came with the
// program if there is none or its placeholders are wrong.
func template(owners, shipped fs.FS, log *slog.Logger, file string) string {
	for i, from := range []fs.FS{owners, shipped} {
		if from == nil {
			continue
		}
		b, err := fs.ReadFile(from, file)
		if err == nil && i == 0 {
			err = CheckTemplate(file, comment.ReplaceAllStringFunc(string(b), func(s string) string { return strings.Repeat("\n", strings.Count(s, "\n")) }))
		}
		if err == nil && strings.TrimSpace(string(b)) != "" {
			return comment.ReplaceAllString(strings.ReplaceAll(string(b), "\r\n", "\n"), "")
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			log.Warn("a template cannot be used; the one that came with the program is used meanwhile", "file", file, "why", err)
		}
	}
	return ""
}

// comment is what an owner writes into a template for other owners.
var comment = regexp.MustCompile(`(?s)<!--.*?-->\n?`)

// putInto puts text where the placeholder stands in a template, or at its end. Any other brace
// of text is text.
func putInto(template, placeholder, text string) string {
	if before, after, ok := strings.Cut(template, placeholder); ok {
		return before + text + after
	}
	return strings.TrimRight(template, "\n") + "\n\n" + text + "\n"
}

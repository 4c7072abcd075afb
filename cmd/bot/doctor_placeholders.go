package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"reverie"
	"reverie/internal/dream"
	"reverie/internal/prompt"
	"reverie/internal/session"
	"reverie/internal/store"
)

// unknown is a word in braces that looks like a placeholder and is none in its file.
type unknown struct {
	name    string
	line    int
	instead string // what its author may have meant
}

// examinePlaceholders finds the words in prompt files that look like placeholders and are
// none there: the model would read them as they stand.
func examinePlaceholders(data string) []finding {
	names, err := promptFiles(data)
	if err != nil {
		return []finding{{"files", ill, err.Error(), "make the data folder readable for this user"}}
	}
	var found []finding
	for _, name := range names {
		if _, err := fs.Stat(reverie.Data, name); err != nil && strings.HasSuffix(name, "_PROMPT.txt") && !strings.Contains(name, "/") {
			found = append(found, finding{"prompt", note, "nothing reads " + name, "delete it, or give it the name of a file that came with the program"})
			continue
		}
		text, err := readPrompt(filepath.Join(data, filepath.FromSlash(name)))
		if err != nil {
			continue // who reads the file for a request says so
		}
		for _, u := range unknownPlaceholders(name, text) {
			found = append(found, finding{"prompt", note, fmt.Sprintf("%s:%d: %s is no placeholder, so the model reads it as it stands", name, u.line, u.name), u.instead})
		}
		if err := dream.CheckTemplate(name, text); err != nil {
			found = append(found, finding{"prompt", note, "the text that came with the program is used in the place of " + name, err.Error()})
		}
	}
	return found
}

// promptFiles lists the files of the data folder that may have placeholders, but for hidden ones.
func promptFiles(data string) ([]string, error) {
	var names []string
	err := fs.WalkDir(os.DirFS(data), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		hidden := strings.HasPrefix(d.Name(), ".")
		if d.IsDir() && (hidden || name != "prompts" && !strings.HasPrefix(name, "prompts/")) {
			return fs.SkipDir
		}
		if known, _ := placeholders(name); !d.IsDir() && !hidden && known != nil {
			names = append(names, name)
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("look for prompt files: %w", err)
	}
	return names, nil
}

// readPrompt reads a file as far as a prompt file may be long.
func readPrompt(path string) (string, error) {
	if stamp, err := store.Stat(path); err != nil || !stamp.Regular() {
		return "", errors.Join(err, fs.ErrInvalid)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 1<<20))
	return strings.ReplaceAll(string(text), "\r\n", "\n"), err
}

// placeholders are those that a file may have, nil for one that is no prompt. prose reports
// whether it is the owner's own words, in which other braces are ordinary.
func placeholders(file string) (known []string, prose bool) {
	dir, base := path.Split(file)
	switch own := dream.Placeholders(file); {
	case own != nil:
		return own, false
	case dir == "" && strings.HasSuffix(base, ".md"), dir == "prompts/tools/":
		return prompt.Placeholders(file), true
	case strings.HasPrefix(dir, "prompts/") && strings.HasSuffix(base, ".txt"), dir == "" && strings.HasSuffix(base, "_PROMPT.txt"):
		return prompt.Placeholders(file), false
	}
	return nil, false
}

var (
	braces  = regexp.MustCompile(`\{[A-Za-z][A-Za-z0-9_ -]{0,30}\}`)
	simple  = regexp.MustCompile(`^\{[a-z][a-z0-9_]*\}$`)
	leading = regexp.MustCompile(`[$/{\w]`)
	quoted  = regexp.MustCompile("(?s)<!--.*?-->|```.*?```|`[^`\n]*`") // comments and code
)

// unknownPlaceholders lists what looks like a placeholder in text and is none in its file: a
// lower-case word in braces, or what is nearly a known one. JSON, code and addresses have
// braces of their own.
func unknownPlaceholders(file, text string) []unknown {
	known, prose := placeholders(file)
	if known == nil {
		return nil
	}
	text = quoted.ReplaceAllStringFunc(text, func(s string) string { return strings.Repeat("\n", strings.Count(s, "\n")) })
	var found []unknown
	for _, at := range braces.FindAllStringIndex(text, -1) {
		name := text[at[0]:at[1]]
		if slices.Contains(known, name) || slices.ContainsFunc(found, func(u unknown) bool { return u.name == name }) {
			continue
		}
		if partOfMore(text[:at[0]], text[at[1]:]) {
			continue
		}
		u := unknown{name: name, line: strings.Count(text[:at[0]], "\n") + 1}
		near := session.Nearest(strings.ToLower(strings.ReplaceAll(name, " ", "_")), known)
		switch {
		case len(near) > 0:
			u.instead = "did you mean " + near[0] + "?"
		case prose || !simple.MatchString(name):
			continue
		case len(known) == 1:
			u.instead = "there is " + known[0]
		default:
			u.instead = "there are " + strings.Join(known, ", ")
		}
		found = append(found, u)
	}
	return found
}

// partOfMore reports whether braces belong to what stands directly around them, as in
// ${home}, {{name}}, /users/{id} and f{n}.
func partOfMore(before, after string) bool {
	return leading.MatchString(before[max(len(before)-1, 0):]) || strings.HasPrefix(after, "/") || strings.HasPrefix(after, "}")
}

package skill

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"reverie/internal/lazyregexp"
	"reverie/internal/store"
)

// Bounds of published skills, in characters and lines.
const (
	maxDescription   = 1024
	maxCompatibility = 500
	longLines        = 500
	longChars        = 20_000 // about 5,000 tokens
)

// Finding is something that Check found. A fault is a reason to refuse the skill, a warning is not.
type Finding struct {
	store.Problem
	Warning bool `json:"warning,omitempty"`
}

// Faulty reports whether one of found is a fault.
func Faulty(found []Finding) bool {
	return slices.ContainsFunc(found, func(f Finding) bool { return !f.Warning })
}

// form checks one SKILL.md. No finding repeats a value of the file.
type form struct {
	name  string // of the folder
	own   bool   // the file is in the library, so the program may have written fields
	found []Finding
}

func (f *form) fault(line int, format string, args ...any) {
	f.found = append(f.found, Finding{Problem: store.Problem{File: folderFile, Line: line, Text: fmt.Sprintf(format, args...)}})
}

func (f *form) warn(line int, text string) {
	f.found = append(f.found, Finding{store.Problem{File: folderFile, Line: line, Text: text}, true})
}

// checkForm checks the text of a SKILL.md by the rules of agentskills.io.
func (f *form) checkForm(text []byte) {
	if !utf8.Valid(text) {
		f.fault(0, "it is not UTF-8 text: save it as UTF-8")
		return
	}
	head := readHead(text)
	for _, p := range head.faults {
		f.fault(p.Line, "%s", p.Text)
	}
	if head.line == 0 {
		f.fault(1, `front matter is missing: begin with the lines "---", "name: …", "description: …" and "---"`)
	}
	if head.fields == nil {
		return // reported by readHead
	}
	f.checkFields(head.fields, head.line)
	_, body := splitValidFront(text)
	f.checkBody(body)
}

func (f *form) checkFields(fields *yaml.Node, line int) {
	given := map[string]bool{}
	for i := 0; i+1 < len(fields.Content); i += 2 {
		key, value := fields.Content[i], fields.Content[i+1]
		at := line + key.Line
		if given[key.Value] {
			f.fault(at, "this field is there twice: remove one of them")
		}
		given[key.Value] = true
		switch key.Value {
		case "name":
			f.checkName(value, at)
		case "description":
			f.checkText("description", value, at, maxDescription)
		case "compatibility":
			f.checkText("compatibility", value, at, maxCompatibility)
		case "metadata":
			if value.Kind != yaml.MappingNode && value.Tag != "!!null" {
				f.fault(at, "metadata must be fields of its own, indented below it")
			}
		case "allowed-tools":
			notText := func(n *yaml.Node) bool { return n.Kind != yaml.ScalarNode }
			if value.Kind != yaml.ScalarNode && (value.Kind != yaml.SequenceNode || slices.ContainsFunc(value.Content, notText)) {
				f.fault(at, "allowed-tools must be names of tools: one text, or a list")
			}
			f.warn(at, "allowed-tools has no effect: a skill permits nothing, with or without it")
		case "license", "triggers", "priority", "turns": // the last three are checked by readHead
		case integrityKey, ownerKey:
			if !f.own {
				f.fault(at, "integrity and written_by are not for published skills: remove them")
			}
		default:
			f.warn(at, "this field has no effect here")
		}
	}
	for _, key := range []string{"name", "description"} {
		if !given[key] {
			f.fault(line, "the field %s is missing: add it below this line", key)
		}
	}
}

var publishedName = lazyregexp.New(`^[a-z0-9]+(-[a-z0-9]+)*$`)

func (f *form) checkName(value *yaml.Node, line int) {
	switch name := value.Value; {
	case value.Kind != yaml.ScalarNode || name == "":
		f.fault(line, "name must be one word, the same as that of the folder")
	case len(name) > 64 || !publishedName().MatchString(name):
		f.fault(line, "name must have 1 to 64 of the characters a-z, 0-9 and -, with single hyphens only between others")
	case name != f.name:
		f.fault(line, "name must be the same as that of the folder: change one of them")
	case reserved(name):
		f.fault(line, "a skill cannot have this name: the folders users and rooms are those of people and rooms")
	}
}

// checkText checks a text of 1 to most characters.
func (f *form) checkText(key string, value *yaml.Node, line, most int) {
	n := utf8.RuneCountInString(value.Value)
	switch {
	case value.Kind != yaml.ScalarNode:
		f.fault(line, "%s must be a text; put one with signs into quotes", key)
	case value.Tag == "!!null" || strings.TrimSpace(value.Value) == "":
		f.fault(line, "%s is empty: write a text of 1 to %d characters", key, most)
	case n > most:
		f.fault(line, "%s is %d characters long, the most is %d: shorten it", key, n, most)
	}
}

// checkBody warns of texts that need much of a model's window.
func (f *form) checkBody(body []byte) {
	switch lines, chars := bytes.Count(body, []byte("\n")), utf8.RuneCount(body); {
	case len(bytes.TrimSpace(body)) == 0:
		f.warn(0, "there is no text below the front matter")
	case lines >= longLines || chars > longChars:
		f.warn(0, fmt.Sprintf("the text is long (%d lines, %d characters): each use needs that much of the model's window, "+
			"and a small model reads it in parts; move details into references/", lines, chars))
	}
}

// checkFiles checks a skill folder named name.
func checkFiles(name string, files []File, own bool) []Finding {
	f := form{name: name, own: own}
	i := slices.IndexFunc(files, func(file File) bool { return file.Path == folderFile && !file.Folder() })
	if i < 0 {
		f.fault(0, "there is no file of this name (in capitals) in the folder")
	} else {
		f.checkForm(files[i].Data)
	}
	return f.found
}

// Check lists what is wrong with the skill id, or with all skills if id is "". A skill that is a
// folder is compared with the published form.
func (l *Library) Check(id string) (found []Finding, err error) {
	problems := l.Problems()
	l.mu.Lock()
	defer l.mu.Unlock()
	skills, _, err := l.scan()
	if err != nil {
		return nil, err
	}
	known := id == ""
	for _, s := range skills {
		if id != "" && s.ID() != id {
			continue
		}
		known = true
		if s.Unreviewed {
			const text = "it came from outside and is foreign text until an owner has read it"
			found = append(found, Finding{store.Problem{File: s.Path, Text: text}, true})
		}
		if s.RelPath()+"/"+folderFile != strings.TrimPrefix(s.Path, pathPrefix) {
			continue
		}
		_, form, err := l.checkFolder(s)
		if err != nil {
			return nil, err
		}
		for _, f := range form {
			f.File = path.Join(pathPrefix, s.RelPath(), f.File)
			found = append(found, f)
		}
	}
	for _, p := range problems {
		if id != "" && p.File != pathPrefix+id+".md" && !strings.HasPrefix(p.File, pathPrefix+id+"/") {
			continue
		}
		known = true
		if !slices.ContainsFunc(found, func(f Finding) bool { return f.Problem == p }) {
			found = append(found, Finding{Problem: p})
		}
	}
	if !known {
		return nil, ErrUnknown
	}
	return found, nil
}

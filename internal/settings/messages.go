package settings

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	reverie "reverie"
	"reverie/internal/i18n"
	"reverie/internal/lazyregexp"
	"reverie/internal/store"
)

// Messages holds the sentences that the program says by itself. They are in the language of a room.
// They are read from data/messages/LANGUAGE.txt: lines "key: text", where \n is a line break,
// {name} a placeholder and # begins a comment. Changed files are read again. Missing sentences, and
// all of a nil Messages, are English.
type Messages struct {
	dir      string // the data folder; "" = the built-in files only
	language string // default language of rooms
	settings Store

	mu   sync.Mutex
	read map[string]*messageFile // files on disk by language
}

type messageFile struct {
	stamp   store.Stamp
	settled bool
	text    map[string]string
	faults  []store.Problem
}

const (
	english    = "en"
	messageDir = "messages"
	maxMessage = 1 << 20 // bytes of a file
)

// OpenMessages returns the sentences of the data folder dir. language is the default; db, which may
// be nil, holds the rooms' settings.
func OpenMessages(dir string, db *store.DB, language string) *Messages {
	return &Messages{dir: dir, language: cmp.Or(language, english), settings: Store{DB: db}, read: map[string]*messageFile{}}
}

// Languages lists the built-in languages.
func Languages() []string {
	names, _ := fs.Glob(reverie.Data, messageDir+"/*.txt") // the pattern is valid
	for i, n := range names {
		names[i] = strings.TrimSuffix(filepath.Base(n), ".txt")
	}
	slices.Sort(names)
	return names
}

// Text returns the sentence key in the language of room. fill alternates placeholder names and values.
func (m *Messages) Text(ctx context.Context, room, key string, fill ...string) string {
	return m.In(m.Language(ctx, room), key, fill...)
}

// Language returns the language of room.
func (m *Messages) Language(ctx context.Context, room string) string {
	if m == nil {
		return english
	}
	if m.settings.DB != nil {
		set, err := m.settings.Choices(ctx, room)
		if language := Effective(set)[Language]; err == nil && language != Auto {
			return language
		}
	}
	return m.language
}

// In returns the sentence key in a language. {count} selects between the forms key_one and
// key_more. An unknown key is returned as it is.
func (m *Messages) In(language, key string, fill ...string) string {
	for _, l := range slices.Compact([]string{language, english}) { // the owner's, else the built-in one
		if text, ok := i18n.FindMessage(l, key, fill, m.loadFile(l).text, builtin(l).text); ok {
			return i18n.Fill(text, fill)
		}
	}
	return key // a test checks that all keys exist
}

// Problems lists the faults in the files of the data folder. A missing translation is not a fault.
func (m *Messages) Problems() []store.Problem {
	var all []store.Problem
	names, _ := filepath.Glob(filepath.Join(m.dir, messageDir, "*.txt"))
	for _, n := range names {
		all = append(all, m.loadFile(strings.TrimSuffix(filepath.Base(n), ".txt")).faults...)
	}
	if l := m.language; !slices.Contains(Languages(), l) && !m.loadFile(l).stamp.Exists() {
		all = append(all, store.Problem{File: messageName(l), Text: "is missing; what I say by myself is said in English"})
	}
	return all
}

func messageName(language string) string { return "data/" + messageDir + "/" + language + ".txt" }

var emptyFile = &messageFile{}

// loadFile returns the current file of a language. If it cannot be read, the last version is kept.
func (m *Messages) loadFile(language string) *messageFile {
	if m == nil || m.dir == "" || !languagePattern().MatchString(language) {
		return emptyFile
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.read[language]
	if known == nil {
		known = emptyFile
	}
	path := filepath.Join(m.dir, messageDir, language+".txt")
	stamp, err := store.Stat(path)
	now := time.Now() // real time, comparable to the file's
	switch {
	case err != nil || stamp.Exists() && (!stamp.Regular() || stamp.Size() > maxMessage):
		return known
	case !stamp.Exists():
		m.read[language] = emptyFile
		return emptyFile
	case known.settled && known.stamp == stamp:
		return known
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return known
	}
	f := &messageFile{} // unchanged: the built-in sentences are the same
	if string(b) != builtinSource(language) {
		f = parseMessages(messageName(language), string(b))
	}
	f.stamp, f.settled = stamp, stamp.Conclusive(now)
	m.read[language] = f
	return f
}

var (
	languagePattern    = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_-]*$`)
	placeholderPattern = lazyregexp.New(`\{[a-z_]+\}`)
)

// parseMessages parses a file of sentences. Faulty lines are skipped and reported.
func parseMessages(name, source string) *messageFile {
	f := &messageFile{text: map[string]string{}}
	if !utf8.ValidString(source) || strings.ContainsRune(source, 0) {
		f.faults = []store.Problem{{File: name,
			Text: "is not UTF-8 text; save the file as UTF-8. Until then the built-in sentences are used"}}
		return f
	}
	for i, line := range strings.Split(strings.TrimPrefix(source, "\ufeff"), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		addFault := func(format string, args ...any) {
			f.faults = append(f.faults, store.Problem{File: name, Line: i + 1, Text: fmt.Sprintf(format, args...)})
		}
		key, text, ok := i18n.ParseLine(line)
		if !ok {
			addFault("is no sentence; write key: text")
			continue
		}
		want, ok := sourceText(key)
		switch _, twice := f.text[key]; {
		case !ok:
			addFault("nothing is called %s here; en.txt has all that is", key)
		case twice:
			addFault("%s stands there twice; the first one is used", key)
		case !samePlaceholders(key, want, text):
			addFault("%s must have these places, each as it is, and no others: %q; the built-in sentence is used", key, placeholders(want))
		default:
			f.text[key] = text
		}
	}
	return f
}

// placeholders returns the placeholders of text, sorted, without duplicates.
func placeholders(text string) []string {
	found := placeholderPattern().FindAllString(text, -1)
	slices.Sort(found)
	return slices.Compact(found)
}

// samePlaceholders reports whether two texts have the same placeholders. The singular form may omit {count}.
func samePlaceholders(key, one, other string) bool {
	a, b := placeholders(one), placeholders(other)
	if strings.HasSuffix(key, i18n.One) {
		isCount := func(p string) bool { return p == "{count}" }
		a, b = slices.DeleteFunc(a, isCount), slices.DeleteFunc(b, isCount)
	}
	return slices.Equal(a, b)
}

// sourceText returns the English source of key. Languages may add a singular form that English lacks.
func sourceText(key string) (string, bool) {
	text, ok := i18n.Source()[key]
	if !ok {
		text, ok = i18n.Source()[strings.TrimSuffix(key, i18n.One)]
	}
	return text, ok
}

var builtins sync.Map // the built-in files that were needed, *messageFile by language

func builtin(language string) *messageFile {
	file, ok := builtins.Load(language)
	if !ok {
		file, _ = builtins.LoadOrStore(language, parseMessages(messageName(language), builtinSource(language)))
	}
	return file.(*messageFile)
}

// builtinSource returns the text of a built-in file, "" for other languages.
func builtinSource(language string) string {
	b, _ := fs.ReadFile(reverie.Data, messageDir+"/"+language+".txt")
	return string(b)
}

// For returns a function that translates into the language of room.
func (m *Messages) For(ctx context.Context, room string) i18n.Say {
	language := m.Language(ctx, room)
	return func(key string, fill ...string) string { return m.In(language, key, fill...) }
}

// Reason returns a reason in the language of room. An error of another program is replaced by a
// general one; the log has it.
func (m *Messages) Reason(ctx context.Context, room string, reason i18n.Text) string {
	if !reason.Translatable() {
		return m.Text(ctx, room, "why.trouble")
	}
	return reason.In(m.For(ctx, room))
}

package settings

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	reverie "reverie"
	"reverie/internal/i18n"
	"reverie/internal/store"
)

// Messages are the sentences that the program says by itself, in the language of a room. They
// stand in data/messages/LANGUAGE.txt, a line each: "key: text", where \n is a line break, {name} is
// filled in, and # begins a remark. A file is read again when it changed. What a language lacks is
// said in English, as is everything by a nil Messages.
type Messages struct {
	dir      string // the data folder; "" = the built-in files only
	language string // of a room where none is set
	settings Store

	mu   sync.Mutex
	read map[string]*messageFile // from disk, by language
}

// messageFile is one file of sentences.
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

// OpenMessages returns the sentences of the data folder dir; language is spoken where
// a room has no other, which db knows. db may be nil.
func OpenMessages(dir string, db *sql.DB, language string) *Messages {
	return &Messages{dir: dir, language: cmp.Or(language, english), settings: Store{DB: db}, read: map[string]*messageFile{}}
}

// Languages lists the languages that come with the program.
func Languages() []string {
	names, _ := fs.Glob(reverie.Data, messageDir+"/*.txt") // the pattern is good
	for i, n := range names {
		names[i] = strings.TrimSuffix(filepath.Base(n), ".txt")
	}
	slices.Sort(names)
	return names
}

// Text is the sentence called key in the language of room, filled in: fill holds the
// names of places and what belongs there, by turns.
func (m *Messages) Text(ctx context.Context, room, key string, fill ...string) string {
	return m.In(m.Language(ctx, room), key, fill...)
}

// Language is what the program speaks in room.
func (m *Messages) Language(ctx context.Context, room string) string {
	switch {
	case m == nil:
		return english
	case m.settings.DB != nil:
		if set, err := m.settings.Get(ctx, room, Language); err == nil && set != Auto {
			return set
		}
	}
	return m.language
}

// In is Text in a language. Of a sentence with two forms, key_one and key_more, {count}
// decides which is said. What is no key is said as it is.
func (m *Messages) In(language, key string, fill ...string) string {
	text, ok := m.sentence(language, key, fill)
	if !ok {
		return key // a test knows all keys that are asked for
	}
	return i18n.Fill(text, fill)
}

// sentence finds a sentence in the form that its number wants: as the owner has it, as it
// is built in, in English.
func (m *Messages) sentence(language, key string, fill []string) (string, bool) {
	for _, l := range slices.Compact([]string{language, english}) {
		if text, ok := i18n.Find(l, key, fill, m.onDisk(l).text, builtin(l).text); ok {
			return text, true
		}
	}
	return "", false
}

// Problems lists what is wrong in the files of the data folder. Sentences that are
// said in English only for want of a translation are none.
func (m *Messages) Problems() []store.Problem {
	var all []store.Problem
	names, _ := filepath.Glob(filepath.Join(m.dir, messageDir, "*.txt"))
	for _, n := range names {
		all = append(all, m.onDisk(strings.TrimSuffix(filepath.Base(n), ".txt")).faults...)
	}
	if l := m.language; !slices.Contains(Languages(), l) && !m.onDisk(l).stamp.Exists() {
		all = append(all, store.Problem{File: messageName(l), Text: "is missing; what I say by myself is said in English"})
	}
	return all
}

func messageName(language string) string { return "data/" + messageDir + "/" + language + ".txt" }

var noMessages = &messageFile{}

// onDisk is the file of a language as it is now. One that cannot be read is as it was.
func (m *Messages) onDisk(language string) *messageFile {
	if m == nil || m.dir == "" || !languageForm.MatchString(language) {
		return noMessages
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.read[language]
	if known == nil {
		known = noMessages
	}
	path := filepath.Join(m.dir, messageDir, language+".txt")
	stamp, err := store.Stat(path)
	now := time.Now() // of the machine, as the file's time is
	switch {
	case err != nil || stamp.Exists() && (!stamp.Regular() || stamp.Size() > maxMessage):
		return known
	case !stamp.Exists():
		m.read[language] = noMessages
		return noMessages
	case known.settled && known.stamp == stamp:
		return known
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return known
	}
	f := parseMessages(messageName(language), string(b))
	f.stamp, f.settled = stamp, stamp.Conclusive(now)
	m.read[language] = f
	return f
}

var (
	languageForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*$`)
	placeForm    = regexp.MustCompile(`\{[a-z_]+\}`)
)

// parseMessages reads a file of sentences. What is wrong in it is left out and noted.
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
		wrong := func(format string, args ...any) {
			f.faults = append(f.faults, store.Problem{File: name, Line: i + 1, Text: fmt.Sprintf(format, args...)})
		}
		key, text, ok := i18n.Line(line)
		if !ok {
			wrong("is no sentence; write key: text")
			continue
		}
		want, ok := original(key)
		switch _, twice := f.text[key]; {
		case !ok:
			wrong("nothing is called %s here; en.txt has all that is", key)
		case twice:
			wrong("%s stands there twice; the first one is used", key)
		case !samePlaces(key, want, text):
			wrong("%s must have these places, each as it is, and no others: %q; the built-in sentence is used", key, places(want))
		default:
			f.text[key] = text
		}
	}
	return f
}

// places are the names of what is filled in, sorted, each once.
func places(text string) []string {
	found := placeForm.FindAllString(text, -1)
	slices.Sort(found)
	return slices.Compact(found)
}

// samePlaces tells whether two texts of a sentence have the same places. The form for one may
// say the number or not.
func samePlaces(key, one, other string) bool {
	a, b := places(one), places(other)
	if strings.HasSuffix(key, i18n.One) {
		isCount := func(p string) bool { return p == "{count}" }
		a, b = slices.DeleteFunc(a, isCount), slices.DeleteFunc(b, isCount)
	}
	return slices.Equal(a, b)
}

// original is a sentence as the program means it. A language may need a form for one
// where English does not.
func original(key string) (string, bool) {
	text, ok := i18n.Source()[key]
	if !ok {
		text, ok = i18n.Source()[strings.TrimSuffix(key, i18n.One)]
	}
	return text, ok
}

// builtins are the files that come with the program, by language.
var builtins = sync.OnceValue(func() map[string]*messageFile {
	all := map[string]*messageFile{}
	for _, l := range Languages() {
		b, _ := fs.ReadFile(reverie.Data, messageDir+"/"+l+".txt") // Languages found it
		all[l] = parseMessages(messageName(l), string(b))
	}
	return all
})

func builtin(language string) *messageFile { return cmp.Or(builtins()[language], noMessages) }

// For returns Text for a room, in the language that it has now.
func (m *Messages) For(ctx context.Context, room string) i18n.Say {
	language := m.Language(ctx, room)
	return func(key string, fill ...string) string { return m.In(language, key, fill...) }
}

// Why is a reason in the language of room. What some other program said is for the log,
// and people are told so.
func (m *Messages) Why(ctx context.Context, room string, reason i18n.Text) string {
	if !reason.Translatable() {
		return m.Text(ctx, room, "why.trouble")
	}
	return reason.In(m.For(ctx, room))
}

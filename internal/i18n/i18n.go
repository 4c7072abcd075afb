// Package i18n holds sentences that people read in their own language: a key of
// data/messages/LANGUAGE.txt, and what its places are filled in with. Such a sentence is an
// error, a part of another sentence, or a value that is stored, and becomes words where
// it is shown: for people in the language of the room, for the log and the model in English.
package i18n

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"sync"
	"time"

	reverie "reverie"
)

// Say is the sentence called key in a language: fill holds the names of its places and what
// belongs there, by turns.
type Say = func(key string, fill ...string) string

// Text is a sentence that has not been said yet, as New makes it, or words that are the same
// in every language. It is stored as it is; "" says nothing.
type Text string

// New is the sentence called key. fill holds names of places and what belongs there, by
// turns: a Text, or anything else as fmt.Sprint writes it.
func New(key string, fill ...any) Text {
	list := []any{key}
	for _, f := range fill {
		if in, ok := f.(Text); ok && in.key() != "" {
			list = append(list, json.RawMessage(in))
		} else {
			list = append(list, fmt.Sprint(f))
		}
	}
	b, _ := json.Marshal(list) // strings, and lists that were written here
	return Text(b)
}

// Join says all, one after the other, with commas between them.
func Join(say Say, all []Text) string {
	said := make([]string, len(all))
	for i, t := range all {
		said[i] = t.In(say)
	}
	return strings.Join(said, ", ")
}

// Of is what err says: the sentence in it, or else its words.
func FromError(err error) Text {
	var t Text
	if errors.As(err, &t) {
		return t
	}
	return Text(err.Error())
}

// parts are the key of a sentence, and what it is filled in with. No key: t is words.
func (t Text) parts() (key string, fill []Text) {
	var list []json.RawMessage
	if !strings.HasPrefix(string(t), `["`) || json.Unmarshal([]byte(t), &list) != nil || json.Unmarshal(list[0], &key) != nil {
		return "", nil
	}
	if _, ok := Find("en", key, nil, Source()); !ok {
		return "", nil
	}
	for _, raw := range list[1:] {
		var words string
		if json.Unmarshal(raw, &words) != nil {
			words = string(raw)
		}
		fill = append(fill, Text(words))
	}
	return key, fill
}

func (t Text) key() string {
	key, _ := t.parts()
	return key
}

// Known tells whether t is a sentence, and the reason it gives at its place {why}, too, and not
// the words of another program.
func (t Text) Translatable() bool {
	key, fill := t.parts()
	for i := 0; i+1 < len(fill); i += 2 {
		if fill[i] == "why" && !fill[i+1].Translatable() {
			return false
		}
	}
	return key != ""
}

// In is t in the language of say.
func (t Text) In(say Say) string {
	key, fill := t.parts()
	if key == "" {
		return string(t)
	}
	said := make([]string, len(fill))
	for i, f := range fill {
		said[i] = f.In(say)
	}
	return say(key, said...)
}

// String is t in English.
func (t Text) String() string { return t.In(English) }

// Error is t in English.
func (t Text) Error() string { return t.String() }

// Source are the sentences of en.txt by key: what the other languages translate. The caller
// must not change it.
var Source = sync.OnceValue(func() map[string]string {
	b, _ := fs.ReadFile(reverie.Data, "messages/en.txt") // embedded, so it is there
	all := map[string]string{}
	for line := range strings.Lines(string(b)) {
		if key, text, ok := Line(strings.TrimSpace(line)); ok {
			all[key] = text
		}
	}
	return all
})

var lineForm = regexp.MustCompile(`^([a-z][a-z0-9._-]*):\s*(.+)$`)

// Line reads a line "key: text" of a file of sentences, where \n is a line break.
func Line(line string) (key, text string, ok bool) {
	found := lineForm.FindStringSubmatch(line)
	if found == nil {
		return "", "", false
	}
	return found[1], strings.ReplaceAll(found[2], `\n`, "\n"), true
}

// English says a sentence in English. What is no key is said as it is.
func English(key string, fill ...string) string {
	text, ok := Find("en", key, fill, Source())
	if !ok {
		text = key
	}
	return Fill(text, fill)
}

// Fill puts fill, names and what belongs there by turns, into the places of text.
func Fill(text string, fill []string) string {
	pairs := make([]string, len(fill)&^1)
	for i := 0; i < len(pairs); i += 2 {
		pairs[i], pairs[i+1] = "{"+fill[i]+"}", fill[i+1]
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// Endings of the keys of a sentence that says how many: of what a language says as it says
// one, and of any other number. A language that has one form for both has _more alone.
const (
	One  = "_one"
	More = "_more"
)

// Find finds the sentence called key in the form that its {count} wants, in the first of
// texts that has it.
func Find(language, key string, fill []string, texts ...map[string]string) (string, bool) {
	count := ""
	for i := 0; i+1 < len(fill); i += 2 {
		if fill[i] == "count" {
			count = fill[i+1]
			break
		}
	}
	forms := []string{key, key + More}
	if isSingular(language, count) {
		forms = []string{key + One, key, key + More}
	}
	for _, form := range forms {
		for _, all := range texts {
			text, ok := all[form]
			if one := form == key+One; ok && (!one || count == "1" || strings.Contains(text, "{count}")) {
				return text, true
			}
		}
	}
	return "", false
}

// asOne tells whether a language says a number as it says one: CLDR's cardinal rules, of
// the languages that come with the program. French does so below two, the others at 1 only;
// Japanese and Chinese have no plural, and a form for 1 only where they say it otherwise.
func isSingular(language, count string) bool {
	if language == "fr" {
		whole, _, _ := strings.Cut(count, ",")
		return whole == "0" || whole == "1"
	}
	return count == "1"
}

// Span is how long something takes, as exactly as people want to know it: in its two
// largest units, below ten seconds in tenths of them, without seconds from ten minutes on,
// in days alone from two days on. Less than nothing is nothing.
func Span(d time.Duration) Text {
	d = max(d, 0).Round(100 * time.Millisecond)
	if tenths := int(d / (100 * time.Millisecond)); tenths < 100 && tenths%10 != 0 {
		return New("time.seconds", "count", New("time.decimal", "whole", tenths/10, "tenths", tenths%10))
	}
	units := []struct {
		key  string
		size time.Duration
	}{{"time.days", 24 * time.Hour}, {"time.hours", time.Hour}, {"time.minutes", time.Minute}, {"time.seconds", time.Second}}
	switch {
	case d >= 48*time.Hour:
		d = d.Truncate(24 * time.Hour)
	case d >= 10*time.Minute:
		d = d.Truncate(time.Minute)
	}
	for len(units) > 1 && d < units[0].size {
		units = units[1:]
	}
	count := func(i int, d time.Duration) Text { return New(units[i].key, "count", int(d/units[i].size)) }
	rest := d % units[0].size
	if len(units) == 1 || rest < units[1].size {
		return count(0, d)
	}
	return New("time.two", "more", count(0, d), "less", count(1, rest))
}

// Package i18n holds translatable messages: a key of data/messages/LANGUAGE.txt with values for its
// placeholders. A Text can be an error, a value of another message, or stored. It is translated
// where it is shown: for people in the language of the room, for the log and the model into
// English.
package i18n

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"time"

	reverie "reverie"

	"reverie/internal/lazyregexp"
)

// Say translates the message key into a language; fill alternates placeholder names and values.
type Say = func(key string, fill ...string) string

// Text is a translatable message made by New, or plain words. Plain words are the same in every
// language. A Text can be stored as it is; "" is empty.
type Text string

// New makes a Text from a message key. fill alternates placeholder names and values; a value is a
// Text or is formatted by fmt.Sprint.
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

// JoinWithCommas translates all and separates them with commas.
func JoinWithCommas(say Say, all []Text) string {
	said := make([]string, len(all))
	for i, t := range all {
		said[i] = t.In(say)
	}
	return strings.Join(said, ", ")
}

// FromError returns the Text in err, or else its message.
func FromError(err error) Text {
	var t Text
	if errors.As(err, &t) {
		return t
	}
	return Text(err.Error())
}

// keyAndValues returns the key and the values of t. For plain words the key is empty.
func (t Text) keyAndValues() (key string, fill []Text) {
	var list []json.RawMessage
	if !strings.HasPrefix(string(t), `["`) || json.Unmarshal([]byte(t), &list) != nil || json.Unmarshal(list[0], &key) != nil {
		return "", nil
	}
	if _, ok := FindMessage("en", key, nil, Source()); !ok {
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
	key, _ := t.keyAndValues()
	return key
}

// Translatable reports whether t is a message of this program, not text of another. Its value for
// {why} must be one, too.
func (t Text) Translatable() bool {
	key, fill := t.keyAndValues()
	for i := 0; i+1 < len(fill); i += 2 {
		if fill[i] == "why" && !fill[i+1].Translatable() {
			return false
		}
	}
	return key != ""
}

// In translates t with say.
func (t Text) In(say Say) string {
	key, fill := t.keyAndValues()
	if key == "" {
		return string(t)
	}
	said := make([]string, len(fill))
	for i, f := range fill {
		said[i] = f.In(say)
	}
	return say(key, said...)
}

// String translates t into English.
func (t Text) String() string { return t.In(English) }

// Error translates t into English.
func (t Text) Error() string { return t.String() }

// Source returns the messages of en.txt by key, which other languages translate. The caller must
// not change it.
var Source = sync.OnceValue(func() map[string]string {
	b, _ := fs.ReadFile(reverie.Data, "messages/en.txt") // embedded, so it cannot fail
	all := map[string]string{}
	for line := range strings.Lines(string(b)) {
		if key, text, ok := ParseLine(strings.TrimSpace(line)); ok {
			all[key] = text
		}
	}
	return all
})

var lineForm = lazyregexp.New(`^([a-z][a-z0-9._-]*):\s*(.+)$`)

// ParseLine parses a line "key: text" of a message file, in which \n is a line break.
func ParseLine(line string) (key, text string, ok bool) {
	found := lineForm().FindStringSubmatch(line)
	if found == nil {
		return "", "", false
	}
	return found[1], strings.ReplaceAll(found[2], `\n`, "\n"), true
}

// English translates key into English. An unknown key is returned as it is.
func English(key string, fill ...string) string {
	text, ok := FindMessage("en", key, fill, Source())
	if !ok {
		text = key
	}
	return Fill(text, fill)
}

// Fill replaces the placeholders of text; fill alternates names and values.
func Fill(text string, fill []string) string {
	pairs := make([]string, len(fill)&^1)
	for i := 0; i < len(pairs); i += 2 {
		pairs[i], pairs[i+1] = "{"+fill[i]+"}", fill[i+1]
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// One and More are key suffixes for the singular and plural form. They apply to a message with a
// {count}. Languages without plural forms have only _more.
const (
	One  = "_one"
	More = "_more"
)

// FindMessage returns the message key from the first of texts that has it. It takes the plural form
// for the message's {count}. A singular form without {count} is only used for 1.
func FindMessage(language, key string, fill []string, texts ...map[string]string) (string, bool) {
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

// isSingular reports whether count takes the singular form. It uses CLDR's cardinal rules for the
// supported languages. French uses the singular below two, the others for 1 only. Japanese and
// Chinese have no plural; they have a form for 1 only where it differs.
func isSingular(language, count string) bool {
	if language == "fr" {
		whole, _, _ := strings.Cut(count, ",")
		return whole == "0" || whole == "1"
	}
	return count == "1"
}

// Span formats a duration in its two largest units. Below ten seconds it shows tenths, from ten
// minutes on no seconds, and from two days on only days. A negative duration is zero.
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

// Sentences joins non-empty sentences. After Chinese and Japanese punctuation it inserts no space.
func Sentences(each ...string) string {
	all := ""
	for _, s := range each {
		if s != "" && all != "" && !strings.HasSuffix(all, "。") && !strings.HasSuffix(all, "？") && !strings.HasSuffix(all, "！") {
			all += " "
		}
		all += s
	}
	return all
}

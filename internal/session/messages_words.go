package session

import (
	"cmp"
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"reverie/internal/llm"
	"reverie/internal/task"
)

// Endings of the keys of a sentence that says how many: of what a language says as it says
// one, and of any other number. A language that has one form for both has _more alone.
const (
	formOne  = "_one"
	formMore = "_more"
)

// forms are the keys under which a sentence may stand, the best first.
func forms(language, key, count string) []string {
	if asOne(language, count) {
		return []string{key + formOne, key, key + formMore}
	}
	return []string{key, key + formMore}
}

// counted is the number that a sentence is filled in with; "" = none.
func counted(fill []string) string {
	for i := 0; i+1 < len(fill); i += 2 {
		if fill[i] == "count" {
			return fill[i+1]
		}
	}
	return ""
}

// asOne tells whether a language says a number as it says one: CLDR's cardinal rules, of
// the languages that come with the program. French does so below two, the others at 1 only;
// Japanese and Chinese have no plural, and a form for 1 only where they say it otherwise.
func asOne(language, count string) bool {
	if language == "fr" {
		whole, _, _ := strings.Cut(count, ",")
		return whole == "0" || whole == "1"
	}
	return count == "1"
}

// singular tells of a form for one that it is good for nothing but 1: it has no place for
// the number.
func singular(text string) bool { return !strings.Contains(text, "{count}") }

// For returns Text for a room, in the language that it has now.
func (m *Messages) For(ctx context.Context, room string) func(key string, fill ...string) string {
	language := m.Language(ctx, room)
	return func(key string, fill ...string) string { return m.In(language, key, fill...) }
}

// found are the areas of sentences that are said in English elsewhere, in the log or to the
// model, or stand in the database, before a person is to read them too.
var found = []string{"why.", "state."}

// within are the places that may hold another such sentence.
var within = []string{"why", "state", "who", "what"}

// pattern finds an English sentence, and what was filled in.
type pattern struct {
	key    string
	form   *regexp.Regexp
	names  []string
	weight int // characters that are no place
}

// patterns are those of all sentences that can be found, the surest first.
var patterns = sync.OnceValue(func() []pattern {
	var all []pattern
	texts := maps.Clone(builtinEnglish())
	maps.DeleteFunc(texts, func(key, _ string) bool {
		return !slices.ContainsFunc(found, func(area string) bool { return strings.HasPrefix(key, area) })
	})
	for _, k := range llm.Kinds() { // why no model answered is kept as it was said
		texts[troubleKey(k)] = troubleText(k)
	}
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		text, p := texts[key], pattern{key: key}
		form, last := `(?s)^`, 0
		for _, at := range placeForm.FindAllStringIndex(text, -1) {
			name := text[at[0]+1 : at[1]-1]
			p.names = append(p.names, name)
			form += regexp.QuoteMeta(text[last:at[0]])
			switch name {
			case "count":
				form += `(\d+)`
			case "id", "other", "state", "to", "before", "character":
				form += `(\S+)`
			default:
				form += `(.+?)`
			}
			p.weight += at[0] - last
			last = at[1]
		}
		p.weight += len(text) - last
		p.form = regexp.MustCompile(form + regexp.QuoteMeta(text[last:]) + `$`)
		all = append(all, p)
	}
	slices.SortStableFunc(all, func(a, b pattern) int { return cmp.Compare(b.weight, a.weight) })
	return all
})

// Words says in a language what the program says elsewhere in English: why something did
// not work, how something stands. What is not known stays as it is.
func (m *Messages) Words(language, english string) string {
	text, _ := m.known(language, english, false)
	return text
}

// known is Words, and whether it is known; whole asks for every {why} in it to be known, too.
func (m *Messages) known(language, english string, whole bool) (string, bool) {
	if text, ok := m.word(language, english, whole); ok {
		return text, true
	}
	parts := strings.Split(english, ", ")
	for i, p := range parts {
		text, ok := m.word(language, p, whole)
		if !ok {
			return english, false
		}
		parts[i] = text
	}
	return strings.Join(parts, ", "), true
}

func (m *Messages) word(language, english string, whole bool) (string, bool) {
	for _, p := range patterns() {
		got := p.form.FindStringSubmatch(english)
		if got == nil {
			continue
		}
		var fill []string
		for i, name := range p.names {
			text := got[i+1]
			if slices.Contains(within, name) {
				var ok bool
				if text, ok = m.known(language, text, whole); whole && name == "why" && !ok {
					return english, false
				}
			}
			if long, err := time.ParseDuration(text); name == "time" && err == nil {
				text = task.SpanIn(func(key string, fill ...string) string { return m.In(language, key, fill...) }, long)
			}
			fill = append(fill, name, text)
		}
		return m.In(language, p.key, fill...), true
	}
	return english, false
}

// words is Words in the language of the room.
func (s *Session) words(ctx context.Context, english string) string {
	return s.cfg.Messages.Words(s.cfg.Messages.Language(ctx, s.room), english)
}

// Why is Words for a reason. One that is not known is what some program said: that is for
// the log, and people are told so.
func (m *Messages) Why(language, english string) string {
	text, ok := m.known(language, english, true)
	if !ok {
		return m.In(language, "why.trouble")
	}
	return text
}

// why is Why in the language of the room.
func (s *Session) why(ctx context.Context, english string) string {
	return s.cfg.Messages.Why(s.cfg.Messages.Language(ctx, s.room), english)
}

// sentences puts sentences one after the other, without those that are empty. Where the one
// before ends as in Chinese and Japanese no blank belongs between two.
func sentences(each ...string) string {
	all := ""
	for _, s := range each {
		if s != "" && all != "" && !strings.HasSuffix(all, "。") && !strings.HasSuffix(all, "？") && !strings.HasSuffix(all, "！") {
			all += " "
		}
		all += s
	}
	return all
}

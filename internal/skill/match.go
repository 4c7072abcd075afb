package skill

import (
	"cmp"
	"slices"
	"strings"

	"golang.org/x/text/cases"

	words "reverie/internal/text"
)

// Match returns the skills of which a trigger occurs in text, in upper or lower
// case: the highest priority first, then by name, at most most of them. A
// trigger must stand by itself, not within a longer word; but in scripts that
// put no blanks between words it may stand anywhere.
func Match(skills []Skill, text string, most int) []Skill {
	text = fold(text)
	var found []Skill
	for _, s := range skills {
		said := func(trigger string) bool { return words.WholeWords(text, trigger) }
		if s.triggers != "" && slices.ContainsFunc(strings.Split(s.triggers, "\n"), said) {
			found = append(found, s)
		}
	}
	slices.SortFunc(found, func(a, b Skill) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), strings.Compare(a.Name, b.Name))
	})
	return found[:min(len(found), most)]
}

// Said returns the first of the phrases that occurs in text, as Match compares them;
// "" = none.
func Said(text string, phrases []string) string {
	text = fold(text)
	for _, p := range phrases {
		if words.WholeWords(text, fold(p)) {
			return p
		}
	}
	return ""
}

// fold makes texts that differ in case or in their blanks the same.
func fold(text string) string {
	return cases.Fold().String(strings.Join(strings.Fields(text), " "))
}

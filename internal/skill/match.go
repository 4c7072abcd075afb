package skill

import (
	"cmp"
	"slices"
	"strings"

	"golang.org/x/text/cases"

	words "reverie/internal/text"
)

// Match returns the skills with a trigger that occurs in text, ignoring case. They are sorted by
// priority and name, at most most. A trigger must be a whole word, except in scripts without blanks
// between words.
func Match(skills []Skill, text string, most int) []Skill {
	text = fold(text)
	var found []Skill
	for _, s := range skills {
		occurs := func(trigger string) bool { return words.WholeWords(text, trigger) }
		if s.triggers != "" && slices.ContainsFunc(strings.Split(s.triggers, "\n"), occurs) {
			found = append(found, s)
		}
	}
	slices.SortFunc(found, func(a, b Skill) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), strings.Compare(a.Name, b.Name))
	})
	return found[:min(len(found), most)]
}

// FindPhrase returns the first of phrases that occurs in text, or "". The rules of Match apply.
func FindPhrase(text string, phrases []string) string {
	text = fold(text)
	for _, p := range phrases {
		if words.WholeWords(text, fold(p)) {
			return p
		}
	}
	return ""
}

// fold normalises case and blanks for comparing.
func fold(text string) string {
	return cases.Fold().String(strings.Join(strings.Fields(text), " "))
}

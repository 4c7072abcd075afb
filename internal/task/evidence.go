package task

import (
	"errors"
	"slices"
	"strings"
	"unicode"
)

// saysDone are words that say no more than that a task is completed.
var saysDone = strings.Fields("the this that task is was has been it successfully done complete completed finished ok yes")

// Evidence refuses a reason that does not say what shows that the task content is completed.
func Evidence(reason, content string) error {
	known := append(words(content), saysDone...)
	if slices.ContainsFunc(words(reason), func(w string) bool { return !slices.Contains(known, w) }) {
		return nil
	}
	return errors.New("the reason says no more than that it is done: give what shows it, in a sentence, " +
		`for example "Anna wrote that the plants are watered"`)
}

// words are the words of text, in lower case.
func words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r)
	})
}

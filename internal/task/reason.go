package task

import (
	"errors"
	"slices"
	"strings"
	"unicode"
)

// fillerWords say nothing about how a task was completed.
var fillerWords = strings.Fields("the this that task is was has been it successfully done complete completed finished ok yes")

// CheckReason returns an error if reason has no word beyond content and fillers. It asks for evidence.
func CheckReason(reason, content string) error {
	allowed := append(words(content), fillerWords...)
	if slices.ContainsFunc(words(reason), func(w string) bool { return !slices.Contains(allowed, w) }) {
		return nil
	}
	return errors.New("the reason says no more than that it is done: give what shows it, in a sentence, " +
		`for example "Anna wrote that the plants are watered"`)
}

// words splits text into lower-case words.
func words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r)
	})
}

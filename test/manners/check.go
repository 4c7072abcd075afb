package main

import (
	"regexp"
	"strings"
	"unicode"

	"reverie/internal/text"
)

// fields are the fields of style that are judged.
var fields = []string{"length", "emoji", "address", "name", "language", "phrase"}

var sentenceEnd = regexp.MustCompile(`[.!?]+(?:\s|$)`)

// check reports whether an answer keeps the value of a field.
func check(answer, field, value string) bool {
	switch field {
	case "length":
		sentences, paragraphs := len(sentenceEnd.FindAllString(answer, -1)), 1+strings.Count(answer, "\n\n")
		if value == "short" {
			return sentences <= 3
		}
		return sentences <= 7 && paragraphs <= 2
	case "emoji":
		n := 0
		for _, r := range answer {
			if unicode.Is(unicode.So, r) {
				n++
			}
		}
		return n == 0 || value == "few" && n == 1
	case "address":
		l := languageOf(answer)
		if l == nil || l.saysFormal == nil {
			return true // the field language tells
		}
		wants, other := l.saysFamiliar, l.saysFormal
		if value == "formal" {
			wants, other = other, wants
		}
		return wants.MatchString(answer) && !other.MatchString(answer)
	case "language":
		l := languageOf(answer)
		return l != nil && l.code == value
	case "phrase":
		return !strings.Contains(strings.ToLower(answer), value)
	case "name":
		return strings.Contains(answer, value)
	}
	panic(field)
}

// languageOf returns the language of a text; nil = unknown.
func languageOf(s string) *language {
	found := text.Detect(text.Tokens(s))
	for _, l := range languages {
		if len(found) == 1 && found[0].Code() == l.code {
			return l
		}
	}
	return nil
}

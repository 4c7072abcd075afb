package main

import (
	"fmt"
	"maps"
	"strings"

	"reverie/internal/voice"
)

// turns of a whole talk, and how many of the last are judged.
const (
	turns  = 100
	judged = 20
)

// talk is a scripted conversation.
type talk struct {
	name     string
	language *language
	formal   bool           // how the person addresses the assistant
	style    voice.Style    // the owner's, from the configuration
	wishes   map[int]string // in words, by turn; they go before the message of the turn
	paste    int            // a long text comes with each so-manieth message
	open     bool           // there is an open task

	// What must hold in the end, besides the persona's own.
	answers *language // the language of answers; nil = the person's
	phrase  string    // one that the person does not want to read
}

var talks = []talk{
	{name: "kitchen", language: english, style: voice.Style{"address": "Captain"}, paste: 9, phrase: "absolutely",
		wishes: map[int]string{3: "Please don't say 'absolutely'.", 4: "Don't say 'absolutely'."}},
	{name: "garden", language: german, paste: 9, phrase: "absolut",
		wishes: map[int]string{5: "Sag bitte nicht mehr „absolut“.", 7: "Sag nicht „absolut“."}},
	{name: "office", language: german, formal: true, paste: 7, phrase: "selbstverständlich",
		wishes: map[int]string{4: "Sagen Sie bitte nicht mehr „selbstverständlich“.", 6: "Sagen Sie nicht „selbstverständlich“."}},
	{name: "travel", language: french, paste: 11, phrase: "absolument", wishes: map[int]string{3: "Ne dis plus « absolument ».", 5: "Ne dis plus « absolument »."}},
	{name: "notary", language: french, formal: true, paste: 6},
	{name: "flat", language: spanish, paste: 10, phrase: "absolutamente", wishes: map[int]string{2: "No digas «absolutamente».", 3: "No digas «absolutamente»."}},
	{name: "doctor", language: spanish, formal: true, paste: 8, answers: english, wishes: map[int]string{5: "Háblame en inglés.", 6: "En inglés por favor."}},
	{name: "music", language: italian, paste: 13, phrase: "assolutamente", wishes: map[int]string{4: "Non dire più «assolutamente».", 5: "Non dire più «assolutamente»."}},
	{name: "tax", language: italian, formal: true, paste: 5},
	{name: "exchange", language: german, style: voice.Style{"language": "English"}, answers: english, paste: 9},
	{name: "workshop", language: english, style: voice.Style{"language": "Deutsch", "address": "Captain"}, answers: german, paste: 9},
	{name: "novel", language: german, formal: true, paste: 4, open: true, phrase: "absolut",
		wishes: map[int]string{8: "Sagen Sie nicht „absolut“.", 9: "Sagen Sie bitte nicht mehr „absolut“."}},
}

// says returns the person's message in a turn from 1. No two of a talk are the same.
func (t *talk) says(turn int) string {
	l := t.language
	questions := l.familiar
	if t.formal {
		questions = l.formal
	}
	topic := l.topics[turn%len(l.topics)]
	parts := []string{t.wishes[turn]}
	if turn%5 == 3 {
		parts = append(parts, fmt.Sprintf(l.aside[turn/5%len(l.aside)], topic))
	}
	parts = append(parts, fmt.Sprintf(questions[turn/len(l.topics)%len(questions)], topic))
	if turn > 12 && turn%t.paste == 0 {
		parts = append(parts, strings.Repeat(l.pasted, 6+turn%7))
	}
	if turn > len(l.topics)*len(questions) {
		parts = append(parts, fmt.Sprint("(", turn, ")"))
	}
	return strings.TrimSpace(strings.Join(parts, "\n"))
}

// wanted is the style that must hold, by field; see check.
type wanted map[string]string

// ofPersona is the style of the personas, apart from what the program makes of it.
var ofPersona = map[string]wanted{
	"balanced":     {"length": "short", "emoji": "few"},
	"creative":     {"length": "medium", "emoji": "few", "address": "familiar"},
	"minimal":      {"length": "short", "emoji": "none"},
	"professional": {"length": "medium", "emoji": "none", "address": "formal"},
	"supportive":   {"length": "medium", "emoji": "few"},
}

// wants returns what must hold at the end of the talk with a persona.
func (t *talk) wants(persona string) wanted {
	w := wanted{"language": t.language.code}
	if t.answers != nil {
		w["language"] = t.answers.code
	}
	if t.language != english { // it shows how the person addresses the assistant
		w["address"] = map[bool]string{false: "familiar", true: "formal"}[t.formal]
	}
	maps.Copy(w, ofPersona[persona])
	if w["language"] == "en" {
		delete(w, "address") // has one form
	}
	if t.phrase != "" {
		w["phrase"] = t.phrase
	}
	if name := t.style["address"]; name != "" {
		w["name"] = name
	}
	return w
}

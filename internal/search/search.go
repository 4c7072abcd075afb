// Package search finds documents and past messages by words and by meaning.
//
// It reads documents through the view document and identifies them by number; their texts belong to
// package memory. Past messages are its own (past_message). Package text turns texts into terms. FTS
// is the full-text index in bot.db; rank.go has the features and their weights. A text is also
// found by its neighbours in the conversation and by its date.
//
// Scopes are part of the row numbers, so rows of other scopes are not read. At most 400 documents
// of a scope are scored for a query.
//
// Hybrid adds vectors (package vector), which a server may compare (package qdrant). Results below
// the floor are dropped, so that small talk finds nothing.
package search

import (
	"cmp"
	"time"

	"reverie/internal/trust"
)

// Query is a search for documents and past messages.
type Query struct {
	Text    string          // a question or message in natural language
	Context string          // the messages before it; their words have less weight
	Scopes  []trust.Readers // the scopes to search; without one nothing is found

	Now time.Time // resolves "yesterday"; zero = relative dates are ignored

	K    int // maximum number of hits; 0 = DefaultK
	Docs int // documents that are returned even after the K best hits
	// Floor is the share of the query (0–1) that the best hit must cover, else nothing is found; see DefaultFloor. Other hits must
	// cover a third of it, unless they are near in meaning or the query collects.
	Floor float64

	Seen   Seen // the messages that the asker sees anyway
	Turns  bool // also search past messages
	Wishes bool // only standing wishes, see wishes.go
	Past   bool // also find superseded and archived documents, ranked lower
}

// Seen is the end of a conversation: its messages from the Seq From on. They take none of the K places; K of them are
// returned in addition.
type Seen struct {
	Conversation string // "" = none
	From         int
}

// Has reports whether t is one of the messages.
func (s Seen) Has(t Turn) bool {
	return s.Conversation != "" && t.Conversation == s.Conversation && t.Seq >= s.From
}

// Places returns a function that is called with each hit, the best first, and reports whether q has a place for it. spare
// places are added for documents, because the caller may drop duplicates.
func (q Query) Places(spare int) func(isDoc, isSeen bool) bool {
	k := cmp.Or(q.K, DefaultK)
	unseen, seen, docs := k, k, q.Docs+spare
	return func(isDoc, isSeen bool) bool {
		places := &unseen
		switch {
		case isSeen:
			places = &seen
		case unseen <= 0 && isDoc:
			places = &docs
		}
		*places--
		return *places >= 0
	}
}

// DefaultFloor keeps small talk from finding memories. Below it, a hit has next to nothing of the
// query: one of four rare words is not enough.
const DefaultFloor = .3

// Hit is a document or past message that was found.
type Hit struct {
	Doc     int64     `json:"-"`                // document number; 0 = a message
	Turn    *Turn     `json:"turn,omitempty"`   // a past message; nil = a document
	Around  []Turn    `json:"around,omitempty"` // the messages before and after Turn
	At      time.Time `json:"-"`                // when it was last said
	Score   float64   `json:"score"`            // comparable within one result list only
	Covered float64   `json:"covered"`          // share of the query that it and its neighbours cover by words; 1 also by meaning
	Near    bool      `json:"near,omitempty"`   // near in meaning to the query or a better hit: needs no common word
	Seen    bool      `json:"-"`                // one of Query.Seen
}

// Turn is one message of a conversation, stored so that it can be found again.
type Turn struct {
	Scope        trust.Readers `json:"scope"`
	Event        string        `json:"event,omitempty"` // unique within the scope
	Sender       string        `json:"sender,omitempty"`
	At           time.Time     `json:"at"`
	Conversation string        `json:"conversation,omitempty"`
	Seq          int           `json:"seq,omitempty"`
	Text         string        `json:"text"`

	Integrity trust.Integrity `json:"integrity"` // that of the least trusted source of Text
}

// DefaultK is the maximum number of hits for a query without K.
const DefaultK = 10

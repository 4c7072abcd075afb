package search

import (
	"time"

	"reverie/internal/trust"
)

// Query asks an index for what is known.
type Query struct {
	Text    string          // a question or message in anybody's words
	Context string          // what was said before it; its words count a little, or for a question that points back
	Scopes  []trust.Readers // whose memory is searched; no scope finds nothing

	Now time.Time // what yesterday is counted from; zero = such words mean nothing

	K     int     // at most so many hits; 0 = 10
	Floor float64 // the share of the question (0–1) that the best hit must cover, or there are none; see DefaultFloor

	Turns bool // past messages are searched, beside the entries
	Past  bool // entries that no longer hold (superseded, archived) are found too, further down
}

// DefaultFloor keeps small talk from bringing up memories: below it, what was found
// has next to nothing of what the message is about: of four rare words one is not enough.
const DefaultFloor = .22

// Hit is a document or a past message that was found.
type Hit struct {
	Doc     int64   `json:"-"`                // the number of the document; 0 = a message
	Turn    *Turn   `json:"turn,omitempty"`   // a past message; nil = a document
	Around  []Turn  `json:"around,omitempty"` // the messages before and after Turn
	Score   float64 `json:"score"`            // comparable within one answer only
	Covered float64 `json:"covered"`          // share of what the question is about that it and its neighbours cover
	Near    bool    `json:"near,omitempty"`   // its meaning is so near that it needs no word of the question
}

// Turn is one message of a conversation, kept so that it can be found again.
type Turn struct {
	Scope        trust.Readers `json:"scope"`
	Event        string        `json:"event,omitempty"` // unique within the scope
	Sender       string        `json:"sender,omitempty"`
	At           time.Time     `json:"at"`
	Conversation string        `json:"conversation,omitempty"`
	Seq          int           `json:"seq,omitempty"`
	Text         string        `json:"text"`

	Integrity trust.Integrity `json:"integrity"` // the least trusted hand that Text went through
}

// DefaultK is how many hits a question gets that sets no bound.
const DefaultK = 10

package memory

import (
	"context"
	"slices"
	"time"

	"reverie/internal/llm"
	"reverie/internal/trust"
)

// Query asks an index for what is known.
type Query struct {
	Text    string  // a question or message in anybody's words
	Context string  // what was said before it; its words count a little, or for a question that points back
	Scopes  []Scope // whose memory is searched; no scope finds nothing

	Now           time.Time // what yesterday is counted from; zero = such words mean nothing
	After, Before time.Time // only what was said in this time; zero = no bound

	K      int     // at most so many hits; 0 = 10, or no bound with Tokens
	Tokens int     // texts of about so many tokens together; 0 = no bound
	Floor  float64 // the share of the question (0–1) that the best hit must cover, or there are none; see DefaultFloor

	Turns bool // past messages are searched, beside the entries
	Past  bool // entries that no longer hold (superseded, archived) are found too, further down
}

// DefaultFloor keeps small talk from bringing up memories: below it, what was found
// has next to nothing of what the message is about: of four rare words one is not enough.
const DefaultFloor = .22

// Hit is something found.
type Hit struct {
	Entry   Entry   `json:"entry,omitzero"`
	Turn    *Turn   `json:"turn,omitempty"`   // set for a past message; Entry is zero then
	Around  []Turn  `json:"around,omitempty"` // the messages before and after Turn
	Shown   string  `json:"shown,omitempty"`  // the text that prompts and files show for Entry, if that is another one's
	Score   float64 `json:"score"`            // comparable within one answer only
	Covered float64 `json:"covered"`          // share of what the question is about that it and its neighbours cover
	Near    bool    `json:"near,omitempty"`   // its meaning is so near that it needs no word of the question
}

// Integrity is the least trusted hand among those of what Line shows of h.
func (h Hit) Integrity() trust.Integrity {
	if h.Turn == nil {
		return h.Entry.Integrity
	}
	least := h.Turn.Integrity
	for _, t := range h.Around {
		least = min(least, t.Integrity)
	}
	return least
}

// Text is what was found, as a person wrote it.
func (h Hit) Text() string {
	if h.Turn != nil {
		return h.Turn.Text
	}
	return h.Entry.Text
}

// Turn is one message of a conversation, kept so that it can be found again.
type Turn struct {
	Scope        Scope     `json:"scope"`
	Event        string    `json:"event,omitempty"` // unique within the scope
	Sender       string    `json:"sender,omitempty"`
	At           time.Time `json:"at"`
	Conversation string    `json:"conversation,omitempty"`
	Seq          int       `json:"seq,omitempty"`
	Text         string    `json:"text"`

	Integrity trust.Integrity `json:"integrity"` // the least trusted hand that Text went through
}

// index finds entries. Every member of the table answers the same questions
// with the same scopes, and is made again from the truth at any time.
type index interface {
	// Search returns the best hits first. Any text is a valid question.
	Search(ctx context.Context, q Query) ([]Hit, error)
	// Neighbours are the ids of up to k active texts near to the active text id, in its scope.
	Neighbours(ctx context.Context, id string, k int) ([]string, error)
}

// defaultK is how many hits a question gets that sets no bound.
const defaultK = 10

// fill takes hits from the best on until q has enough. A text that no longer
// fits is passed over: a shorter one may.
func fill(q Query, hits []Hit) []Hit {
	k, left := q.K, q.Tokens
	if k <= 0 && left <= 0 {
		k = defaultK
	}
	out := hits[:0:0]
	for _, h := range eachOnce(hits) {
		if k > 0 && len(out) >= k {
			break
		}
		if q.Tokens > 0 {
			cost := h.tokens()
			if cost > left {
				continue
			}
			left -= cost
		}
		out = append(out, h)
	}
	return out
}

// eachOnce leaves out of hits what means the same as a better one.
func eachOnce(hits []Hit) []Hit {
	said := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(hits), func(h Hit) bool {
		same := h.Entry.ID
		if h.Shown != "" {
			same = h.Entry.By
		}
		was := said[same]
		said[same] = same != ""
		return was
	})
}

// tokens is about what h costs in a prompt, its date and source included.
func (h Hit) tokens() int {
	const frame = 8
	n := llm.EstimateTokens(h.Text()) + frame
	for _, t := range h.Around {
		n += llm.EstimateTokens(t.Text) + frame
	}
	return n
}

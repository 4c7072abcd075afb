package prompt

import (
	"hash/fnv"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/skill"
	words "reverie/internal/text"
)

// counters is what happened in a room, in numbers. A message is counted once, when it
// is first seen; what a conversation loses after that, to a summary or to a small
// window, stays counted. Of what was said nothing is kept.
type counters struct {
	Conversation int64 `json:"conversation"`
	Through      int64 `json:"through"` // the newest message counted
	Made         int64 `json:"made"`    // the newest message that notes were chosen for

	Turn        int `json:"turn"`         // of the room, over all its conversations; a turn is what a person writes until there is an answer
	Turns       int `json:"turns"`        // in this conversation; so is all that follows
	SinceTool   int `json:"since_tool"`   // turns since a tool did something
	SinceMemory int `json:"since_memory"` // turns since something was remembered
	SinceTask   int `json:"since_task"`   // turns since the tasks were looked at or changed
	Personal    int `json:"personal"`     // turns since then in which the person spoke of themself
	Long        int `json:"long"`         // answers in a row that were long, to short messages
	Compactions int `json:"compactions"`
	Used        int `json:"used"` // percent of the window, by the last request

	// Of the turn:
	Heard      bool              `json:"heard"`      // it has no answer yet, not even a tool call
	Event      bool              `json:"event"`      // the program began it, not a person
	Asked      bool              `json:"asked"`      // to keep something
	Personally bool              `json:"personally"` // the person spoke of themself
	Size       int               `json:"size"`       // characters of the person's messages
	Acted      bool              `json:"acted"`      // a tool did something
	Promised   bool              `json:"promised"`   // of the one before: the answer said that something was kept, and no tool did anything
	Rounds     int               `json:"rounds"`     // times that tools were called
	Errors     int               `json:"errors"`     // failed calls in a row
	Same       int               `json:"same"`       // times in a row that the last call was made
	Again      int               `json:"again"`      // times that a call of the last round was made in the turn
	Last       uint64            `json:"last"`       // hash of the last call
	Seen       map[uint64]int    `json:"seen"`       // times that calls were made, by their hash
	Open       map[string]string `json:"open"`       // tools of the calls of the last round without a result, by the call
	Notes      []note            `json:"notes"`      // in force

	Marks map[string]mark `json:"marks"` // when a rule came last
}

// mark says when a rule came.
type mark struct {
	Turn  int `json:"turn"`
	Round int `json:"round"`
	Once  int `json:"once,omitempty"`
}

// What makes an answer too long for what was asked, in characters.
const (
	longAnswer   = 1500
	shortMessage = 200
)

func byPerson(m *history.Message) bool { return m.Role == llm.User && m.Sender != "" }
func byTool(m *history.Message) bool   { return m.Role == llm.Tool }

// clone returns a copy that shares nothing with c; of nil, that of a room where
// nothing has happened.
func (c *counters) clone() *counters {
	var next counters
	if c != nil {
		next = *c
	}
	next.Seen, next.Open, next.Marks = maps.Clone(next.Seen), maps.Clone(next.Open), maps.Clone(next.Marks)
	next.Notes = slices.Clone(next.Notes)
	if next.Marks == nil {
		next.Marks = map[string]mark{}
	}
	return &next
}

// equal reports whether c, which is a clone, is as other.
func (c *counters) equal(other *counters) bool {
	if other == nil || other.Marks == nil {
		other = other.clone()
	}
	return reflect.DeepEqual(c, other)
}

// count counts the messages of the room's conversation that are not counted yet.
func (c *counters) count(past []history.Message) {
	n := len(past)
	if n == 0 {
		return
	}
	newest := &past[n-1]
	switch {
	case newest.Conversation != c.Conversation:
		c.begin(newest.Conversation)
	case newest.ID < c.Through:
		c.takeBack(newest)
	}
	from, _ := slices.BinarySearchFunc(past, c.Through+1, func(m history.Message, id int64) int { return int(m.ID - id) })
	for i := from; i < n; i++ {
		c.one(&past[i])
	}
	c.Through = newest.ID
}

// begin begins a conversation.
func (c *counters) begin(conversation int64) {
	marks := c.Marks
	maps.DeleteFunc(marks, func(name string, _ mark) bool {
		i := rank(name)
		return i < 0 || rules[i].once != nil || rules[i].phase == inLoop
	})
	*c = counters{Conversation: conversation, Turn: c.Turn, Made: c.Made, Marks: marks}
}

// takeBack begins the turn's answer anew: what came after its newest message is no
// longer in the conversation. What tools did stays done.
func (c *counters) takeBack(newest *history.Message) {
	for _, n := range c.Notes {
		if n.Message > newest.ID {
			delete(c.Marks, n.Rule)
		}
	}
	c.Notes = slices.DeleteFunc(c.Notes, func(n note) bool { return n.Message > newest.ID })
	c.newLoop()
	c.Heard = byPerson(newest)
	c.Event = newest.Role == llm.User && !c.Heard
}

// newLoop begins the rounds of a turn.
func (c *counters) newLoop() {
	maps.DeleteFunc(c.Marks, func(name string, _ mark) bool { i := rank(name); return i < 0 || rules[i].phase == inLoop })
	c.Rounds, c.Errors, c.Same, c.Again, c.Last, c.Seen, c.Open, c.Acted = 0, 0, 0, 0, 0, nil, nil, false
}

func (c *counters) one(m *history.Message) {
	switch {
	case byPerson(m):
		c.heard(m)
	case m.Role == llm.User:
		c.newLoop()
		c.Event, c.Heard, c.Notes = true, false, nil
	case byTool(m):
		c.result(m)
	case m.Role == llm.Assistant && len(m.Calls) > 0:
		c.called(m)
	case m.Role == llm.Assistant:
		c.answered(m)
	}
}

func (c *counters) heard(m *history.Message) {
	if !c.Heard || c.Event {
		c.newLoop()
		c.Heard, c.Event, c.Asked, c.Personally, c.Size, c.Notes = true, false, false, false, 0, nil
		c.Turn++
		c.Turns++
		c.SinceTool++
		c.SinceMemory++
		c.SinceTask++
	}
	c.Size += utf8.RuneCountInString(m.Text)
	c.Asked = c.Asked || asksToKeep(m.Text)
	if !c.Personally && skill.Said(m.Text, personal) != "" {
		c.Personally = true
		c.Personal++
	}
}

func (c *counters) called(m *history.Message) {
	c.Heard = false
	c.Rounds++
	c.Again, c.Open = 0, map[string]string{}
	if c.Seen == nil {
		c.Seen = map[uint64]int{}
	}
	for _, call := range m.Calls {
		h := fnv.New64a()
		h.Write([]byte(call.Name + "\n" + strings.TrimSpace(call.Arguments)))
		id := h.Sum64()
		if id != c.Last {
			c.Same = 0
		}
		c.Same++
		c.Seen[id]++
		c.Last, c.Again = id, max(c.Again, c.Seen[id])
		c.Open[call.ID] = call.Name
	}
}

func (c *counters) result(m *history.Message) {
	name, open := c.Open[m.CallID]
	if !open {
		return
	}
	delete(c.Open, m.CallID)
	if m.Failed {
		c.Errors++
		return
	}
	c.Errors, c.Acted, c.SinceTool = 0, true, 0
	switch name {
	case "append_memory":
		c.SinceMemory, c.Personal = 0, 0
	case "task":
		c.SinceTask = 0
	}
}

func (c *counters) answered(m *history.Message) {
	c.Heard = false
	if c.Event {
		return
	}
	c.Promised = !c.Acted && skill.Said(m.Text, promises) != ""
	if c.Size < shortMessage && utf8.RuneCountInString(m.Text) > longAnswer && !strings.Contains(m.Text, "```") {
		c.Long++
	} else {
		c.Long = 0
	}
}

// What people and models say, as data/words has it. It is matched as the
// triggers of skills are: whole words, in any case. A cue too many costs a line that
// does not fit; one too few, a line that is not there.

// asksToKeep reports whether a message asks for something to be kept.
func asksToKeep(text string) bool {
	return skill.Said(text, asksKeeping) != "" && skill.Said(text, asksMemory) == ""
}

var (
	asksKeeping = words.All("asks_to_keep")
	asksMemory  = words.All("asks_memory") // what a question about memories says in such words
	personal    = words.All("personal")    // what people say when they speak of themselves
	promises    = words.All("promise")     // how answers say that something was kept
)

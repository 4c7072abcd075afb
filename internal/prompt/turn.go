package prompt

import (
	"context"
	"database/sql"
	"slices"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/prompt/section"
	"reverie/internal/trust"
)

// Turn is what a session knows when it needs a prompt: what contributors look at, and which
// request it is for which model.
type Turn struct {
	section.Turn

	Talk    history.Timeline // whose history it is, and whose epoch; "" = the room's own
	Layout  Layout           // "" = the assembler's; another one for scheduled jobs and sub-sessions
	Preview bool             // only to look at: the history may be empty or answered already

	Chosen     string  // the model that was chosen for this room; "" = none was
	Window     int     // tokens the model can read and write together; 0 = not known, nothing is left out
	MaxOutput  int     // tokens reserved for the answer
	Dense      float64 // tokens that the model counts for one by estimate; 0 = 1. Window and MaxOutput are as it counts
	ToolTokens int     // what the descriptions of the tools take
	Sees       bool    // the model can be shown pictures

	Compacted int64 // names the compaction that Summary is of; another one begins an epoch. 0 = none
}

// Job makes t, whose history ends with a scheduled job, the turn of that job alone: it gets
// nothing of the conversation in which its answer is said.
func (t *Turn) Job() {
	for i := len(t.History) - 1; i >= 0; i-- {
		if t.History[i].Role == llm.User {
			t.History = t.History[i:]
			break
		}
	}
	t.Layout, t.Summary, t.Compacted = job, "", 0
	t.Goal, t.Steps, t.Pin, t.Markers = nil, nil, "", false
}

// jobTalk names the requests of the jobs of a conversation, whose own epoch goes on.
func jobTalk(t history.Timeline) history.Timeline { return "job " + t }

// Prompt is one request to a model, ready to be committed and sent.
type Prompt struct {
	Layout  Layout
	Prefix  string        // the system text
	History []llm.Message // as sent before, and the newest message
	Tail    string        // what is new beside it; belongs to the newest message
	Report  Report

	Integrity trust.Integrity // of the least trusted text in it

	commit *commit // nil: a preview
}

// commit is what sending a prompt changes.
type commit struct {
	room   *room
	roomID history.Timeline
	epoch  *epoch
	fresh  bool                                   // the epoch begins here
	save   []func(context.Context, *sql.Tx) error // what is stored of it
	sent   []llm.Message
}

// Messages returns the whole request.
func (p Prompt) Messages() []llm.Message {
	out := make([]llm.Message, 0, len(p.History)+2)
	if p.Prefix != "" {
		out = append(out, llm.Message{Role: llm.System, Content: p.Prefix})
	}
	out = append(out, p.History...)
	if p.Tail == "" {
		return out
	}
	if n := len(out); n > 0 && (out[n-1].Role == llm.User || out[n-1].Role == llm.Tool) {
		out[n-1].Content = joinTail(out[n-1].Content, p.Tail)
		return out
	}
	return append(out, llm.Message{Role: llm.User, Content: p.Tail}) // a preview: nobody has written yet
}

// Marks returns the indexes in Messages up to which the next request will be the same, for servers
// that want to be told what to keep: the prefix, what came before the newest message, and that.
// A layout that is rebuilt for each request has none.
func (p Prompt) Marks() []int {
	if p.Layout != Stable {
		return nil
	}
	last := len(p.Messages()) - 1
	var marks []int
	for _, i := range []int{0, last - 1, last} {
		if i >= 0 && !slices.Contains(marks, i) {
			marks = append(marks, i)
		}
	}
	return marks
}

// joinTail puts a tail behind what stands before it, as history.Message.Content does.
func joinTail(before, tail string) string {
	if before == "" || tail == "" {
		return before + tail
	}
	return before + "\n\n" + tail
}

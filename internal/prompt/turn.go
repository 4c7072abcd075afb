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

// Turn is the session's input to a prompt: what contributors read, and which request it is for
// which model.
type Turn struct {
	section.Turn

	Timeline history.Timeline // owner of the history and the epoch; "" = the room's own
	Layout   Layout           // "" = the assembler's; scheduled jobs and sub-sessions have their own
	Preview  bool             // for display only: the history may be empty or answered

	Chosen     string  // the model chosen for this room; "" = none
	Window     int     // tokens of the request and its answer; 0 = unknown, nothing is left out
	MaxOutput  int     // tokens reserved for the answer
	TokenRatio float64 // the model's tokens for one estimated token; 0 = 1. Window and MaxOutput are the model's
	ToolTokens int     // size of the tools' descriptions
	Vision     bool    // the model accepts pictures

	Compacted int64 // identifies the compaction that Summary is of; a change begins an epoch. 0 = none
}

// IsolateJob limits t, whose history ends with a scheduled job, to that job: it gets nothing of the
// conversation that receives its answer.
func (t *Turn) IsolateJob() {
	for i := len(t.History) - 1; i >= 0; i-- {
		if t.History[i].Role == llm.User {
			t.History = t.History[i:]
			break
		}
	}
	t.Layout, t.Summary, t.Compacted = job, "", 0
	t.Goal, t.Steps, t.Pin, t.Markers = nil, nil, "", false
}

// jobTalk returns the id of a conversation's jobs, which have an epoch of their own.
func jobTalk(t history.Timeline) history.Timeline { return "job " + t }

// Prompt is one request to a model, ready to be committed and sent.
type Prompt struct {
	Layout  Layout
	Prefix  string        // the system text
	History []llm.Message // as sent before, and the newest message
	Tail    string        // new content for the newest message
	Report  Report

	Integrity trust.Integrity // the least of all its texts

	notes  []string // of the section steering
	commit *commit  // nil = a preview
}

// commit holds the changes that sending a prompt makes.
type commit struct {
	room     *room
	roomID   history.Timeline
	epoch    *epoch
	newEpoch bool                                   // the epoch begins here
	save     []func(context.Context, *sql.Tx) error // parts to store
	sent     []llm.Message
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
	return append(out, llm.Message{Role: llm.User, Content: p.Tail}) // a preview: no message yet
}

// CacheMarks returns the indexes in Messages up to which the next request will be equal. They are
// for servers with explicit cache marks: the prefix, the messages before the newest, and the
// newest. Layouts that are rebuilt for each request have no marks.
func (p Prompt) CacheMarks() []int {
	if p.Layout != Stable {
		return nil
	}
	last := len(p.Messages()) - 1
	return slices.Compact([]int{0, max(last-1, 0), max(last, 0)})
}

// joinTail appends a tail, as history.Message.Content does.
func joinTail(before, tail string) string {
	if before == "" || tail == "" {
		return before + tail
	}
	return before + "\n\n" + tail
}

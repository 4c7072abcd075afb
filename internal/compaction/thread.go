package compaction

import (
	"fmt"
	"slices"
	"strings"

	"reverie/internal/agent"
	"reverie/internal/chat"
	"reverie/internal/history"
	"reverie/internal/history/compact"
	"reverie/internal/llm"
)

// BeforeThread returns the messages of a room up to the root of thread, by timestamp.
func BeforeThread(past []history.Message, thread string, root chat.Quote) []history.Message {
	end := root.At
	if i := slices.IndexFunc(past, func(m history.Message) bool { return m.EventID == thread }); i >= 0 {
		end = past[i].At
	}
	later := slices.IndexFunc(past, func(m history.Message) bool { return m.Role == llm.User && !end.IsZero() && m.At.After(end) })
	if later < 0 {
		return past
	}
	return past[:later]
}

const (
	contextLead    = "This is a thread of a room. What had been said in the room before it:"
	maxContextLine = 400 // runes of a message

	contextShare = 10 // a thread's first summary takes at most 1/contextShare of the window
	minContext   = 100
	maxContext   = 1_600
)

// RoomContext returns a thread's first summary: the room's summary and its newest messages, a line
// each, in at most limit tokens.
func RoomContext(summary string, past []history.Message, limit int) string {
	var lines []string
	summary = compact.CutMiddle(summary, limit/2)
	left := limit - llm.EstimateTokens(contextLead+summary) - 2
	for _, m := range slices.Backward(past) {
		if m.Text == "" || m.Role != llm.User && (m.Role != llm.Assistant || len(m.Calls) > 0) || history.IsRedacted(m) {
			continue
		}
		who, text := m.Sender, m.Text
		switch {
		case m.Role == llm.Assistant:
			who, text = "you", agent.WithoutMarkers(text)
		case who == "":
			who = "system"
		}
		line := "- " + who + ": " + history.OneLine(text, maxContextLine)
		if left -= llm.EstimateTokens(line) + 1; left < 0 {
			break
		}
		lines = append(lines, line)
	}
	slices.Reverse(lines)
	said := strings.TrimSpace(summary + "\n" + strings.Join(lines, "\n"))
	if said == "" {
		return ""
	}
	return contextLead + "\n" + said
}

// ThreadLimit returns the tokens of a thread's first summary in a window of that many tokens.
func ThreadLimit(window int) int { return min(max(window/contextShare, minContext), maxContext) }

// RootLines quotes the root of a thread in at most limit tokens. Without it the model cannot know what
// the thread is about.
func RootLines(q chat.Quote, limit int) []string {
	who := q.Sender
	if q.OutgoingID != "" {
		who = "you"
	}
	if who == "" {
		return []string{"The thread begins at a message of the room: " + history.OneLine(q.Text, maxContextLine)}
	}
	text := history.OneLine(compact.CutMiddle(q.Text, limit), 4*maxContextLine)
	return []string{fmt.Sprintf("The thread begins at this message of %s: %s", who, text)}
}

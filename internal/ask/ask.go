// Package ask turns the model's call of tool.AskPerson into a question that people can answer: a poll, or
// numbered lines where clients have no polls.
//
// The history holds the whole state, so nothing can differ from it after a crash. A question is open until
// a person writes in its conversation, or until a message with ClosedID is there.
package ask

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"reverie/internal/agent"
	"reverie/internal/chat"
	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/tool"
	"reverie/internal/trust"
)

// ErrAsked ends the loop of a turn whose answer is a question.
var ErrAsked = errors.New("ask: a person is asked")

// Question is a question of the model.
type Question struct {
	tool.Question
	ID    string      // Outgoing.ID of the message that asks it
	Lead  string      // what the model wrote before it
	Label trust.Label // of everything that the model had read
}

// Of returns the question that the message id asks: that of the call right before it. If past does not have
// the message yet, it is the call at the end. nil = there is no such call.
func Of(past []history.Message, id string) *Question {
	end := slices.IndexFunc(past, func(m history.Message) bool { return m.Role == llm.Assistant && m.EventID == id })
	if end < 0 {
		end = len(past)
	}
	done, i := map[string]bool{}, end-1
	for ; i >= 0 && past[i].Role == llm.Tool; i-- {
		done[past[i].CallID] = !past[i].Failed
	}
	if i < 0 {
		return nil
	}
	for _, c := range past[i].Calls {
		if q, ok := tool.ParseQuestion(c.Arguments); ok && c.Name == tool.AskPerson && done[c.ID] {
			return &Question{Question: q, ID: id, Lead: past[i].Text, Label: past[i].Label}
		}
	}
	return nil
}

// Open returns the open question of a conversation; nil = none. The message but, which may be empty, does not
// count as its answer.
func Open(past []history.Message, but string) *Question {
	for _, m := range slices.Backward(past) {
		switch {
		case m.Role == llm.User && m.Sender != "" && m.EventID != but, strings.HasPrefix(m.EventID, closedPrefix):
			return nil
		case m.Role == llm.Assistant && m.EventID != "":
			if q := Of(past, m.EventID); q != nil {
				return q
			}
		}
	}
	return nil
}

const closedPrefix = "closed:"

// ClosedID returns the ID of the message in the history that says that the question was withdrawn.
func (q *Question) ClosedID() string { return closedPrefix + q.ID }

// Numbered returns the question with its answers in numbered lines, as the history has it.
func (q *Question) Numbered() string {
	var b strings.Builder
	b.WriteString(q.Text + "\n")
	for i, answer := range q.Answers {
		fmt.Fprintf(&b, "\n%d. %s", i+1, answer)
	}
	return b.String()
}

// maxPollRunes limits the text of a poll, which clients show without Markdown.
const maxPollRunes = 1_500

// Show makes m ask the question: as a poll, or in words if the text before it is too long for one.
func (q *Question) Show(m *chat.Outgoing) {
	lead := strings.TrimSpace(agent.WithoutMarkers(q.Lead))
	if utf8.RuneCountInString(lead) > maxPollRunes {
		m.Text = lead + "\n\n" + q.Numbered()
		return
	}
	m.Text = strings.TrimSpace(lead + "\n\n" + q.Text)
	for i, answer := range q.Answers {
		m.Options = append(m.Options, chat.Option{ID: "abcde"[i : i+1], Text: answer})
	}
}

// Message returns the vote in as a message of the voter, and the chosen answer; false = it is not a vote for q,
// which may be nil.
func (q *Question) Message(in chat.Vote) (m chat.Message, answer string, ok bool) {
	if q == nil || q.ID != in.Target {
		return m, "", false
	}
	i := strings.Index("abcde"[:len(q.Answers)], in.Option)
	if len(in.Option) != 1 || i < 0 {
		return m, "", false
	}
	answer = q.Answers[i]
	// As a quoted line it is not read as words of the voter, see harvest.OwnWords.
	return chat.Message{Head: in.Head, Answers: q.ID, Text: fmt.Sprintf("> Answer to the question “%s”: %s", q.Text, answer)}, answer, true
}

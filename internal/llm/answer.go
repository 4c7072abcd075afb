package llm

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"reverie/internal/llm/calls"
)

// answer collects one streamed answer.
type answer struct {
	stream func(string)
	watch  *watch
	idle   time.Duration // allowed between two pieces
	asked  time.Time

	text     strings.Builder // everything received, thinking included
	withhold bool            // show nothing before a closing tag: this model never sends the opening one
	thought  bool            // the server sent thinking in a field of its own
	calls    callJoiner
	reader   *calls.Reader // finds calls that the model wrote as text
	usage    Usage
	timings  json.RawMessage // of llama.cpp
	finish   string
	begun    bool
	first    time.Duration // from asked until the first token
	searched int           // length of text when it was last searched for visible words
	shown    string
}

// read consumes events until the answer ends.
func (a *answer) read(events *eventStream) error {
	for {
		raw, err := events.next()
		if err != nil {
			switch {
			case a.finish != "": // complete; what is missing is only the count
				return nil
			case !errors.Is(err, io.EOF):
				return err
			case events.done && a.begun: // some servers name no reason
				a.finish = "stop"
				return nil
			case events.done:
				return nil // nothing at all: empty
			case !events.started:
				return &garbledError{"the answer has no body"}
			default:
				return errBroken
			}
		}
		var c chunk
		if err := json.Unmarshal(raw, &c); err != nil {
			return &garbledError{"an event of the answer is not what it should be: " + excerpt(raw)}
		}
		if len(c.Error) > 0 && string(c.Error) != "null" {
			return streamError(c.Error)
		}
		a.addChunk(c)
	}
}

func (a *answer) addChunk(c chunk) {
	if c.Usage != nil {
		a.usage = c.Usage.tokens()
	}
	if len(c.Timings) > 0 {
		a.timings = c.Timings
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue
		}
		for _, d := range []delta{choice.Delta, choice.Message} {
			a.thought = a.thought || d.ReasoningContent+d.Reasoning != ""
			a.text.WriteString(string(d.Content + d.Refusal))
			for _, f := range d.ToolCalls {
				a.calls.add(f)
			}
			if !a.begun && (d.Content+d.Refusal+d.ReasoningContent+d.Reasoning != "" || len(d.ToolCalls) > 0) {
				a.begun, a.first = true, time.Since(a.asked)
				a.watch.setLimit(a.idle, errIdle)
			}
		}
		if choice.FinishReason != "" {
			a.finish = choice.FinishReason
			a.watch.setLimit(usageWait, errIdle)
		}
	}
	if a.stream == nil {
		return
	}
	if a.text.Len()-a.searched < a.searched/128 {
		return // each look reads the whole text, so a long one is looked at less often
	}
	a.searched = a.text.Len()
	text, found := stripThinking(a.text.String(), false)
	if a.withhold && !found.unopened && !found.thought {
		return
	}
	if text = a.reader.VisibleProse(text); text != a.shown {
		a.show(text)
	}
}

// show passes the visible text on. The receiver's time does not count as silence of the server.
func (a *answer) show(text string) {
	a.shown = text
	a.watch.timer.Stop()
	a.stream(text)
	a.watch.alive()
}

// reply returns the complete answer.
func (a *answer) reply() (Reply, thoughts) {
	text, found := stripThinking(a.text.String(), true)
	found.thought = found.thought || a.thought
	r := Reply{Text: text, ToolCalls: a.calls.calls, Finish: a.finish, Usage: withTimings(a.usage, a.timings), FirstToken: a.first}
	r = extractCalls(r, a.reader)
	if a.stream != nil && r.Text != a.shown && r.Text != "" {
		a.show(r.Text)
	}
	return r, found
}

// whyEmpty explains an answer without text and calls.
func whyEmpty(r Reply, thought bool) string {
	switch {
	case r.Finish == "length" && thought:
		return "the model used all of max_output for thinking: raise llm.models max_output, or choose a model that thinks less"
	case r.Finish == "length":
		return "the answer was cut before it began: raise llm.models max_output"
	case r.Finish == "content_filter":
		return "the server's content filter held the answer back"
	default:
		return "the answer has neither text nor tool calls"
	}
}

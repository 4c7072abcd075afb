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

	text    strings.Builder // what came, with the thinking in it
	hold    bool            // show nothing before a closing tag: this model is known to send no opening one
	thought bool            // in a field of its own
	calls   callJoiner
	reader  *calls.Reader // of calls in the text
	usage   Usage
	timings json.RawMessage // of llama.cpp
	finish  string
	begun   bool
	first   time.Duration // from asked until it began
	looked  int           // bytes of the text when it was last looked at for what may be shown
	shown   string
}

// read takes the events up to the end of the answer.
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
			return &garbledError{"an event of the answer is not what it should be: " + excerpt(string(raw), 80)}
		}
		if len(c.Error) > 0 && string(c.Error) != "null" {
			return streamError(c.Error)
		}
		a.take(c)
	}
}

func (a *answer) take(c chunk) {
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
				a.watch.expect(a.idle, errIdle)
			}
		}
		if choice.FinishReason != "" {
			a.finish = choice.FinishReason
			a.watch.expect(afterFinish, errIdle)
		}
	}
	if a.stream == nil {
		return
	}
	if a.text.Len()-a.looked < a.looked/128 {
		return // each look reads the whole text, so a long one is looked at less often
	}
	a.looked = a.text.Len()
	text, found := answerIn(a.text.String(), false)
	if a.hold && !found.lone && !found.thought {
		return
	}
	if text = a.reader.Shown(text); text != a.shown {
		a.show(text)
	}
}

// show passes the text on. The time the receiver takes is not the server's.
func (a *answer) show(text string) {
	a.shown = text
	a.watch.timer.Stop()
	a.stream(text)
	a.watch.alive()
}

// reply ends the answer.
func (a *answer) reply() (Reply, thoughts) {
	text, found := answerIn(a.text.String(), true)
	found.thought = found.thought || a.thought
	r := Reply{Text: text, ToolCalls: a.calls.calls, Finish: a.finish, Usage: withTimings(a.usage, a.timings), First: a.first}
	r = withCalls(r, a.reader)
	if a.stream != nil && r.Text != a.shown && r.Text != "" {
		a.show(r.Text)
	}
	return r, found
}

// whyEmpty says why there is nothing in an answer.
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

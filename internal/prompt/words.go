package prompt

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Contributors that say in words what a turn or the configuration holds.

// clockStale is how old the time in a message's header may be when the model is told it
// anew, in a layout that leaves it to the headers.
const clockStale = 30 * time.Minute

const clockTitle = "Current Time"

// gatherClock gathers the local time, to the minute. A message tells it by its header or,
// once, in its tail.
func gatherClock(_ context.Context, q *Question) (*content, error) {
	c := content{source: "clock", lines: []string{q.turn.Now.In(q.sources.Location).Format("Monday, 2006-01-02 15:04 MST")}, in: []int64{0}}
	for i, m := range slices.Backward(q.turn.History) {
		told := strings.Contains(m.Tail, clockTitle+":\n")
		if m.Header == "" && !told {
			continue
		}
		if q.turn.Now.Sub(m.At) < clockStale || told && i == len(q.turn.History)-1 {
			c.in[0] = m.ID
		}
		break
	}
	return q.saidAs(c)
}

// gatherRuntime gathers what the assistant runs on.
func gatherRuntime(_ context.Context, q *Question) (*content, error) {
	parts := []string{"agent " + q.sources.Name}
	if q.turn.Model != "" {
		parts = append(parts, "model "+q.turn.Model)
	}
	if q.sources.Host != "" {
		parts = append(parts, "host "+q.sources.Host)
	}
	parts = append(parts, "OS "+cmp.Or(q.sources.System, runtime.GOOS+"/"+runtime.GOARCH))
	return q.said("runtime", strings.Join(parts, ", "))
}

// thinkingWords say how much to think, to a model that takes no parameter for it.
var thinkingWords = map[string]string{
	"off":    "Answer at once, without thinking first.",
	"low":    "Think briefly before you answer.",
	"medium": "Think the question through step by step before you answer; give only the answer.",
	"high":   "Think the question through with care: consider other ways, check your result, and only then answer; give only the answer.",
}

func gatherThinking(_ context.Context, q *Question) (*content, error) {
	return q.saidAs(content{source: "thinking", lines: []string{thinkingWords[q.turn.Thinking]}, none: "Think as much as you find right again."})
}

func gatherSummary(_ context.Context, q *Question) (*content, error) {
	c := content{source: "summary", lines: []string{strings.TrimSpace(q.turn.Summary)}, integrity: q.turn.From.Summary}
	return q.saidAs(c)
}

func gatherGoal(_ context.Context, q *Question) (*content, error) {
	c := content{source: "goal", lines: oneLines(q.turn.Goal), integrity: q.turn.From.Goal}
	if q.turn.Markers {
		c.lead = markersHint
	}
	return q.saidAs(c)
}

func gatherSteps(_ context.Context, q *Question) (*content, error) {
	return q.saidAs(content{source: "steps", lines: oneLines(q.turn.Steps), none: "No steps are open any more.", integrity: q.turn.From.Goal})
}

func gatherPin(_ context.Context, q *Question) (*content, error) {
	c := content{source: "current task", lines: oneLines([]string{q.turn.Pin}), none: "No task in particular is being worked on any more.", integrity: q.turn.From.Pin}
	return q.saidAs(c)
}

// gatherModels gathers what the person may call the models.
func gatherModels(_ context.Context, q *Question) (*content, error) {
	if len(q.sources.Models) < 2 { // one is no choice
		return nil, nil
	}
	return q.said("models", "The person can choose one of these models with `!model NAME`: "+strings.Join(q.sources.Models, ", ")+".")
}

// gatherTools gathers the tools by name, with a line on each.
func gatherTools(_ context.Context, q *Question) (*content, error) {
	lines := make([]string, 0, len(q.turn.Tools))
	for _, name := range q.turn.Tools {
		line := "- " + name
		if q.sources.Summary != nil {
			if s := q.sources.Summary(name); s != "" {
				line += ": " + oneLine(s, 200)
			}
		}
		lines = append(lines, line)
	}
	return q.said("tools", lines...)
}

// gatherReminder gathers the names of the tools for a place near the end, where
// models heed them most.
func gatherReminder(_ context.Context, q *Question) (*content, error) {
	if len(q.turn.Tools) == 0 {
		return nil, nil
	}
	return q.said("reminder", "These are all the tools there are: "+strings.Join(q.turn.Tools, ", ")+". Call no others.")
}

// latest is how many of the tool calls and files of a conversation are listed.
const latest = 10

// gatherFootprint gathers which tools were used lately, the newest last.
func gatherFootprint(_ context.Context, q *Question) (*content, error) {
	used := content{source: "footprint"}
	for i := range q.turn.History {
		for _, c := range q.turn.History[i].Calls {
			used.lines = append(used.lines, "- "+oneLine(c.Name+" "+c.Arguments, 160))
			used.from, used.in = append(used.from, q.turn.History[i].Label.Integrity), append(used.in, q.turn.History[i].ID)
		}
	}
	at := max(0, len(used.lines)-latest)
	used.lines, used.from, used.in = used.lines[at:], used.from[at:], used.in[at:]
	return q.saidAs(used)
}

func oneLines(in []string) []string {
	var out []string
	for _, s := range in {
		if s = oneLine(strings.TrimSpace(s), 500); s != "" {
			out = append(out, s)
		}
	}
	return out
}

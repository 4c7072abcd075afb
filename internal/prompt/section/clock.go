package section

import (
	"context"
	"slices"
	"strings"
	"time"
)

// clockStale is how old the time in a message's header may be when the model is told it
// anew, in a layout that leaves it to the headers.
const clockStale = 30 * time.Minute

const clockTitle = "Current Time"

// gatherClock gathers the local time, to the minute. A message tells it by its header or,
// once, in its tail.
func gatherClock(_ context.Context, q *Question) (*Content, error) {
	l := Line{Text: q.turn.Now.In(q.sources.Location).Format("Monday, 2006-01-02 15:04 MST")}
	for i, m := range slices.Backward(q.turn.History) {
		told := strings.Contains(m.Tail, clockTitle+":\n")
		if m.Header == "" && !told {
			continue
		}
		if q.turn.Now.Sub(m.At) < clockStale || told && i == len(q.turn.History)-1 {
			l.In = m.ID
		}
		break
	}
	return q.saidAs(Content{Source: "clock", Lines: []Line{l}})
}

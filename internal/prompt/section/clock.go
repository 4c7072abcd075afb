package section

import (
	"context"
	"slices"
	"strings"
	"time"
)

// clockStale is the age of a message header's time that makes it outdated. Layouts that leave the
// time to headers tell it again then.
const clockStale = 30 * time.Minute

const clockTitle = "Current Time"

// gatherClock gathers the local time, to the minute. A message tells it in its header or, once, in
// its tail.
func gatherClock(_ context.Context, q *Question) (*Content, error) {
	l := Line{Text: q.turn.Now.Format("Monday, 2006-01-02 15:04 MST")}
	for i, m := range slices.Backward(q.turn.History) {
		told := strings.Contains(m.Tail, clockTitle+":\n")
		if m.Header == "" && !told {
			continue
		}
		if q.turn.Now.Sub(m.At) < clockStale || told && i == len(q.turn.History)-1 {
			l.SaidIn = m.ID
		}
		break
	}
	return q.contentOrNil(Content{Source: "clock", Lines: []Line{l}})
}

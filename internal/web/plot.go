package web

import (
	"fmt"
	"time"

	"reverie/internal/subsession"
	"reverie/internal/text"
)

// bars is a plot of columns, drawn by plots.html as SVG, so that it needs no JavaScript.
type bars struct {
	Title             string
	Series            []string // with more than one, a legend
	Values            []value
	Most, First, Last string  // labels: the largest sum, and those at both ends
	Max, Step, Scale  float64 // the largest sum; of the width, a column with its gap; of the height, a sum of 1
}

// value is what one column shows. Its parts stand on one another.
type value struct {
	Label, Link string
	Parts       []float64 // by series
	Title       string    // label and sum
}

// plot draws values. format formats their sums. It returns nil if there is nothing to draw.
func plot(title string, series []string, values []value, format func(float64) string) *bars {
	b := &bars{Title: title, Series: series, Values: values}
	for i, v := range values {
		for n := len(v.Parts) - 2; n >= 0; n-- { // from here on each part holds those below it: it is drawn behind them
			v.Parts[n] += v.Parts[n+1]
		}
		if len(v.Parts) > 0 {
			b.Values[i].Title = v.Label + ": " + format(v.Parts[0])
			b.Max = max(b.Max, v.Parts[0])
		}
	}
	if b.Max == 0 {
		return nil
	}
	const full = 12 // fewer columns do not fill the width
	b.Most, b.Step, b.Scale = format(b.Max), 1/float64(max(len(values), full)), 1/b.Max
	b.First, b.Last = values[0].Label, values[len(values)-1].Label
	if b.First == b.Last {
		b.Last = ""
	} else if len(values) < full {
		b.First, b.Last = b.First+" – "+b.Last, ""
	}
	return b
}

// graph is a plot of sub-sessions in columns, with lines from left to right.
type graph struct {
	Width, Height int
	Nodes         []node
	Edges         []edge
}

type node struct {
	subsession.Node
	Name string
	X, Y int
}

// edge is a line between two nodes.
type edge struct {
	Class    string
	From, To *node
}

// draw places sub-sessions, which are in the order of their start: each is to the right of those that it needs and of
// the one that started it.
func draw(all []subsession.Node) *graph {
	const width, height, gapX, gapY, margin = 200, 44, 60, 14, 10 // width and height of plots.html
	g, at, rows := &graph{Nodes: make([]node, len(all))}, map[string]*node{}, map[int]int{}
	for i, s := range all {
		n := &g.Nodes[i]
		*n = node{Node: s, Name: text.Clip(s.Objective, 24), X: margin}
		at[s.ID] = n
		join := func(id, class string) {
			if from := at[id]; from != nil && from != n {
				n.X = max(n.X, from.X+width+gapX)
				g.Edges = append(g.Edges, edge{class, from, n})
			}
		}
		for _, id := range s.Needs {
			join(id, "need")
		}
		join(s.Parent, "parent")
		n.Y = margin + rows[n.X]*(height+gapY)
		rows[n.X]++
		g.Width, g.Height = max(g.Width, n.X+width+margin), max(g.Height, n.Y+height+margin)
	}
	return g
}

// days returns the dates of the last n days, the oldest first.
func days(now time.Time, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = now.AddDate(0, 0, i-n+1).Format(time.DateOnly)
	}
	return all
}

// spaced formats a number with spaces between thousands.
func spaced[N int | float64](n N) string {
	s := fmt.Sprintf("%.0f", float64(n))
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

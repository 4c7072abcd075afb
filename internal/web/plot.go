package web

import (
	"fmt"
	"slices"
	"time"
)

// A plot is drawn here as SVG, so that it needs no JavaScript. Sizes are in units of its viewBox, see plots.html.
const plotWidth, plotTop, plotBase = 720.0, 16.0, 128.0

// bars is a plot of columns, each of one or more series.
type bars struct {
	Title       string
	Series      []string // with more than one, a legend
	Most        string   // the value of the line at the top
	First, Last string   // labels of the first and the last column
	End         float64  // of the last column
	Columns     []column
}

// column is one column; its parts stand on one another.
type column struct {
	Title, Link string
	X, W        float64
	Parts       []part
}

type part struct {
	Series int
	Y, H   float64
}

// value is what one column shows.
type value struct {
	label, title, link string
	parts              []float64 // by series
}

// plot draws values. format formats the largest. It returns nil if there is nothing to draw.
func plot(title string, series []string, values []value, format func(float64) string) *bars {
	most := 0.0
	for _, v := range values {
		most = max(most, sum(v.parts))
	}
	if most == 0 {
		return nil
	}
	b := &bars{Title: title, Most: format(most), First: values[0].label, Last: values[len(values)-1].label}
	if len(series) > 1 {
		b.Series = series
	}
	step := plotWidth / float64(max(len(values), 12))
	for i, v := range values {
		c := column{Title: v.title, Link: v.link, X: round(float64(i)*step + step*.1), W: round(step * .8)}
		y := plotBase
		for n, p := range v.parts {
			h := p / most * (plotBase - plotTop)
			y -= h
			if p > 0 {
				c.Parts = append(c.Parts, part{Series: n % colours, Y: round(y), H: round(h)})
			}
		}
		b.Columns, b.End = append(b.Columns, c), max(c.X+c.W, minEnd)
	}
	return b
}

// minEnd leaves room for both labels.
const minEnd = 240

// colours is how many series look different.
const colours = 6

func round(f float64) float64 { return float64(int(f*10+.5)) / 10 }

func sum(all []float64) (n float64) {
	for _, f := range all {
		n += f
	}
	return n
}

// graph is a plot of nodes in columns, with lines from left to right.
type graph struct {
	Title         string
	Width, Height int
	Nodes         []node
	Edges         []edge
}

type node struct {
	Name, Note, Title, Link, Class string
	X, Y                           int

	id    string
	needs []string // ids of nodes to its left
	above string   // the node that started it
}

// edge is a line between two nodes. Mid is where it bends.
type edge struct {
	Class               string
	X1, Y1, X2, Y2, Mid int
}

// The size of a node, and the distance between two.
const nodeWidth, nodeHeight, nodeGapX, nodeGapY = 200, 44, 60, 14

// draw places nodes, which are in the order of their start: each is to the right of those that it needs and of the one
// that started it.
func draw(title string, nodes []node) *graph {
	g, at, rows := &graph{Title: title, Nodes: nodes}, map[string]*node{}, map[int]int{}
	for i := range nodes {
		n := &nodes[i]
		n.X = 10
		for _, of := range append(slices.Clone(n.needs), n.above) {
			if left := at[of]; left != nil {
				n.X = max(n.X, left.X+nodeWidth+nodeGapX)
			}
		}
		n.Y = 10 + rows[n.X]*(nodeHeight+nodeGapY)
		rows[n.X]++
		at[n.id] = n
		g.Width, g.Height = max(g.Width, n.X+nodeWidth+10), max(g.Height, n.Y+nodeHeight+10)
		for _, of := range n.needs {
			g.join(at[of], n, "need")
		}
		g.join(at[n.above], n, "parent")
	}
	return g
}

func (g *graph) join(from, to *node, class string) {
	if from != nil {
		x := from.X + nodeWidth
		g.Edges = append(g.Edges, edge{class, x, from.Y + nodeHeight/2, to.X, to.Y + nodeHeight/2, (x + to.X) / 2})
	}
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

package web

import (
	"fmt"
	"slices"
	"time"
)

// A plot is drawn here as SVG, so that it needs no JavaScript. Sizes are in units of its viewBox.
const (
	plotWidth, plotHeight = 720, 150
	plotTop, plotBase     = 16, 128
)

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

// The sizes of every plot, for the template.
func (bars) Width() int     { return plotWidth }
func (bars) Height() int    { return plotHeight }
func (bars) Top() int       { return plotTop }
func (bars) Base() int      { return plotBase }
func (bars) LabelTop() int  { return plotTop - 4 }
func (bars) LabelBase() int { return plotBase + 15 }

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
	step := float64(plotWidth) / float64(max(len(values), 12))
	for i, v := range values {
		c := column{Title: v.title, Link: v.link, X: round(float64(i)*step + step*.1), W: round(step * .8)}
		y := float64(plotBase)
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

// The sizes of a node, and where its texts stand.
const nodeWidth, nodeHeight, nodeGapX, nodeGapY = 200, 44, 60, 14

func (node) W() int         { return nodeWidth }
func (node) H() int         { return nodeHeight }
func (n node) TextX() int   { return n.X + 10 }
func (n node) LineOne() int { return n.Y + 18 }
func (n node) LineTwo() int { return n.Y + 35 }

type edge struct {
	Class               string
	X1, Y1, X2, Y2, Mid int
}

// draw places nodes: each is to the right of those that it needs and of the one that started it.
func draw(title string, nodes []node) *graph {
	at := map[string]int{}
	for i, n := range nodes {
		at[n.id] = i
	}
	level := make([]int, len(nodes))
	for range nodes { // ends early unless it is a chain
		changed := false
		for i, n := range nodes {
			for _, of := range append(slices.Clone(n.needs), n.above) {
				if j, known := at[of]; known && j != i && level[i] <= level[j] && level[j] < len(nodes) {
					level[i], changed = level[j]+1, true
				}
			}
		}
		if !changed {
			break
		}
	}
	g, used := &graph{Title: title}, map[int]int{}
	for i := range nodes {
		n := &nodes[i]
		n.X, n.Y = 10+level[i]*(nodeWidth+nodeGapX), 10+used[level[i]]*(nodeHeight+nodeGapY)
		used[level[i]]++
		g.Width, g.Height = max(g.Width, n.X+nodeWidth+10), max(g.Height, n.Y+nodeHeight+10)
	}
	for _, n := range nodes {
		for _, of := range n.needs {
			g.join(nodes, at, of, n, "need")
		}
		g.join(nodes, at, n.above, n, "parent")
	}
	g.Nodes = nodes
	return g
}

func (g *graph) join(nodes []node, at map[string]int, from string, to node, class string) {
	if i, known := at[from]; known {
		x := nodes[i].X + nodeWidth
		g.Edges = append(g.Edges, edge{class, x, nodes[i].Y + nodeHeight/2, to.X, to.Y + nodeHeight/2, (x + to.X) / 2})
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

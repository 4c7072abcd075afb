package prompt

import (
	"context"
	"fmt"
	"slices"
)

// Steering: when a conversation goes astray, the model is told so in a line at the
// end of the newest message. A line is chosen once, for the person's message or for
// the newest tool results, and stays as it was sent; people never see it.

// rule is a reason to tell the model something. Its words stand in the section of
// its name in prompts/steering/LANGUAGE.txt.
type rule struct {
	name  string
	phase phase
	rest  int // until it may come again: turns, or of a rule of the loop alone, rounds
	when  func(*facts) bool
	once  func(*facts) int // it comes once for each number in a conversation; nil = as often as it may
}

// phase is when a rule may come.
type phase int

const (
	atTurn phase = 1 << iota // with a person's message
	inLoop                   // with the results of tools
)

// rules is all of them, the most important first: where more than mostNotes hold,
// those further down are not said.
var rules = []rule{
	// name, phase, rest, when, once
	{"repeat", inLoop, 2, func(f *facts) bool { return f.Same >= 2 || f.Again >= 3 }, nil},
	{"errors", inLoop, 3, func(f *facts) bool { return f.Errors >= 2 }, nil},
	{"recovered", atTurn | inLoop, 0, func(f *facts) bool { return f.Compactions > 0 }, func(f *facts) int { return f.Compactions }},
	{"rounds", inLoop, 6, func(f *facts) bool { return f.Rounds >= 10 }, nil},
	{"keep", atTurn, 2, func(f *facts) bool { return f.Asked }, nil},
	{"promised", atTurn, 2, func(f *facts) bool { return f.Promised }, nil},
	{"act", atTurn, 5, func(f *facts) bool { return f.goal && f.SinceTool >= 5 }, nil},
	{"remember", atTurn, 8, func(f *facts) bool { return f.Personal >= 3 && f.SinceMemory >= 5 && !f.Asked }, nil},
	{"tasks", atTurn, 12, func(f *facts) bool { return f.openTasks > 0 && f.SinceTask >= 12 }, nil},
	{"brief", atTurn, 6, func(f *facts) bool { return f.Long >= 2 || f.Used >= 85 }, nil},
}

// mostNotes is how many lines a turn has in force, and gets with one message at most.
const mostNotes = 3

// facts is what rules look at: what was counted, and what is so now.
type facts struct {
	counters
	openTasks int
	goal      bool // there is one, and it has open steps
}

// note says that a rule came with a message.
type note struct {
	Rule    string `json:"rule"`
	Message int64  `json:"message"`
}

func (n note) id() uint64 { return lineID(fmt.Sprintf("%d %s", n.Message, n.Rule)) }

func rank(name string) int {
	return slices.IndexFunc(rules, func(r rule) bool { return r.name == name })
}

// choose returns the notes that are in force once message is sent: those of the turn
// so far, and those that come with it. worded says whether a rule has words.
func (f *facts) choose(now phase, message int64, worded func(string) bool) []note {
	notes := slices.Clone(f.Notes)
	for i := range rules {
		r := &rules[i]
		if r.phase&now == 0 || !f.rested(r) || !r.when(f) || !worded(r.name) {
			continue
		}
		notes = slices.DeleteFunc(notes, func(n note) bool { return n.Rule == r.name })
		notes = append(notes, note{r.name, message})
	}
	slices.SortStableFunc(notes, func(a, b note) int { return rank(a.Rule) - rank(b.Rule) })
	return notes[:min(len(notes), mostNotes)]
}

// rested reports whether the rule may come, for all that it came before.
func (f *facts) rested(r *rule) bool {
	last, came := f.Marks[r.name]
	switch {
	case !came:
		return true
	case r.once != nil:
		return last.Once != r.once(f)
	case r.phase == inLoop:
		return f.Rounds-last.Round >= r.rest
	}
	return f.Turn-last.Turn >= r.rest
}

// due is the phase of the newest message, if no notes were chosen for it yet.
func (q *question) due() phase {
	n := len(q.turn.History)
	if n == 0 {
		return 0
	}
	switch m := &q.turn.History[n-1]; {
	case m.ID <= q.course.Made:
		return 0
	case byTool(m):
		return inLoop
	case byPerson(m):
		return atTurn
	}
	return 0
}

// gatherSteering gathers the notes of the turn, with what is new for its newest
// message among them.
func gatherSteering(_ context.Context, q *question) (*content, error) {
	if q.a.cfg.NoSteering {
		return nil, nil
	}
	words := q.steeringWords()
	notes := q.course.Notes
	if now := q.due(); now != 0 {
		f := facts{counters: *q.course, goal: len(q.turn.Steps) > 0 || q.turn.Pin != ""}
		if now == atTurn {
			tasks, err := q.tasks()
			if err != nil {
				return nil, err
			}
			f.openTasks = len(tasks)
		}
		newest := q.turn.History[len(q.turn.History)-1].ID
		notes = f.choose(now, newest, func(name string) bool { return words[name] != "" })
	}
	c := content{source: "steering"}
	for _, n := range notes {
		if text := words[n.Rule]; text != "" {
			c.lines, c.notes = append(c.lines, "- "+text), append(c.notes, n)
		}
	}
	if len(c.lines) == 0 {
		return nil, nil
	}
	return newContent(c), nil
}

// steered notes in the room's counters which notes were chosen for the newest message.
func (r *request) steered() {
	i := slices.IndexFunc(r.rows, func(o row) bool { return o.ID == "steering" })
	if i < 0 || r.errs[i] != nil || r.a.cfg.NoSteering {
		return
	}
	c := r.course
	c.Made, c.Notes = r.newest, nil
	if r.contents[i] == nil {
		return
	}
	c.Notes = slices.Clone(r.contents[i].notes)
	for _, n := range c.Notes {
		if n.Message != r.newest {
			continue
		}
		m := mark{Turn: c.Turn, Round: c.Rounds}
		if once := rules[rank(n.Rule)].once; once != nil {
			m.Once = once(&facts{counters: *c})
		}
		c.Marks[n.Rule] = m
	}
}

package section

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/skill"
	words "reverie/internal/text"
)

// Steering: when a conversation goes astray, the model is told so in a line at the end of
// the newest message. Which lines a message gets follows from the conversation up to it, so
// nothing is stored; once sent, they stay as they are. People never see them.

// rule is a reason to tell the model something. Its words stand in the section of its name in
// prompts/steering/LANGUAGE.txt.
type rule struct {
	name  string
	phase phase
	when  func(*facts) bool
}

// phase is when a rule may come.
type phase int

const (
	atTurn phase = 1 << iota // with a person's message
	inLoop                   // with the results of tools
)

// rules is all of them, the most important first: where more than mostNotes hold, those
// further down are not said. What goes on holding is said again after some turns or rounds.
var rules = []rule{
	{"repeat", inLoop, func(f *facts) bool { return f.same%2 == 0 || f.same == 1 && f.again >= 3 }},
	{"errors", inLoop, func(f *facts) bool { return f.failing > 0 && (f.rounds-f.failing)%3 == 0 }},
	{"recovered", atTurn | inLoop, func(f *facts) bool { return f.recovered }},
	{"rounds", inLoop, func(f *facts) bool { return f.rounds >= 10 && f.rounds%6 == 4 }},
	{"keep", atTurn, (*facts).asked},
	{"promised", atTurn, func(f *facts) bool { return skill.FindPhrase(f.answer, promises) != "" }},
	{"act", atTurn, func(f *facts) bool { return f.goal && f.sinceTool%5 == 0 }},
	{"remember", atTurn, func(f *facts) bool { return f.sinceMemory%8 == 5 && f.personal() >= 3 && !f.asked() }},
	{"tasks", atTurn, func(f *facts) bool { return f.openTasks > 0 && f.sinceTask%12 == 0 }},
}

// mostNotes is how many lines one message gets.
const mostNotes = 3

// note says that a rule comes with a message.
type note struct {
	rank    int // of the rule
	message int64
}

// What people and models say, as data/words has it, matched as the triggers of skills are: whole
// words, in any case.
var (
	asksKeeping = words.All("asks_to_keep")
	asksMemory  = words.All("asks_memory") // what a question about memories says in such words
	personal    = words.All("personal")    // what people say when they speak of themselves
	promises    = words.All("promise")     // how answers say that something was kept
)

// facts is what rules look at: what happened in the conversation that the history holds, and
// what is so now. A turn is what a person writes until there is an answer.
type facts struct {
	openTasks int
	goal      bool // there is one, and it has open steps
	recovered bool // no request was sent since a summary took the place of older messages

	heard       []string // what the person said in each turn, the newest last
	sinceTool   int      // turns since a tool did something, this one included
	sinceMemory int      // since something was remembered
	sinceTask   int      // since the tasks were looked at or changed
	answer      string   // the last one to a person, if no tool did anything for it

	// Of the turn:
	open    bool              // it has no answer yet, not even a tool call
	event   bool              // the program began it, not a person
	acted   bool              // a tool did something
	rounds  int               // times that tools were called
	errors  int               // failed calls in a row
	failing int               // the round since when that is two or more; 0 = it is not
	same    int               // times in a row that the last call was made
	again   int               // times that a call of the last round was made in the turn
	last    string            // the last call
	seen    map[string]int    // times that calls were made
	names   map[string]string // tools of the calls, by their ids
}

func byPerson(m *history.Message) bool { return m.Role == llm.User && m.Sender != "" }
func byTool(m *history.Message) bool   { return m.Role == llm.Tool }

// count goes on to the next message.
func (f *facts) count(m *history.Message) {
	switch {
	case byPerson(m) && f.open:
		f.heard[len(f.heard)-1] += "\n" + m.Text
	case m.Role == llm.User:
		f.begin(m)
	case byTool(m):
		f.result(m)
	case len(m.Calls) > 0:
		f.called(m.Calls)
	default:
		f.answered(m.Text)
	}
}

// begin begins a turn.
func (f *facts) begin(m *history.Message) {
	f.open = byPerson(m)
	f.event, f.acted, f.rounds, f.errors, f.failing = !f.open, false, 0, 0, 0
	f.same, f.again, f.last, f.seen, f.names = 0, 0, "", nil, nil
	if f.open {
		f.heard = append(f.heard, m.Text)
		f.sinceTool++
		f.sinceMemory++
		f.sinceTask++
	}
}

func (f *facts) called(calls []llm.ToolCall) {
	f.open, f.again = false, 0
	f.rounds++
	if f.seen == nil {
		f.seen, f.names = map[string]int{}, map[string]string{}
	}
	for _, c := range calls {
		call := c.Name + "\n" + strings.TrimSpace(c.Arguments)
		if call != f.last {
			f.last, f.same = call, 0
		}
		f.same++
		f.seen[call]++
		f.again = max(f.again, f.seen[call])
		f.names[c.ID] = c.Name
	}
}

func (f *facts) result(m *history.Message) {
	if m.Failed {
		if f.errors++; f.errors == 2 {
			f.failing = f.rounds
		}
		return
	}
	f.errors, f.failing, f.acted, f.sinceTool = 0, 0, true, 0
	switch f.names[m.CallID] {
	case "append_memory":
		f.sinceMemory = 0
	case "task":
		f.sinceTask = 0
	}
}

func (f *facts) answered(text string) {
	f.open = false
	if f.event || len(f.heard) == 0 {
		return
	}
	if f.answer = text; f.acted {
		f.answer = ""
	}
}

// asked reports whether the person asks for something to be kept.
func (f *facts) asked() bool { return asksToKeep(f.heard[len(f.heard)-1]) }

func asksToKeep(text string) bool {
	return skill.FindPhrase(text, asksKeeping) != "" && skill.FindPhrase(text, asksMemory) == ""
}

// personal counts the turns, of those since something was remembered and no more than eight, in
// which the person spoke of themself.
func (f *facts) personal() (n int) {
	for _, said := range f.heard[max(0, len(f.heard)-min(f.sinceMemory, 8)):] {
		if skill.FindPhrase(said, personal) != "" {
			n++
		}
	}
	return n
}

// gatherSteering gathers the notes of the turn: those that came with the person's message, and
// those that come with the newest results of tools.
func gatherSteering(_ context.Context, q *Question) (*Content, error) {
	past := q.turn.History
	last := len(past) - 1
	if q.sources.NoSteering {
		return nil, nil
	}
	says := q.steeringWords() // of a preview too, that tells what is wrong with them
	if last < 0 || past[last].Role == llm.Assistant {
		return nil, nil
	}
	tasks, err := q.tasks()
	if err != nil {
		return nil, err
	}
	said := last
	for said >= 0 && past[said].Role != llm.User {
		said--
	}
	f := facts{openTasks: len(tasks), goal: len(q.turn.Steps) > 0 || q.turn.Pin != ""}
	var notes []note
	for i := range past {
		f.count(&past[i])
		f.recovered = q.recovered && i == last
		now := phase(0)
		switch {
		case i == said && byPerson(&past[i]):
			now = atTurn
		case i == last && byTool(&past[i]):
			now = inLoop
		}
		for rank, r := range rules {
			if r.phase&now != 0 && says[r.name] != "" && r.when(&f) {
				notes = append(notes, note{rank, past[i].ID})
			}
		}
	}
	slices.SortStableFunc(notes, func(a, b note) int { return a.rank - b.rank })
	c := Content{Source: "steering"}
	for _, n := range notes[:min(len(notes), mostNotes)] {
		name := rules[n.rank].name
		c.Lines = append(c.Lines, Line{Text: "- " + says[name], key: noteKey(n.message, name)})
	}
	return q.saidAs(c)
}

func noteKey(message int64, rule string) string { return fmt.Sprintf("%d %s", message, rule) }

// NoteID is the ID of the line in which a message gets the note of a rule.
func NoteID(message int64, rule string) uint64 { return LineID(noteKey(message, rule)) }

// maxWords is how many characters of a rule's words the model reads.
const maxWords = 300

// steeringWords returns what the rules say to a model of this tier when these tools are there, by rule; none
// for a rule that says nothing. English stands in for a language that has none.
func (q *Question) steeringWords() map[string]string {
	file := "prompts/steering/" + q.sources.SeedLanguage + ".txt"
	t := q.files.read(file)
	if !t.exists {
		file = "prompts/steering/en.txt"
		t = q.files.read(file)
	}
	if t.builtin { // it is as good
		t.problem = missing
	}
	sections, problems := sectionsOf(file, t, q.sources.KnownTools)
	q.problems = append(q.problems, problems...)
	says := map[string]string{}
	for _, s := range sections {
		switch {
		case s.line == 0: // what stands above the first one is for the reader
		case !slices.ContainsFunc(rules, func(r rule) bool { return r.name == s.name }):
			q.Problem(file, s.line, fmt.Sprintf("there is no steering rule %q; its text is never used", s.name))
		case s.on(q.turn.Tools) && s.inTier(q.turn.tier()):
			says[s.name] = OneLine(q.fill(s.text), maxWords)
		}
	}
	return says
}

package section

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/skill"
	words "reverie/internal/text"
)

// Steering: when a conversation goes wrong, a line at the end of the newest message tells the
// model. The lines are a function of the conversation up to that message, so they need no storage;
// once sent, they do not change. People never see them.

// rule is a reason for a note. Its text is the section of its name in
// prompts/steering/LANGUAGE.txt.
type rule struct {
	name  string
	phase phase
	when  func(*facts) bool
}

// phase is when a rule applies.
type phase int

const (
	atTurn phase = 1 << iota // with a person's message
	inLoop                   // with the results of tools
)

// rules are in order of importance: a message gets the note of the first that applies. It comes once in a turn,
// and then rests. The section clock tells the time.
var rules = []rule{
	{"recovered", atTurn | inLoop, func(f *facts) bool { return f.recovered }},
	{"quota", atTurn, func(f *facts) bool { return f.quota }},
	{"repeat", inLoop, func(f *facts) bool { return f.repeats%2 == 0 || f.repeats == 1 && f.repeatsInTurn >= 3 }},
	{"errors", inLoop, func(f *facts) bool { return f.failingSince > 0 && (f.rounds-f.failingSince)%3 == 0 }},
	{"rounds", inLoop, func(f *facts) bool { return f.rounds >= 10 && f.rounds%6 == 4 }},
	{"keep", atTurn, (*facts).asksToRemember},
	{"promised", atTurn, func(f *facts) bool { return promises(f.answer) }},
	{"channel", atTurn, func(f *facts) bool { return f.terminal && len(f.said)%10 == 1 }},
	{"no_steps", atTurn, func(f *facts) bool { return f.bare && f.sinceTool%5 == 2 }},
	{"pending", atTurn, func(f *facts) bool { return f.pinned && f.sinceTool%5 == 3 }},
	{"act", atTurn, func(f *facts) bool { return f.goal && f.sinceTool%5 == 0 }},
	{"remember", atTurn, func(f *facts) bool { return f.sinceMemory%8 == 5 && f.personal() >= 3 && !f.asksToRemember() }},
	{"tasks", atTurn, func(f *facts) bool { return f.openTasks > 0 && f.sinceTask%12 == 0 }},
	{"identity", atTurn, func(f *facts) bool { return f.answers >= 8 || f.answers > 0 && f.tokens >= 700 }},
}

// Phrases from data/words. They match whole words in any case, like the triggers of skills.
var (
	asksKeeping = skill.Finder(words.All("asks_to_keep"))
	asksMemory  = skill.Finder(words.All("asks_memory")) // questions about memories
	personal    = skill.Finder(words.All("personal"))    // a person speaks of themself
	promises    = skill.Finder(words.All("promise"))     // an answer claims that something was stored
)

// state is the present state.
type state struct {
	openTasks int
	goal      bool // there is one, with open steps
	bare      bool // there is one without steps
	pinned    bool // there is a current task
	terminal  bool // the conversation is in a terminal
	quota     bool // since the last message the person was told that a daily limit is nearly reached
	recovered bool // no request was sent since a compaction
}

// facts are the inputs of rules: the history, and the present state. A turn lasts from a person's
// message to the answer.
type facts struct {
	state
	said        []string // the person's words in each turn, the newest last
	sinceTool   int      // turns since a tool did something, including this one
	sinceMemory int      // turns since something was remembered
	sinceTask   int      // turns since the task tool was used
	answers     int      // answers to a person since the note identity, or else in all
	tokens      int      // of the text since then
	answer      string   // the last one, if no tool was used for it

	// Of the turn:
	unanswered    bool              // no answer and no tool call yet
	bySystem      bool              // started by the program, not a person
	usedTool      bool              // a tool did something
	rounds        int               // rounds of tool calls
	errors        int               // failed calls in a row
	failingSince  int               // the round since when that is two or more; 0 = fewer
	repeats       int               // repetitions of the last call in a row
	repeatsInTurn int               // times that a call of the last round was made in the turn
	last          string            // the last call
	callCounts    map[string]int    // number of calls, by call
	toolNames     map[string]string // tools by call id
}

func isFromPerson(m *history.Message) bool { return m.Role == llm.User && m.Sender != "" }
func byTool(m *history.Message) bool       { return m.Role == llm.Tool }

// addMessage adds the next message.
func (f *facts) addMessage(m *history.Message) {
	switch {
	case isFromPerson(m) && f.unanswered:
		f.said[len(f.said)-1] += "\n" + m.Text
	case m.Role == llm.User:
		f.beginTurn(m)
	case byTool(m):
		f.countResult(m)
	case len(m.Calls) > 0:
		f.countCalls(m.Calls)
	default:
		f.countAnswer(m.Text)
	}
}

// beginTurn starts a turn.
func (f *facts) beginTurn(m *history.Message) {
	f.unanswered = isFromPerson(m)
	f.bySystem, f.usedTool, f.rounds, f.errors, f.failingSince = !f.unanswered, false, 0, 0, 0
	f.repeats, f.repeatsInTurn, f.last, f.callCounts, f.toolNames = 0, 0, "", nil, nil
	if f.unanswered {
		f.said = append(f.said, m.Text)
		f.sinceTool++
		f.sinceMemory++
		f.sinceTask++
	}
}

func (f *facts) countCalls(calls []llm.ToolCall) {
	f.unanswered, f.repeatsInTurn = false, 0
	f.rounds++
	if f.callCounts == nil {
		f.callCounts, f.toolNames = map[string]int{}, map[string]string{}
	}
	for _, c := range calls {
		call := c.Name + "\n" + strings.TrimSpace(c.Arguments)
		if call != f.last {
			f.last, f.repeats = call, 0
		}
		f.repeats++
		f.callCounts[call]++
		f.repeatsInTurn = max(f.repeatsInTurn, f.callCounts[call])
		f.toolNames[c.ID] = c.Name
	}
}

func (f *facts) countResult(m *history.Message) {
	if m.Failed {
		if f.errors++; f.errors == 2 {
			f.failingSince = f.rounds
		}
		return
	}
	f.errors, f.failingSince, f.usedTool, f.sinceTool = 0, 0, true, 0
	switch f.toolNames[m.CallID] {
	case "append_memory":
		f.sinceMemory = 0
	case "task":
		f.sinceTask = 0
	}
}

func (f *facts) countAnswer(text string) {
	f.unanswered = false
	if f.bySystem || len(f.said) == 0 {
		return
	}
	f.answers++
	if f.answer = text; f.usedTool {
		f.answer = ""
	}
}

// asksToRemember reports whether the person asks to remember something.
func (f *facts) asksToRemember() bool { return asksToRemember(f.said[len(f.said)-1]) }

func asksToRemember(text string) bool {
	return asksKeeping(text) && !asksMemory(text)
}

// personal counts the turns in which the person spoke of themself, at most eight. Only turns since
// something was remembered count.
func (f *facts) personal() (n int) {
	for _, said := range f.said[max(0, len(f.said)-min(f.sinceMemory, 8)):] {
		if personal(said) {
			n++
		}
	}
	return n
}

// gatherSteering gathers the notes of the turn: those of the person's message, and those of the
// newest tool results.
func gatherSteering(ctx context.Context, q *Question) (*Content, error) {
	past := q.turn.History
	last := len(past) - 1
	if q.sources.NoSteering {
		return nil, nil
	}
	says := q.steeringWords() // in a preview, too, to report problems of the file
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
	quota, err := q.quota(ctx, past, said)
	if err != nil {
		return nil, err
	}
	f := facts{state: state{openTasks: len(tasks), quota: quota, goal: len(q.turn.Steps) > 0 || q.turn.Pin != "", pinned: q.turn.Pin != "",
		bare:     len(q.turn.Steps) == 0 && slices.Contains(q.turn.Goal, "Status: Active"),
		terminal: q.turn.Room == q.sources.Terminal && q.turn.Room != ""}}
	notes := Content{Source: "steering"}
	for i := range past {
		f.addMessage(&past[i])
		f.tokens += llm.EstimateTokens(past[i].Text)
		f.recovered = q.recovered && i == last
		now := phase(0)
		switch {
		case i == said && isFromPerson(&past[i]):
			now = atTurn
		case i == last && byTool(&past[i]):
			now = inLoop
		}
		turn := q.before + len(f.said)
		applies := func(r rule) bool {
			return r.phase&now != 0 && says[r.name] != "" && r.when(&f) && !q.rests(turn, r.name)
		}
		if n := slices.IndexFunc(rules, applies); n >= 0 {
			text := "- " + says[rules[n].name]
			if rules[n].name == "identity" {
				text = q.withStyle(ctx, text)
			}
			notes.Lines = append(notes.Lines, Line{Text: text, key: noteKey(turn, rules[n].name)})
		}
		if i < said && isFromPerson(&past[i]) && slices.Contains(q.noted, NoteID(turn, "identity")) {
			f.answers, f.tokens = 0, 0
		}
	}
	return q.contentOrNil(notes)
}

// rests reports whether one of the four turns before has the note of a rule.
func (q *Question) rests(turn int, rule string) bool {
	return slices.ContainsFunc([]int{1, 2, 3, 4}, func(ago int) bool { return slices.Contains(q.noted, NoteID(turn-ago, rule)) })
}

// withStyle adds the rules of style to a note that can be checked in each answer, as many as 60 tokens hold.
func (q *Question) withStyle(ctx context.Context, note string) string {
	var all []string
	other := &Question{TurnSources: q.TurnSources} // whose problems others report
	if c, _ := gatherManner(ctx, other); c != nil {
		for _, l := range c.Lines {
			all = append(all, strings.TrimPrefix(l.Text, "-"))
		}
	}
	for _, c := range other.style() {
		if c.Field != "voice" && c.Field != "proactivity" {
			all = append(all, " "+c.Rule)
		}
	}
	for i := range all { // where there are too many, others come first the next time
		if longer := note + all[(i+len(q.noted))%len(all)]; llm.EstimateTokens(longer) <= 60 {
			note = longer
		}
	}
	return note
}

// quota reports whether the person of the message past[said] was told of a limit since their message before it.
func (q *Question) quota(ctx context.Context, past []history.Message, said int) (bool, error) {
	if q.sources.Warned == nil || said < 0 {
		return false, nil
	}
	var since time.Time
	for i := range past[:said] {
		if isFromPerson(&past[i]) {
			since = past[i].At
		}
	}
	return q.sources.Warned(ctx, q.turn.User, since, past[said].At)
}

func noteKey(turn int, rule string) string { return fmt.Sprintf("%d %s", turn, rule) }

// NoteID returns the ID of a rule's line in a turn, which counts from 1 in a conversation.
func NoteID(turn int, rule string) uint64 { return LineID(noteKey(turn, rule)) }

// maxWords is the longest text of a rule, in characters.
const maxWords = 300

// steeringWords returns the rules' texts for this tier and these tools, by rule. Missing languages
// fall back to English.
func (q *Question) steeringWords() map[string]string {
	file := "prompts/steering/" + q.sources.SeedLanguage + ".txt"
	t := q.sources.read(file)
	if !t.exists {
		file = "prompts/steering/en.txt"
		t = q.sources.read(file)
	}
	if t.builtin { // already English
		t.problem = missing
	}
	sections, problems := q.sources.sectionsOf(file, t)
	q.problems = append(q.problems, problems...)
	says := map[string]string{}
	for _, s := range sections {
		switch {
		case s.line == 0: // text above the first marker is for readers of the file
		case !slices.ContainsFunc(rules, func(r rule) bool { return r.name == s.name }):
			q.Problem(file, s.line, fmt.Sprintf("there is no steering rule %q; its text is never used", s.name))
		case s.enabled(q.turn.Tools) && s.inTier(q.turn.tier()):
			says[s.name] = OneLine(q.fill(s.text), maxWords)
		}
	}
	return says
}

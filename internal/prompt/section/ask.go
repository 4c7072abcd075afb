package section

import (
	"context"
	"io/fs"
	"sync"
	"time"

	"reverie/internal/memory"
	"reverie/internal/skill"
	"reverie/internal/store"
	"reverie/internal/task"
	"reverie/internal/trust"
)

// Sources is what contributors read besides the turn. All of it must be set but for what says
// what it means that it is not.
type Sources struct {
	Dir          string // the data folder
	Defaults     fs.FS  // built-in data files, for those that are missing
	Name         string // how the assistant is called
	Location     *time.Location
	SeedLanguage string // of SEED_*.txt
	Memory       *memory.Store
	Tasks        *task.Store
	Skills       *skill.Library
	KnownTools   []string                 // names that BASE_PROMPT.txt may mention; nil = any
	Instructions string                   // the owner's, from the configuration; "" = none
	Models       []string                 // what the person may call the models; fewer than two are not told
	Summary      func(tool string) string // of a tool, in one line; nil = none
	Host         string                   // what the machine is called; "" = not told
	System       string                   // what the machine runs; "" = what this program is built for
	NoSteering   bool                     // the model gets no notes on how the conversation goes
}

func (s *Sources) files() *files { return &files{s.Dir, s.Defaults} }

// Marked is a marked section of a prompt file.
type Marked struct{ Name, Text string }

// Read returns the sections of a prompt file for a tier, with all that is wrong with it.
func (s *Sources) Read(file string, tier int) (sections []Marked, problems []store.Problem) {
	all, problems := sectionsOf(file, s.files().read(file), nil)
	for _, m := range all {
		if m.text != "" && m.inTier(tier) {
			sections = append(sections, Marked{m.name, m.text})
		}
	}
	return sections, problems
}

// Look is a turn with its sources, where what several contributors look at is read once.
type Look struct {
	sources   *Sources
	turn      *Turn
	files     *files
	first     int64
	recovered bool

	skills func() ([]skill.Skill, error)
	tasks  func() ([]task.Task, error) // the open ones that may be read where the answer is
	inUse  func() (inUse, error)
}

// Look begins a look at the sources for the turn t. first is the message with which the history
// begins unless it must be cut again; recovered says that the last request was made before a
// summary took the place of older messages.
func (s *Sources) Look(ctx context.Context, t *Turn, first int64, recovered bool) *Look {
	l := &Look{sources: s, turn: t, files: s.files(), first: first, recovered: recovered}
	l.skills = sync.OnceValues(func() ([]skill.Skill, error) { return s.Skills.List(t.Place()) })
	l.tasks = sync.OnceValues(func() ([]task.Task, error) { return s.Tasks.List(ctx, t.Place(), "") })
	l.inUse = sync.OnceValues((&Question{Look: l}).findInUse)
	return l
}

// Ask asks one contributor, which may be at the same time as others.
func (l *Look) Ask(ctx context.Context, c Contributor) (*Content, []store.Problem, error) {
	q := Question{Look: l}
	said, err := c.Gather(ctx, &q)
	return said, q.problems, err
}

// Question is what a contributor is asked. It looks at the turn and changes nothing of it:
// others look at it at the same time.
type Question struct {
	*Look
	problems []store.Problem
}

// Problem notes that something in a file is not as it should be. line 0 = all of it.
func (q *Question) Problem(file string, line int, text string) {
	q.problems = append(q.problems, store.Problem{File: file, Line: line, Text: text})
}

// said returns the content of a text; nothing to say is nil.
func (q *Question) said(source string, lines ...string) (*Content, error) {
	return q.saidAs(Content{Source: source, Lines: linesOf(trust.Owner, lines...)})
}

func (q *Question) saidAs(c Content) (*Content, error) {
	if len(c.Lines) == 1 && c.Lines[0].Text == "" {
		c.Lines = nil
	}
	if len(c.Lines) == 0 && c.None == "" { // a lead alone says nothing
		return nil, nil
	}
	return NewContent(c), nil
}

// roomy has a contributor speak from tier 4 on. Smaller windows have no room for what a
// model can do without.
func roomy(g gather) gather {
	return func(ctx context.Context, q *Question) (*Content, error) {
		if q.turn.tier() < 4 {
			return nil, nil
		}
		return g(ctx, q)
	}
}

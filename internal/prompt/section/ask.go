package section

import (
	"context"
	"io/fs"
	"sync"
	"time"

	"reverie/internal/manner"
	"reverie/internal/memory"
	"reverie/internal/profile"
	"reverie/internal/search"
	"reverie/internal/skill"
	"reverie/internal/store"
	"reverie/internal/task"
	"reverie/internal/trust"
	"reverie/internal/voice"
)

// Sources is what contributors read besides the turn. Fields are required unless their comment
// names a default.
type Sources struct {
	Dir          string // the data folder
	Defaults     fs.FS  // built-in substitutes for missing files
	Name         string // of the assistant
	Profiles     profile.Store
	SeedLanguage string // of SEED_*.txt
	Memory       *memory.Store
	Tasks        *task.Store
	Skills       *skill.Library
	Manner       manner.Store
	KnownTools   []string // names that BASE_PROMPT.txt may mention; nil = any
	Instructions string   // the owner's, from the configuration; "" = none
	Voice        voice.Voice
	Models       []string                 // names of the models for people; fewer than two are not shown
	Summary      func(tool string) string // one line about a tool; nil = none
	// Programs lists the connected programs that the model may use; nil = none.
	Programs func(context.Context) ([]Program, error)

	// Warned reports whether person was told that a daily limit is nearly reached, after since and until a time.
	// nil = there are no limits.
	Warned func(ctx context.Context, person string, since, until time.Time) (bool, error)

	Machine    string // its name and system in words; "" = not shown
	NoSteering bool   // no steering notes
	Terminal   string // the room that is a terminal; "" = none

	cache struct { // by name
		files  sync.Map // as keptFile
		parsed sync.Map // files of sections as parsedFile
	}
}

// Marked is a marked section of a prompt file.
type Marked struct{ Name, Text string }

// Read returns the sections of a prompt file for a tier, and the file's problems.
func (s *Sources) Read(file string, tier int) (sections []Marked, problems []store.Problem) {
	all, problems := s.sectionsOf(file, s.read(file))
	for _, m := range all {
		if m.text != "" && m.inTier(tier) {
			sections = append(sections, Marked{m.name, m.text})
		}
	}
	return sections, problems
}

// TurnSources is a turn with its sources. It caches what several contributors read.
type TurnSources struct {
	sources   *Sources
	turn      *Turn
	first     int64
	before    int
	recovered bool
	openings  Openings
	noted     []uint64

	skills         func() ([]skill.Skill, error)
	tasks          func() ([]task.Task, error) // the open tasks that may be read in this place
	memories       func() ([]memory.Entry, error)
	programs       func() ([]Program, error)
	selectedSkills func() (selectedSkills, error)
}

// Openings returns the first messages of at most most earlier conversations, the newest first, of those that are at
// least so trusted.
type Openings func(ctx context.Context, most int, least trust.Integrity) ([]search.Turn, error)

// ForTurn returns the sources for the turn t. first is the first message of the history unless it must
// be cut again. before is how many turns of the conversation came before the history. recovered means that the last
// request preceded a compaction. noted are the notes of steering, see NoteID.
func (s *Sources) ForTurn(ctx context.Context, t *Turn, first int64, before int, recovered bool, noted []uint64, o Openings) *TurnSources {
	l := &TurnSources{sources: s, turn: t, first: first, before: before, recovered: recovered, noted: noted, openings: o}
	l.skills = sync.OnceValues(func() ([]skill.Skill, error) { return s.Skills.List(t.Place()) })
	l.tasks = sync.OnceValues(func() ([]task.Task, error) { return s.Tasks.List(ctx, t.Place(), "") })
	l.memories = sync.OnceValues(func() ([]memory.Entry, error) { return s.Memory.WorkingSet(ctx, t.Scopes...) })
	l.programs = sync.OnceValues(func() ([]Program, error) {
		if s.Programs == nil {
			return nil, nil
		}
		return s.Programs(ctx)
	})
	l.selectedSkills = sync.OnceValues((&Question{TurnSources: l}).selectSkills)
	return l
}

// Ask runs one contributor. It is safe for concurrent use.
func (l *TurnSources) Ask(ctx context.Context, c Contributor) (*Content, []store.Problem, error) {
	q := Question{TurnSources: l}
	said, err := c.Gather(ctx, &q)
	return said, q.problems, err
}

// Question is the input of a contributor. The turn in it is shared and read-only.
type Question struct {
	*TurnSources
	problems []store.Problem
}

// Problem records a fault in a file. line 0 = the whole file.
func (q *Question) Problem(file string, line int, text string) {
	q.problems = append(q.problems, store.Problem{File: file, Line: line, Text: text})
}

// textContent returns a content of texts, or nil if they are empty.
func (q *Question) textContent(source string, lines ...string) (*Content, error) {
	return q.contentOrNil(Content{Source: source, Lines: linesOf(trust.Owner, lines...)})
}

func (q *Question) contentOrNil(c Content) (*Content, error) {
	if len(c.Lines) == 1 && c.Lines[0].Text == "" {
		c.Lines = nil
	}
	if len(c.Lines) == 0 && c.None == "" { // a lead alone says nothing
		return nil, nil
	}
	return NewContent(c), nil
}

// fromTier4 limits a contributor to tiers 4 and above. Smaller windows have no room for dispensable
// sections.
func fromTier4(g gather) gather {
	return func(ctx context.Context, q *Question) (*Content, error) {
		if q.turn.tier() < 4 {
			return nil, nil
		}
		return g(ctx, q)
	}
}

// Package report is what a dream did, for people.
package report

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"reverie/internal/harvest"
	"reverie/internal/i18n"
	"reverie/internal/memory"
	"reverie/internal/store"
	"reverie/internal/task"
)

// State is how a dream ended.
type State string

// The ends of a dream.
const (
	Applied State = "applied"
	Nothing State = "nothing" // there was nothing to do
	Failed  State = "failed"  // nothing was changed; Reason says why
	Planned State = "planned" // a dry run
	Undone  State = "undone"
)

// Report is what a dream did, for people.
type Report struct {
	Run        string          `json:"run"`
	At         time.Time       `json:"at"`
	Ended      time.Time       `json:"ended"`
	State      State           `json:"state"`
	DryRun     bool            `json:"dry_run,omitempty"`
	Reason     i18n.Text       `json:"reason,omitempty"`
	Active     int             `json:"active"`              // entries that counted before
	Harvested  *harvest.Result `json:"harvested,omitempty"` // what became of the messages it read first; nil = it read none
	Merged     []Change        `json:"merged,omitempty"`
	Grouped    []Change        `json:"grouped,omitempty"`
	Superseded []Change        `json:"superseded,omitempty"`
	Archived   []Change        `json:"archived,omitempty"`
	Back       []Line          `json:"back,omitempty"`     // what counts again, after Undo
	Restored   []Line          `json:"restored,omitempty"` // what counted all the time, and is as it was
	Questions  []Question      `json:"questions,omitempty"`
	Tasks      []TaskChange    `json:"tasks,omitempty"`
	Proposals  []Proposal      `json:"proposals,omitempty"`
	Chores     []i18n.Text     `json:"chores,omitempty"` // what became of tasks, after Undo
	Notes      []string        `json:"notes,omitempty"`  // what did not go as it should
	Cost       Cost            `json:"cost"`
}

// Line is an entry.
type Line struct {
	Scope memory.Scope `json:"scope"`
	ID    string       `json:"id"`
	Text  string       `json:"text"`
}

// Change is what was done to an entry.
type Change struct {
	Line
	By     string `json:"by,omitempty"`
	ByText string `json:"by_text,omitempty"`
	Why    string `json:"why"`
}

// Question is what only a person can decide. Nothing was done about it.
type Question struct {
	Number     int64        `json:"number,omitempty"` // by which it is answered
	Scope      memory.Scope `json:"scope"`
	First      string       `json:"first"`
	FirstText  string       `json:"first_text"`
	FirstAt    time.Time    `json:"first_at"`
	Second     string       `json:"second"`
	SecondText string       `json:"second_text"`
	SecondAt   time.Time    `json:"second_at"`
	Why        i18n.Text    `json:"why"`
}

// Asked asks which of the entries a, the older one, and b holds.
func Asked(a, b memory.Entry, why i18n.Text) Question {
	return Question{Scope: a.Scope, First: a.ID, FirstText: a.Text, FirstAt: a.Since(),
		Second: b.ID, SecondText: b.Text, SecondAt: b.Since(), Why: why}
}

// Add notes what a step of kind did.
func (r *Report) Add(kind memory.StepKind, c Change) {
	to := &r.Archived
	switch kind {
	case memory.MergeStep:
		to = &r.Merged
	case memory.GroupStep:
		to = &r.Grouped
	case memory.SupersedeStep:
		to = &r.Superseded
	}
	*to = append(*to, c)
}

// Write adds r to the report of its day in the data folder.
func (r Report) Write(data string, zone *time.Location) error {
	path := filepath.Join(data, Folder, r.At.In(zone).Format(time.DateOnly)+".md")
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("dream report: %w", err)
	}
	text := string(old)
	if text != "" {
		text = strings.TrimRight(text, "\n") + "\n\n"
	}
	return store.Wrap(store.WriteFile(path, []byte(text+r.Text(zone))), "dream report")
}

// Summary is the report in one line, in the language of say.
func (r Report) Summary(say i18n.Say) string {
	if r.Reason != "" {
		return i18n.New("why.nothing_changed", "why", r.Reason).In(say)
	}
	var parts []i18n.Text
	for _, p := range []struct {
		n   int
		key string
	}{
		{len(r.Merged), "why.merged"}, {len(r.Grouped), "why.grouped"}, {len(r.Superseded), "why.superseded"},
		{len(r.Archived), "why.put_away"},
		{len(r.Back), "why.brought_back"}, {len(r.Tasks), "why.tasks_tidied"}, {len(r.Questions) + len(r.Proposals), "why.questions"},
	} {
		if p.n > 0 {
			parts = append(parts, i18n.New(p.key, "count", p.n))
		}
	}
	if r.State == Undone {
		parts = append([]i18n.Text{i18n.New("why.taken_back")}, r.Chores...)
		if n := len(r.Back) + len(r.Restored); n > 0 || len(r.Chores) == 0 {
			parts[0] = i18n.New("why.dream_undone", "count", n)
		}
	}
	if len(parts) == 0 {
		parts = []i18n.Text{i18n.New("why.nothing_to_do")}
	}
	return i18n.Join(say, parts)
}

// Text is the report as it is shown and written. Texts of memories stand in it word for
// word, each on a line, so that what is forgotten can be taken out again.
func (r Report) Text(zone *time.Location) string {
	var b strings.Builder
	summary := r.Summary(i18n.English)
	summary = strings.ToUpper(summary[:1]) + summary[1:]
	fmt.Fprintf(&b, "## %s, %s\n\n%s.\n", r.At.In(zone).Format("2006-01-02 15:04"), r.Run, summary)
	if read := r.Harvested.String(); read != "" {
		fmt.Fprintf(&b, "\n%s\n", read)
	}
	changes := func(title, word string, list []Change) {
		section(&b, title, list, func(c Change) string {
			line := fmt.Sprintf("%s (%s, %s)", c.Text, c.Scope, c.ID)
			if c.ByText != "" {
				line += fmt.Sprintf("\n  %s: %s (%s)", word, c.ByText, c.By)
			}
			return line
		})
	}
	changes("Merged", "said by", r.Merged)
	changes("The same in other words", "stands for both", r.Grouped)
	changes("Superseded", "holds since", r.Superseded)
	changes("Archived", "", r.Archived)
	section(&b, "Tasks", r.Tasks, func(c TaskChange) string { return fmt.Sprintf("%s (#%s): %s", c.Text, c.ID, c.What) })
	section(&b, "Proposed; nothing was done about it", r.Proposals, func(p Proposal) string { return p.Text.String() })
	section(&b, "Tasks", r.Chores, i18n.Text.String)
	question := func(q Question) string {
		number := ""
		if q.Number > 0 {
			number = fmt.Sprintf("%d. ", q.Number)
		}
		return fmt.Sprintf("%sWhich of the two is right? (%s: %s)\n  %s, %s: %s\n  %s, %s: %s", number, q.Scope, q.Why,
			q.First, q.FirstAt.In(zone).Format(time.DateOnly), q.FirstText,
			q.Second, q.SecondAt.In(zone).Format(time.DateOnly), q.SecondText)
	}
	section(&b, "Questions", r.Questions, question)
	section(&b, "Restored", r.Back, func(l Line) string { return fmt.Sprintf("%s (%s, %s)", l.Text, l.Scope, l.ID) })
	section(&b, "Notes", r.Notes, func(s string) string { return s })
	if c := r.Cost; r.State != Undone {
		fmt.Fprintf(&b, "\nThe model was asked %d times, %d of them to read what was said, about %d pairs (about %d tokens); "+
			"%d pairs were known. A dream may ask %d times, with %d tokens, in %v minutes.\n",
			c.Calls, c.Read, c.Pairs, c.Tokens, c.Cached, c.Most.Calls, c.Most.Tokens, c.Most.Time.Minutes())
	}
	if r.State == Applied {
		fmt.Fprintf(&b, "`bot dream undo %s` reverts all of it.\n", r.Run)
		if r.Harvested != nil && r.Harvested.Added > 0 {
			b.WriteString("What it read stays noted.\n")
		}
	}
	return b.String()
}

// section writes a list with its title, if there is something in it.
func section[T any](b *strings.Builder, title string, list []T, line func(T) string) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(b, "\n### %s\n", title)
	for _, x := range list {
		fmt.Fprintf(b, "- %s\n", line(x))
	}
}

// forgottenLine stands in reports where a text stood.
const forgottenLine = "(forgotten)"

// Forget takes texts out of what dreams left in the data folder dir: their lines out of reports, and
// copies of the database as a whole.
func Forget(dir string, texts []string) error {
	var failed []error
	found, err := filepath.Glob(filepath.Join(dir, Folder, "*.db*"))
	failed = append(failed, err)
	for _, path := range found {
		failed = append(failed, os.Remove(path))
	}
	reports, err := filepath.Glob(filepath.Join(dir, Folder, "*.md"))
	failed = append(failed, err)
	for _, path := range reports {
		failed = append(failed, silence(path, texts))
	}
	return store.Wrap(errors.Join(failed...), "forget what dreams left")
}

func silence(path string, texts []string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	lines := strings.Split(string(b), "\n")
	changed := false
	for i, line := range lines {
		if slices.ContainsFunc(texts, func(t string) bool { return t != "" && strings.Contains(line, t) }) {
			lines[i], changed = forgottenLine, true
		}
	}
	if !changed {
		return nil
	}
	return store.WriteFile(path, []byte(strings.Join(lines, "\n")))
}

// Folder is where copies and reports are, in the data folder.
const Folder = "dreams"

// Digest is what the person of scope is told of r in the morning, in the language of say;
// "" = there is nothing to tell. What others keep for themselves is not in it.
func (r Report) Digest(say i18n.Say, mine func(memory.Scope) bool) string {
	changed := len(r.Merged) + len(r.Grouped) + len(r.Superseded) + len(r.Archived) + len(r.Tasks)
	var b strings.Builder
	if h := r.Harvested; h != nil && h.Added > 0 {
		b.WriteString(say("dream.harvested", "messages", strconv.Itoa(h.Messages), "facts", strconv.Itoa(h.Added)) + "\n")
	}
	switch {
	case r.State == Failed:
		b.WriteString(say("dream.not_tonight", "why", r.Reason.In(say)) + "\n")
	case changed > 0:
		b.WriteString(say("dream.told", "what", r.Summary(say)) + "\n")
	}
	tell := func(scope memory.Scope, line string) {
		if mine(scope) {
			b.WriteString("- " + line + "\n")
		}
	}
	for _, c := range r.Superseded {
		tell(c.Scope, say("dream.no_longer", "text", c.Text)+"\n  "+say("dream.now", "text", c.ByText))
	}
	for _, c := range r.Tasks {
		tell(c.Scope, say("dream.task", "task", c.Text, "id", c.ID, "what", c.What.In(say)))
	}
	for _, p := range r.Proposals {
		tell(p.Scope, p.Text.In(say))
	}
	questions := 0
	for _, q := range r.Questions {
		if mine(q.Scope) {
			questions++
		}
	}
	if questions > 0 {
		b.WriteString("- " + say("dream.asks", "count", strconv.Itoa(questions)) + "\n")
	}
	if b.Len() > 0 && r.Cost.Calls > 0 {
		b.WriteString(say("dream.cost", "calls", strconv.Itoa(r.Cost.Calls), "tokens", strconv.Itoa(r.Cost.Tokens)) + "\n")
	}
	return b.String()
}

// TaskChange is what was done to a task.
type TaskChange struct {
	Scope memory.Scope  `json:"scope"`
	Room  string        `json:"room"`
	ID    string        `json:"id"`
	Text  string        `json:"text"`
	Kind  task.TidyKind `json:"kind"`
	What  i18n.Text     `json:"what"`
}

// Proposal is what a person may want to do. Nothing was done about it.
type Proposal struct {
	Scope memory.Scope `json:"scope"`
	Text  i18n.Text    `json:"text"`

	// Item and Other are what it is about, by which it is known again.
	Item  string `json:"-"`
	Other string `json:"-"`
}

// Cost is what was asked of models.
type Cost struct {
	Calls  int    `json:"calls"`
	Read   int    `json:"harvest"` // of the calls, how many read conversations
	Tokens int    `json:"tokens"`
	Pairs  int    `json:"pairs"`  // asked
	Cached int    `json:"cached"` // known from before
	Most   Budget `json:"most"`   // what it may be
}

// Budget bounds what one dream asks of models.
type Budget struct {
	Calls  int           `json:"calls"`  // 0 = 60
	Tokens int           `json:"tokens"` // of prompts and answers together, about; 0 = 200,000
	Time   time.Duration `json:"time"`   // of all that is asked; 0 = 30 minutes
}

// Package report describes for people what a dream did.
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
	Nothing State = "nothing" // nothing to do
	Failed  State = "failed"  // nothing was changed; Reason says why
	Planned State = "planned" // a dry run
	Undone  State = "undone"
)

// Report is the result of a dream.
type Report struct {
	Run        string          `json:"run"`
	At         time.Time       `json:"at"`
	Ended      time.Time       `json:"ended"`
	State      State           `json:"state"`
	DryRun     bool            `json:"dry_run,omitempty"`
	Reason     i18n.Text       `json:"reason,omitempty"`
	Active     int             `json:"active"`              // number of active entries before
	Harvested  *harvest.Result `json:"harvested,omitempty"` // result of reading messages; nil = none were read
	Learned    []Line          `json:"learned,omitempty"`   // new since the last dream, noted by the assistant itself
	Merged     []Change        `json:"merged,omitempty"`
	Grouped    []Change        `json:"grouped,omitempty"`
	Superseded []Change        `json:"superseded,omitempty"`
	Archived   []Change        `json:"archived,omitempty"`
	Questions  []Question      `json:"questions,omitempty"`
	Tasks      []TaskChange    `json:"tasks,omitempty"`
	Proposals  []Proposal      `json:"proposals,omitempty"`
	Notes      []string        `json:"notes,omitempty"` // problems
	Cost       Cost            `json:"cost"`
	Reverted
}

// Reverted is what Undo did.
type Reverted struct {
	Back     []Line      `json:"back,omitempty"`     // entries that are active again
	Restored []Line      `json:"restored,omitempty"` // active entries with their text of before
	Chores   []i18n.Text `json:"chores,omitempty"`   // effects on tasks
}

// Line is an entry.
type Line struct {
	Scope memory.Scope `json:"scope"`
	ID    string       `json:"id"`
	Text  string       `json:"text"`
}

// Change is a change of an entry.
type Change struct {
	Line
	By     string `json:"by,omitempty"`
	ByText string `json:"by_text,omitempty"`
	Why    string `json:"why"`
}

// Question asks a person which of two entries is true. First is the older one.
type Question struct {
	Number     int64        `json:"number,omitempty"` // for the answer
	Scope      memory.Scope `json:"scope"`
	First      string       `json:"first"`
	FirstText  string       `json:"first_text"`
	FirstAt    time.Time    `json:"first_at"`
	Second     string       `json:"second"`
	SecondText string       `json:"second_text"`
	SecondAt   time.Time    `json:"second_at"`
	Why        i18n.Text    `json:"why"`
}

// Add adds the change of a step of kind.
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

// Write appends r to the report of its day in the data folder.
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
	return i18n.JoinWithCommas(say, parts)
}

// Text returns the report in Markdown. Each memory is verbatim on a line of its own, so that Forget can
// find it.
func (r Report) Text(zone *time.Location) string {
	var b strings.Builder
	summary := r.Summary(i18n.English)
	summary = strings.ToUpper(summary[:1]) + summary[1:]
	fmt.Fprintf(&b, "## %s, %s\n\n%s.\n", r.At.In(zone).Format("2006-01-02 15:04"), r.Run, summary)
	if read := r.Harvested.String(); read != "" {
		fmt.Fprintf(&b, "\n%s\n", read)
	}
	line := func(l Line) string { return fmt.Sprintf("%s (%s, %s)", l.Text, l.Scope, l.ID) }
	section(&b, "Learned", r.Learned, line)
	changes := func(title, word string, list []Change) {
		section(&b, title, list, func(c Change) string {
			text := line(c.Line)
			if c.ByText != "" {
				text += fmt.Sprintf("\n  %s: %s (%s)", word, c.ByText, c.By)
			}
			return text
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
	section(&b, "Restored", r.Back, line)
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

// section writes a list with its title, unless it is empty.
func section[T any](b *strings.Builder, title string, list []T, line func(T) string) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(b, "\n### %s\n", title)
	for _, x := range list {
		fmt.Fprintf(b, "- %s\n", line(x))
	}
}

// forgottenLine replaces forgotten lines in reports.
const forgottenLine = "(forgotten)"

// Forget removes the lines with texts from the reports in the data folder dir. It also removes all
// copies of the database.
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
		failed = append(failed, redactLines(path, texts))
	}
	return store.Wrap(errors.Join(failed...), "forget what dreams left")
}

func redactLines(path string, texts []string) error {
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

// Folder is the folder of copies and reports in the data folder.
const Folder = "dreams"

// mostLearned limits the new facts of a digest.
const mostLearned = 10

// Digest returns the morning message about r for a person, or "". It leaves out scopes that are not mine.
func (r Report) Digest(say i18n.Say, mine func(memory.Scope) bool) string {
	var b strings.Builder
	tell := func(scope memory.Scope, line string) {
		if mine(scope) {
			b.WriteString("- " + line + "\n")
		}
	}
	if news := slices.DeleteFunc(slices.Clone(r.Learned), func(l Line) bool { return !mine(l.Scope) }); len(news) > 0 {
		b.WriteString(say("dream.learned") + "\n")
		for _, l := range news[:min(len(news), mostLearned)] {
			tell(l.Scope, l.Text)
		}
		if more := len(news) - mostLearned; more > 0 {
			b.WriteString("- " + say("dream.rest", "count", strconv.Itoa(more)) + "\n")
		}
		b.WriteString("\n")
	}
	switch {
	case r.State == Failed:
		b.WriteString(say("dream.not_tonight", "why", r.Reason.In(say)) + "\n")
	case len(r.Merged)+len(r.Grouped)+len(r.Superseded)+len(r.Archived)+len(r.Tasks) > 0:
		b.WriteString(say("dream.told", "what", r.Summary(say)) + "\n")
	}
	for _, c := range slices.Concat(r.Merged, r.Grouped) {
		tell(c.Scope, say("dream.twice", "text", c.ByText))
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
	return strings.TrimRight(b.String(), "\n")
}

// TaskChange is a change of a task.
type TaskChange struct {
	Scope memory.Scope  `json:"scope"`
	Room  string        `json:"room"`
	ID    string        `json:"id"`
	Text  string        `json:"text"`
	Kind  task.TidyKind `json:"kind"`
	What  i18n.Text     `json:"what"`
}

// Proposal suggests a change that only a person may make.
type Proposal struct {
	Scope memory.Scope `json:"scope"`
	Text  i18n.Text    `json:"text"`

	// Item and Other identify it, so that it is made once.
	Item  string `json:"-"`
	Other string `json:"-"`
}

// Cost counts the use of models.
type Cost struct {
	Calls  int    `json:"calls"`
	Read   int    `json:"harvest"` // calls that read conversations
	Tokens int    `json:"tokens"`
	Pairs  int    `json:"pairs"`  // asked
	Cached int    `json:"cached"` // with stored verdicts
	Most   Budget `json:"most"`   // limits
}

// Budget limits the use of models by one dream.
type Budget struct {
	Calls  int           `json:"calls"`  // 0 = 60
	Tokens int           `json:"tokens"` // approximate, of prompts and answers; 0 = 200,000
	Time   time.Duration `json:"time"`   // of all requests; 0 = 30 minutes
}

package dream

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"reverie/internal/dream/report"
	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/memory"
	"reverie/internal/skill"
)

const (
	unused       = 90 * 24 * time.Hour
	daysInUse    = 10 // of those, on which people wrote: of less it cannot be told what nobody uses
	comparedBody = 4000
	alikeSkills  = .6 // of the stems of two that are perhaps the same
)

// skills proposes what people may want to do to skills: nothing is done to a file.
func (r *run) skills(ctx context.Context) (proposals []report.Proposal, err error) {
	lib := r.d.cfg.Skills
	if lib == nil {
		return nil, nil
	}
	all, err := lib.All()
	if err != nil {
		return nil, fmt.Errorf("dream: %w", err)
	}
	used, enough, err := r.usedSkills(ctx, all)
	if err != nil {
		return nil, fmt.Errorf("dream: the skills: %w", err)
	}
	for _, s := range all {
		if enough && !used[s.ID()] && !r.young(s) {
			text := i18n.New("why.skill_unused", "name", s.Name, "path", s.Path)
			proposals = append(proposals, report.Proposal{Scope: s.Label.Readers, Text: text, Item: "skills/" + s.ID()})
		}
	}
	return append(proposals, r.twins(all)...), ctx.Err()
}

// young reports whether s was written of late, by whomever, or came with the program.
func (r *run) young(s skill.Skill) bool {
	if r.d.cfg.Default != nil {
		if _, err := fs.Stat(r.d.cfg.Default, "skills/"+s.Place()); err == nil {
			return true
		}
	}
	at, err := r.d.cfg.Skills.Changed(s)
	return err != nil || r.now.Sub(at) < unused
}

// usedSkills finds out which skills a message called for or the model read, of late, and
// which a task speaks of, by id. enough tells whether people wrote often enough, for long
// enough, that it can be known.
func (r *run) usedSkills(ctx context.Context, all []skill.Skill) (used map[string]bool, enough bool, err error) {
	since := r.now.Add(-unused)
	old := false
	err = history.Each(ctx, r.d.cfg.DB, history.Filter{Until: since, Most: 1}, func(history.Message) error { old = true; return nil })
	if err != nil || !old {
		return nil, false, err
	}
	used = map[string]bool{}
	look := func(text, calls string) {
		for _, s := range skill.Match(all, text, len(all)) {
			used[s.ID()] = true
		}
		for _, s := range all {
			if strings.Contains(calls+"\n"+text, "skills/"+s.Place()) {
				used[s.ID()] = true
			}
		}
	}
	days := map[int64]bool{}
	err = history.Each(ctx, r.d.cfg.DB, history.Filter{Since: since, Asking: true}, func(m history.Message) error {
		if m.Sender != "" {
			days[m.At.UnixMilli()/(24*time.Hour).Milliseconds()] = true
		}
		calls := ""
		for _, c := range m.Calls {
			calls += c.Arguments + "\n"
		}
		look(m.Text, calls)
		return nil
	})
	if err != nil || r.d.cfg.Tasks == nil {
		return used, err == nil && len(days) >= daysInUse, err
	}
	open, err := r.d.cfg.Tasks.InRoom(ctx, "", "")
	if err != nil {
		return nil, false, err
	}
	for _, t := range open {
		text := t.Content + "\n" + t.Prompt
		look(text, "")
		for _, s := range all {
			used[s.ID()] = used[s.ID()] || skill.Said(text, []string{s.Name}) != ""
		}
	}
	return used, len(days) >= daysInUse, nil
}

// twins proposes skills of the same readers that seem to be about the same; nothing is done
// about them.
func (r *run) twins(all []skill.Skill) (proposals []report.Proposal) {
	numbers := newNamer()
	said := make([]signature, len(all))
	for i, s := range all {
		body, err := r.d.cfg.Skills.Body(s.ID())
		if err != nil {
			continue
		}
		if len(body) > comparedBody {
			body = strings.ToValidUTF8(body[:comparedBody], "")
		}
		said[i] = numbers.sign(memory.Entry{Text: s.Summary + "\n" + body})
	}
	for i := range all {
		for j := range i {
			if all[i].Label.Readers != all[j].Label.Readers || share(said[i].stems, said[j].stems) < alikeSkills {
				continue
			}
			a, b := all[j], all[i]
			text := i18n.New("why.skills_alike", "first", a.Path, "second", b.Path)
			proposals = append(proposals, report.Proposal{Scope: a.Label.Readers, Text: text,
				Item: "skills/" + a.ID(), Other: "skills/" + b.ID()})
		}
	}
	return proposals
}

package dream

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"time"

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
func (n *night) skills(ctx context.Context) error {
	lib := n.d.cfg.Skills
	if lib == nil {
		return nil
	}
	all, err := lib.All()
	if err != nil {
		return fmt.Errorf("dream: %w", err)
	}
	used, enough, err := n.usedSkills(ctx, all)
	if err != nil {
		return fmt.Errorf("dream: the skills: %w", err)
	}
	for _, s := range all {
		if enough && !used[s.ID()] && !n.young(s) {
			n.propose(s.Label.Readers, "skills/"+s.ID(), "", i18n.New("why.skill_unused", "name", s.Name, "path", s.Path))
		}
	}
	n.twins(all)
	return ctx.Err()
}

// young reports whether s was written of late, by whomever, or came with the program.
func (n *night) young(s skill.Skill) bool {
	if n.d.cfg.Default != nil {
		if _, err := fs.Stat(n.d.cfg.Default, "skills/"+s.Place()); err == nil {
			return true
		}
	}
	at, err := n.d.cfg.Skills.Changed(s)
	return err != nil || n.now.Sub(at) < unused
}

// usedSkills finds out which skills a message called for or the model read, of late, and
// which a task speaks of, by id. enough tells whether people wrote often enough, for long
// enough, that it can be known.
func (n *night) usedSkills(ctx context.Context, all []skill.Skill) (used map[string]bool, enough bool, err error) {
	since := n.now.Add(-unused)
	old := false
	err = history.Each(ctx, n.d.cfg.DB, history.Filter{Until: since, Most: 1}, func(history.Message) error { old = true; return nil })
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
	err = history.Each(ctx, n.d.cfg.DB, history.Filter{Since: since, Asking: true}, func(m history.Message) error {
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
	if err != nil || n.d.cfg.Tasks == nil {
		return used, err == nil && len(days) >= daysInUse, err
	}
	open, err := n.d.cfg.Tasks.InRoom(ctx, "", "")
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
func (n *night) twins(all []skill.Skill) {
	numbers := newNamer()
	said := make([]signature, len(all))
	for i, s := range all {
		body, err := n.d.cfg.Skills.Body(s.ID())
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
			n.propose(a.Label.Readers, "skills/"+a.ID(), "skills/"+b.ID(), i18n.New("why.skills_alike", "first", a.Path, "second", b.Path))
		}
	}
}

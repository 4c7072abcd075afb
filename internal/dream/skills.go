package dream

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"reverie/internal/history"
	"reverie/internal/memory"
	"reverie/internal/skill"
	"reverie/internal/task"
	"reverie/internal/trust"
)

// What is done to skills.
const (
	retire   = "retire"   // nobody used it for long: it is put into the archive
	condense = "condense" // its summary, which is in every prompt, is said in fewer words
)

func isSkillChore(kind string) bool { return kind == retire || kind == condense }

const (
	unused       = 90 * 24 * time.Hour
	daysInUse    = 10  // of those, on which people wrote: of less it cannot be told what nobody uses
	retireMost   = 3   // in one night
	longSummary  = 120 // characters; longer ones are condensed
	condenseMost = 5   // in one night
	comparedBody = 4000
	alikeSkills  = .6 // of the stems of two that are perhaps the same
)

// SkillChange is what was done to a skill.
type SkillChange struct {
	Scope memory.Scope `json:"scope"` // who may read it
	Name  string       `json:"name"`
	Kind  string       `json:"kind"`
	To    string       `json:"to"` // where it lies now, or its summary
	Why   string       `json:"why"`
}

// plannedSkill is what is to be done to the skill called id: its place, or its text, before
// and after.
type plannedSkill struct {
	kind, id, before, after string
	change                  SkillChange
}

// skills plans what is done to skills.
func (n *night) skills(ctx context.Context) error {
	lib := n.d.cfg.Skills
	if lib == nil {
		return nil
	}
	all, err := lib.All()
	if err != nil {
		return fmt.Errorf("dream: %w", err)
	}
	settled := slices.DeleteFunc(slices.Clone(all), n.young)
	if err := n.retire(ctx, settled); err != nil {
		return fmt.Errorf("dream: the skills: %w", err)
	}
	n.twins(all)
	return n.condense(ctx, settled)
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

// retire plans that skills which nobody used for long are put into the archive.
func (n *night) retire(ctx context.Context, all []skill.Skill) error {
	used, enough, err := n.usedSkills(ctx, all)
	if err != nil || !enough {
		return err
	}
	most := retireMost
	for _, s := range all {
		if used[s.ID()] || n.chores.done(retire, s.ID(), n.now.Add(-unused)) || most == 0 {
			continue
		}
		to, err := n.d.cfg.Skills.Archive(s.Place())
		if err != nil {
			return err
		}
		most--
		n.chores.skills = append(n.chores.skills, plannedSkill{retire, s.ID(), s.Place(), to,
			SkillChange{Scope: s.Label.Readers, Name: s.Name, Kind: retire, To: "data/skills/" + to, Why: "nobody used it for 90 days"}})
	}
	return nil
}

// usedSkills finds out which skills a message called for or the model read, of late, and
// which a task speaks of, by id. enough tells whether people wrote often enough, for long
// enough, that it can be known.
func (n *night) usedSkills(ctx context.Context, all []skill.Skill) (used map[string]bool, enough bool, err error) {
	since := n.now.Add(-unused)
	var oldest int64
	if err := n.d.cfg.DB.QueryRowContext(ctx, `SELECT coalesce(min(at), 0) FROM message`).Scan(&oldest); err != nil {
		return nil, false, err
	}
	if oldest == 0 || oldest > since.UnixMilli() {
		return nil, false, nil
	}
	used = map[string]bool{}
	look := func(room, sender, text, calls string) {
		visible := callable(all, room, sender)
		for _, s := range skill.Match(visible, text, len(visible)) {
			used[s.ID()] = true
		}
		for _, s := range all {
			if names(calls, "skills/"+s.Place()) || names(text, "skills/"+s.Place()) {
				used[s.ID()] = true
			}
		}
	}
	rows, err := n.d.cfg.DB.QueryContext(ctx, `SELECT room, sender, text, calls, at FROM message WHERE at >= ? AND (role = 'user' OR calls <> '')`, since.UnixMilli())
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()
	days := map[int64]bool{}
	for rows.Next() {
		var talk, sender, text, calls string
		var at int64
		if err := rows.Scan(&talk, &sender, &text, &calls, &at); err != nil {
			return nil, false, err
		}
		if sender != "" {
			days[at/(24*time.Hour).Milliseconds()] = true
		}
		look(history.Talk(talk).Room(), sender, text, calls)
	}
	if err := rows.Err(); err != nil || n.d.cfg.Tasks == nil {
		return used, err == nil && len(days) >= daysInUse, err
	}
	rooms, err := n.d.cfg.Tasks.Rooms(ctx)
	if err != nil {
		return nil, false, err
	}
	for _, room := range rooms {
		open, err := n.d.cfg.Tasks.InRoom(ctx, room, "")
		if err != nil {
			return nil, false, err
		}
		for _, t := range open {
			if text := t.Content + "\n" + t.Prompt; t.Status == task.Active || t.Status == task.Paused {
				look(room, t.User, text, "")
				for _, s := range callable(all, room, t.User) {
					used[s.ID()] = used[s.ID()] || names(text, s.Name)
				}
			}
		}
	}
	return used, len(days) >= daysInUse, nil
}

// callable are the skills that words of sender in room can call for, if the room is a direct
// chat or not.
func callable(all []skill.Skill, room, sender string) []skill.Skill {
	group, direct := trust.Place{Room: room}, trust.Place{Room: room, Person: sender, Private: true}
	return slices.DeleteFunc(slices.Clone(all), func(s skill.Skill) bool {
		return !group.MayRead(s.Label.Readers) && !direct.MayRead(s.Label.Readers)
	})
}

// names reports whether name stands in text by itself.
func names(text, name string) bool {
	for at := 0; ; {
		i := strings.Index(text[at:], name)
		if i < 0 {
			return false
		}
		end := at + i + len(name)
		after, _ := utf8.DecodeRuneInString(text[end:])
		before, _ := utf8.DecodeLastRuneInString(text[:at+i])
		if !(isWordRune(after) || after == '-' || after == '_') && !(isWordRune(before) || before == '-' || before == '_') {
			return true
		}
		at = end
	}
}

// twins proposes skills of the same readers that seem to be about the same; nothing is done
// about them.
func (n *night) twins(all []skill.Skill) {
	numbers := namer{numbers: map[string]int32{}}
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
			if all[i].Label.Readers != all[j].Label.Readers || len(said[i].stems) == 0 || len(said[j].stems) == 0 || share(said[i].stems, said[j].stems) < alikeSkills || n.leaves(all[i].ID()) || n.leaves(all[j].ID()) {
				continue
			}
			a, b := all[j], all[i]
			n.propose(a.Label.Readers, "skill", "skills/"+a.ID(), "skills/"+b.ID(), fmt.Sprintf("Two skills seem to be about the same: %s and %s. One of the two may be enough.", a.Path, b.Path))
		}
	}
}

// leaves reports whether the plan puts the skill away.
func (n *night) leaves(id string) bool {
	return slices.ContainsFunc(n.chores.skills, func(p plannedSkill) bool { return p.id == id })
}

// condense asks a model for shorter summaries where they are long, and plans those that
// say nothing new and leave no name, number or "not" out. Skills of different readers do not
// come into one request.
func (n *night) condense(ctx context.Context, all []skill.Skill) error {
	long := slices.DeleteFunc(slices.Clone(all), func(s skill.Skill) bool {
		return utf8.RuneCountInString(s.Summary) <= longSummary || n.leaves(s.ID()) || n.chores.done(condense, s.ID(), n.now.Add(-unused)) || n.chores.told[[2]string{"condense " + s.ID(), ""}]
	})
	long = long[:min(len(long), condenseMost)]
	if n.d.cfg.Ask == nil || n.silent {
		return ctx.Err()
	}
	slices.SortStableFunc(long, func(a, b skill.Skill) int { return cmp.Compare(a.Label.Readers, b.Label.Readers) })
	for len(long) > 0 {
		rest := slices.IndexFunc(long, func(s skill.Skill) bool { return s.Label.Readers != long[0].Label.Readers })
		if rest < 0 {
			rest = len(long)
		}
		if more, err := n.condenseSome(ctx, long[:rest]); err != nil || !more {
			return err
		}
		long = long[rest:]
	}
	return ctx.Err()
}

// condenseSome does it for skills of the same readers. more tells whether the model may be
// asked about others.
func (n *night) condenseSome(ctx context.Context, long []skill.Skill) (more bool, err error) {
	nonce := strings.ToLower(rand.Text()[:8])
	var content strings.Builder
	for _, s := range long {
		fmt.Fprintf(&content, "%s: <data %s>%s</data %s>\n", s.Name, nonce, s.Summary, nonce)
	}
	template := strings.NewReplacer("{nonce}", nonce, "{count}", strconv.Itoa(longSummary)).Replace(n.d.template(skillFile))
	prompt := putInto(template, "{content}", strings.TrimRight(content.String(), "\n"))
	if why := n.spent(ctx, prompt); why != "" {
		n.note("%s; the skills wait for the next dream", why)
		return false, ctx.Err()
	}
	answer, err := n.put(ctx, prompt)
	if err != nil {
		if ctx.Err() == nil {
			n.note("the model did not answer about skills, so they stay as they are: %v", err)
		}
		return false, ctx.Err()
	}
	said, err := readSummaries(answer)
	if err != nil {
		n.note("what the model said about skills could not be read, so they stay as they are: %v", err)
	}
	refused := 0
	for _, s := range long {
		if !n.condenseOne(s, said[s.Name]) {
			refused++
			n.chores.proposals = append(n.chores.proposals, Proposal{what: "asked", item: "condense " + s.ID()}) // not to be asked again
		}
	}
	if refused > 0 && err == nil {
		n.note("%d skills keep their summary: the shorter one does not say the same", refused)
	}
	return true, nil
}

func (n *night) condenseOne(s skill.Skill, summary string) bool {
	summary = strings.Join(strings.Fields(summary), " ")
	names := namer{numbers: map[string]int32{}}
	was, is := names.sign(memory.Entry{Text: s.Summary}), names.sign(memory.Entry{Text: summary})
	if utf8.RuneCountInString(summary) > longSummary || len(is.stems) < 2 || !slices.Equal(denied(&was), denied(&is)) || 2*len(is.stems) < len(was.stems) || len(memory.Lost(s.Summary, summary))+len(memory.Lost(summary, s.Summary)) > 0 ||
		slices.ContainsFunc(is.stems, func(x int32) bool { return !has(was.stems, x) }) {
		return false
	}
	old, text, err := n.d.cfg.Skills.Shortened(s.ID(), summary)
	if err != nil {
		n.d.cfg.Log.Info("a skill keeps its summary", "skill", s.ID(), "why", err)
		return false
	}
	n.chores.skills = append(n.chores.skills, plannedSkill{condense, s.ID(), string(old), string(text),
		SkillChange{Scope: s.Label.Readers, Name: s.Name, Kind: condense, To: summary, Why: "its summary was long"}})
	return true
}

// denied are the stems before which s says not, without and the like.
func denied(s *signature) []int32 {
	var out []int32
	for i, t := range s.tokens {
		if !negation.MatchString(" " + t.text + " ") {
			continue
		}
		next := int32(0)
		if j := slices.IndexFunc(s.tokens[i+1:], func(u token) bool { return !u.small }); j >= 0 {
			next = s.tokens[i+1+j].stem
		}
		out = append(out, next)
	}
	return unique(out)
}

// readSummaries finds the one JSON array of summaries in answer, whole.
func readSummaries(answer string) (map[string]string, error) {
	for at := strings.IndexByte(answer, '['); at >= 0; {
		var list []struct {
			Skill   string `json:"skill"`
			Summary string `json:"summary"`
		}
		if err := json.NewDecoder(strings.NewReader(answer[at:])).Decode(&list); err == nil {
			out := map[string]string{}
			for _, x := range list {
				out[x.Skill] = x.Summary
			}
			return out, nil
		}
		next := strings.IndexByte(answer[at+1:], '[')
		if next < 0 {
			break
		}
		at += next + 1
	}
	return nil, errNoArray
}

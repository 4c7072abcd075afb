package dream

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"reverie/internal/dream/report"
	"reverie/internal/harvest"
	"reverie/internal/i18n"
	"reverie/internal/llm/answer"
	"reverie/internal/memory"
	"reverie/internal/store"
	"reverie/internal/task"
)

const (
	urgent     = 2                   // tasks up to this priority are not paused
	forgotten  = 90 * 24 * time.Hour // without a message about it
	alikeTasks = .5                  // share of common stems from which two tasks may be the same
)

// decide plans or proposes what a model suggests about the tasks shown. It counts what lacks evidence or
// exceeds the night's limit.
func (p *taskRoom) decide(shown []*openTask, suggestions []map[string]any) (refused int) {
	named := func(suggestion map[string]any, field string) *openTask {
		id := store.NormalizeID(answer.Text(suggestion, field))
		i := slices.IndexFunc(shown, func(t *openTask) bool { return t.ID == id })
		if i < 0 {
			return nil
		}
		return shown[i]
	}
	times := map[*openTask]int{}
	for _, s := range suggestions {
		times[named(s, "task")]++
	}
	most := max(3, len(p.tasks)/4)
	for _, s := range suggestions {
		t, hasEvidence := named(s, "task"), false
		if t != nil && t.gone { // it is merged already
			continue
		}
		if t != nil && t.plain() && times[t] == 1 && most > 0 {
			switch strings.ToLower(answer.Text(s, "action")) {
			case "complete":
				i := answer.Int(s, "message") - 1
				hasEvidence = i >= 0 && i < len(p.witnesses) && p.askIfDone(t, p.witnesses[i], answer.Text(s, "quote"))
			case "pause":
				hasEvidence = p.pauseTask(t)
			case "merge":
				into := named(s, "into")
				hasEvidence = into != nil && into != t && p.askIfSame(t, into)
			}
		}
		refused, most = refused+flag(!hasEvidence), most-flag(hasEvidence)
	}
	return refused
}

func (p *taskRoom) propose(item, other string, text i18n.Text) {
	if key := [3]string{proposed, item, other}; !p.past[key] {
		p.past[key] = true
		p.proposals = append(p.proposals, report.Proposal{Scope: p.scope, Text: text, Item: item, Other: other})
	}
}

// change plans a step for t, unless it is one of pastChores.
func (p *taskRoom) change(t *openTask, s task.TidyStep, what i18n.Text) bool {
	if p.past[[3]string{string(s.Kind), t.ID}] {
		return false
	}
	t.gone = true
	s.Room, s.ID, s.Updated = p.id, t.ID, t.Updated
	change := report.TaskChange{Scope: p.scope, Room: p.id, ID: t.ID, Text: t.Content, Kind: s.Kind, What: what}
	p.steps = append(p.steps, plannedTask{s, change})
	return true
}

// askIfDone proposes that t is done, if w is later and has the model's quote. Only people can tell
// whether it is done or only planned.
func (p *taskRoom) askIfDone(t *openTask, w witness, quote string) bool {
	if _, why := harvest.FindQuote(w.text, quote); why != "" || !w.at.After(t.Created) || !speaksOf(t, w.text) {
		return false
	}
	p.propose(t.ID, "", i18n.New("why.is_it_done", "task", t.Content, "id", t.ID, "who", w.name))
	return true
}

// speaksOf reports whether text and t share a stem of a content word.
func speaksOf(t *openTask, text string) bool {
	return jaccard(t.said.stems, t.said.names.signatureOf(memory.Entry{Text: text}).stems) > 0
}

// askIfSame proposes that a and b are the same, if they are similar.
func (p *taskRoom) askIfSame(a, b *openTask) bool {
	if !b.plain() || a.User != b.User || a.said.protected != b.said.protected || a.said.negative != b.said.negative ||
		jaccard(a.said.stems, b.said.stems) < alikeTasks {
		return false
	}
	p.propose(min(a.ID, b.ID), max(a.ID, b.ID),
		i18n.New("why.ask_the_same", "first", a.Content, "id", a.ID, "second", b.Content, "other", b.ID))
	return true
}

// sameTasks plans to merge tasks of the same words, without a model. The more urgent or older one stays.
func (p *taskRoom) sameTasks() {
	for i, a := range p.tasks {
		for _, b := range p.tasks[:i] {
			if a.said.plain != b.said.plain || a.gone || b.gone || !a.plain() || !b.plain() || a.User != b.User {
				continue
			}
			goes, stays := a, b
			if a.Priority < b.Priority || a.Priority == b.Priority && a.Created.Before(b.Created) {
				goes, stays = b, a
			}
			merge := task.TidyStep{Kind: task.TidyMerge, Into: stays.ID, IntoAt: stays.Updated,
				Reason: "#" + stays.ID + " asks for the same"}
			if p.change(goes, merge, i18n.New("why.task_same", "id", stays.ID)) {
				stays.gone = true // one step in a night
			}
		}
	}
}

// pauseTask plans to pause t if no change and no message concerned it for long.
func (p *taskRoom) pauseTask(t *openTask) bool {
	if t.Priority <= urgent || p.r.now.Sub(t.Updated) < forgotten || p.r.now.Sub(t.Created) < forgotten ||
		slices.ContainsFunc(p.witnesses, func(w witness) bool { return p.r.now.Sub(w.at) < forgotten && speaksOf(t, w.text) }) {
		return false
	}
	since := t.Updated.In(p.r.d.cfg.Location).Format(time.DateOnly)
	pause := task.TidyStep{Kind: task.TidyPause, Reason: "Nobody has spoken of it since " + since + "; resume it if it is still to be done"}
	return p.change(t, pause, i18n.New("why.task_aside", "why", i18n.New("why.not_spoken_of")))
}

// asTask returns text with its first word in lower case. A verb is no name.
func asTask(text string) string {
	r, size := utf8.DecodeRuneInString(text)
	word, _, _ := strings.Cut(text, " ")
	if strings.ContainsFunc(word[min(size, len(word)):], func(r rune) bool { return unicode.IsUpper(r) || unicode.IsDigit(r) }) {
		return text
	}
	return string(unicode.ToLower(r)) + text[size:]
}

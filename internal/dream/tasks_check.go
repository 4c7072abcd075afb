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
	"reverie/internal/memory"
	"reverie/internal/task"
)

const (
	urgent     = 2                   // tasks up to this priority are not paused
	forgotten  = 90 * 24 * time.Hour // without a message about it
	alikeTasks = .5                  // share of common stems from which two tasks may be the same
)

// decide plans or proposes actions. It counts those that lack evidence or exceed the night's limit.
func (p *roomPlan) decide(shown []*openTask, said []witness, actions []taskAction) (refused int) {
	times := map[string]int{}
	for _, a := range actions {
		times[a.task]++
	}
	most := max(3, len(p.tasks)/4)
	for _, a := range actions {
		i := slices.IndexFunc(shown, func(t *openTask) bool { return t.ID == a.task })
		switch {
		case i >= 0 && shown[i].gone: // it is merged already
		case i < 0 || times[a.task] > 1 || most == 0 || !p.decideOne(shown, said, shown[i], a):
			refused++
		default:
			most--
		}
	}
	return refused
}

func taskID(id string) string {
	return strings.ToLower(strings.TrimPrefix(strings.TrimSpace(id), "#"))
}

// decideOne plans or proposes a if there is evidence for it.
func (p *roomPlan) decideOne(shown []*openTask, said []witness, t *openTask, a taskAction) bool {
	if !t.plain() {
		return false
	}
	switch a.action {
	case "complete":
		return p.askIfDone(said, t, a)
	case "pause":
		return p.pauseTask(t)
	case "merge":
		i := slices.IndexFunc(shown, func(o *openTask) bool { return o.ID == a.into })
		return i >= 0 && shown[i] != t && p.askIfSame(t, shown[i])
	}
	return false
}

// propose adds a proposal.
func (p *roomPlan) propose(item, other string, text i18n.Text) {
	p.proposals = append(p.proposals, report.Proposal{Scope: p.scope, Text: text, Item: item, Other: other})
}

// change plans a step for t. It does not if a dream made the step within taskRest or a person undid
// it.
func (p *roomPlan) change(t *openTask, s task.TidyStep, what i18n.Text) bool {
	if p.before.doneSince(s.Kind, t.ID, p.now.Add(-taskRest)) {
		return false
	}
	t.gone = true
	s.Room, s.ID, s.Updated = p.id, t.ID, t.Updated
	change := report.TaskChange{Scope: p.scope, Room: p.id, ID: t.ID, Text: t.Content, Kind: s.Kind, What: what}
	p.steps = append(p.steps, plannedTask{s, change})
	return true
}

// askIfDone proposes that t is done, if a later message has the model's quote. Only people can tell
// whether it is done or only planned.
func (p *roomPlan) askIfDone(said []witness, t *openTask, a taskAction) bool {
	i := a.message - 1
	if i < 0 || i >= len(said) {
		return false
	}
	w := said[i]
	if _, why := harvest.FindQuote(w.text, a.quote); why != "" || !w.at.After(t.Created) || !speaksOf(t, w.text) {
		return false
	}
	p.propose(t.ID, "", i18n.New("why.is_it_done", "task", t.Content, "id", t.ID, "who", w.name(p.zone)))
	return true
}

// speaksOf reports whether text and t share a stem of a content word.
func speaksOf(t *openTask, text string) bool {
	names := newNamer()
	said := names.signatureOf(memory.Entry{Text: text})
	return jaccard(names.signatureOf(memory.Entry{Text: asTask(t.Content)}).stems, said.stems) > 0
}

// askIfSame proposes that a and b are the same, if they are similar.
func (p *roomPlan) askIfSame(a, b *openTask) bool {
	if !b.plain() || a.User != b.User || a.said.protected != b.said.protected || a.said.negative != b.said.negative ||
		jaccard(a.said.stems, b.said.stems) < alikeTasks {
		return false
	}
	p.propose(min(a.ID, b.ID), max(a.ID, b.ID),
		i18n.New("why.ask_the_same", "first", a.Content, "id", a.ID, "second", b.Content, "other", b.ID))
	return true
}

// mergeTasks plans to merge a and b into the more urgent or older one.
func (p *roomPlan) mergeTasks(a, b *openTask) bool {
	if a.gone || b.gone || !a.plain() || !b.plain() || a.User != b.User {
		return false
	}
	if a.Priority < b.Priority || a.Priority == b.Priority && a.Created.Before(b.Created) {
		a, b = b, a
	}
	merge := task.TidyStep{Kind: task.TidyMerge, Into: b.ID, IntoAt: b.Updated, Reason: "#" + b.ID + " asks for the same"}
	if !p.change(a, merge, i18n.New("why.task_same", "id", b.ID)) {
		return false
	}
	b.gone = true // one step in a night
	return true
}

// pauseTask plans to pause t if no change and no message concerned it for long.
func (p *roomPlan) pauseTask(t *openTask) bool {
	if t.Priority <= urgent || p.now.Sub(t.Updated) < forgotten || p.now.Sub(t.Created) < forgotten ||
		slices.ContainsFunc(p.witnesses, func(w witness) bool { return p.now.Sub(w.at) < forgotten && speaksOf(t, w.text) }) {
		return false
	}
	since := t.Updated.In(p.zone).Format(time.DateOnly)
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

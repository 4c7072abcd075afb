package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/lazyregexp"
	"reverie/internal/memory"
	"reverie/internal/questions"
)

const (
	maxListed   = 50
	listedRunes = 300
)

// listMemories is the command !memory: it lists or searches entries, tells what was said of a topic by time,
// shares an entry, or answers a question.
func listMemories(ctx context.Context, call *Call, args string) (string, error) {
	words := strings.Fields(args)
	if topic, ok := strings.CutPrefix(args, "timeline "); ok {
		return showTimeline(ctx, call, topic)
	}
	if len(words) > 0 && len(words) < 3 && (words[0] == "share" || words[0] == "private") {
		return shareMemory(ctx, call, words[0], strings.Join(words[1:], ""))
	}
	if answer := keepPattern().FindStringSubmatch(args); answer != nil {
		return answerQuestion(ctx, call, answer[1], answer[2])
	}
	// WorkingSet first: it reads hand edits.
	if _, err := call.Memory.WorkingSet(ctx, call.Access.Scopes...); err != nil {
		call.Log.Warn("memory files", "err", err)
	}
	var b strings.Builder
	found := 0
	for _, scope := range call.Access.Scopes {
		one := call.Access
		one.Scopes = []memory.Scope{scope}
		entries, err := call.Memory.List(ctx, one, memory.Filter{Words: args})
		if err != nil {
			return "", err
		}
		found += len(entries)
		if args != "" && len(entries) == 0 {
			continue
		}
		fmt.Fprintf(&b, "**%s** (%d)\n\n", call.Memory.File(scope), len(entries))
		for _, e := range entries[max(0, len(entries)-maxListed):] {
			b.WriteString(entryLine(e))
		}
		if n := len(entries) - maxListed; n > 0 {
			b.WriteString("- " + call.text(ctx, "memory.older", "count", fmt.Sprint(n)) + "\n")
		}
		b.WriteString("\n")
	}
	if found == 0 && args == "" {
		b.WriteString(call.text(ctx, "memory.empty"))
	} else if found == 0 {
		b.WriteString(call.text(ctx, "memory.not_found"))
	}
	return strings.TrimSpace(b.String()), nil
}

const (
	timelineHits  = 60
	timelineRunes = 160
)

// showTimeline lists what was remembered and said of topic, the oldest first.
func showTimeline(ctx context.Context, call *Call, topic string) (string, error) {
	hits, err := call.Memory.Search(ctx, memory.Query{Text: topic, Scopes: call.Access.Scopes, Now: call.In.At.In(call.Zone),
		Turns: true, Past: true, K: timelineHits})
	if err != nil {
		return "", err
	}
	if len(hits) == 0 {
		return call.text(ctx, "memory.not_found"), nil
	}
	most := slices.MaxFunc(hits, func(a, b memory.Hit) int { return cmp.Compare(a.Covered, b.Covered) }).Covered
	hits = slices.DeleteFunc(hits, func(h memory.Hit) bool { return h.Covered < most/2 && !h.Near })
	slices.SortStableFunc(hits, func(a, b memory.Hit) int { return a.At.Compare(b.At) })
	var b strings.Builder
	for _, h := range hits {
		h.Around = nil
		b.WriteString("- " + history.OneLine(strings.TrimPrefix(h.Line(call.Zone, nil), "- "), timelineRunes) + "\n")
	}
	return strings.TrimSpace(b.String()), nil
}

func shareMemory(ctx context.Context, call *Call, verb, id string) (string, error) {
	switch {
	case !call.In.Private:
		return call.text(ctx, "memory.share_where"), nil
	case id == "":
		return call.text(ctx, "memory.share_say", "name", verb), nil
	}
	change, done := call.Memory.Share, "memory.shared"
	if verb == "private" {
		change, done = call.Memory.Unshare, "memory.private"
	}
	e, err := change(ctx, call.Access, id)
	if err != nil {
		return "", err
	}
	return call.text(ctx, done, "text", history.OneLine(e.Text, listedRunes)), nil
}

// refusals maps errors of commands to message texts for people.
var refusals = map[error]string{
	memory.ErrNotFound: "memory.not_found", memory.ErrNotYours: "memory.not_yours", memory.ErrNothing: "memory.nothing",
	memory.ErrGone: "memory.gone", memory.ErrChanged: "memory.changed",
	questions.ErrNoQuestion: "question.unknown", questions.ErrObsolete: "question.unknown",
}

// remember is the command !remember: it stores the person's own words unchanged.
func remember(ctx context.Context, call *Call, args string) (string, error) {
	if args == "" {
		return call.text(ctx, "memory.say"), nil
	}
	e, added, err := call.Memory.Add(ctx, memory.Entry{
		Scope: call.Access.Scopes[0], Text: args, Source: memory.UserExplicit, Integrity: call.Access.Integrity,
		Event: call.In.ID, Quote: args, ObservedAt: call.In.At,
	}, call.In.Sender)
	var why i18n.Text
	switch {
	case errors.As(err, &why):
		return call.text(ctx, "memory.cannot", "why", call.Messages.Reason(ctx, call.In.Room, why)), nil
	case err != nil:
		return "", err
	case !added:
		return call.text(ctx, "memory.known", "text", history.OneLine(e.Text, listedRunes)), nil
	}
	return call.text(ctx, "memory.noted", "file", call.Memory.File(e.Scope), "text", history.OneLine(e.Text, listedRunes)), nil
}

// forget is the command !forget. It cannot be undone, so it forgets only by ID; search words list
// the entries with their IDs. The reply is stored, so it does not repeat the forgotten text.
func forget(ctx context.Context, call *Call, args string) (string, error) {
	if args == "" {
		return call.text(ctx, "memory.forget_say"), nil
	}
	a := call.Access
	found, exact, err := call.Memory.Find(ctx, a, args)
	if err != nil {
		return "", err
	}
	if !exact {
		var b strings.Builder
		b.WriteString(call.text(ctx, "memory.which", "count", fmt.Sprint(len(found))) + "\n\n")
		for _, e := range found[max(0, len(found)-maxListed):] {
			b.WriteString(entryLine(e))
		}
		return b.String(), nil
	}
	done, err := call.Memory.Forget(ctx, a, found[0].ID)
	if err != nil {
		return "", err
	}
	text := call.text(ctx, "memory.forgotten")
	if done.Unindexed > 0 {
		text = i18n.Sentences(text, call.text(ctx, "memory.unfound", "count", fmt.Sprint(done.Unindexed)))
	}
	return i18n.Sentences(text, call.text(ctx, "memory.stays")), nil
}

func undoThis(ctx context.Context, call *Call, args string) (string, error) {
	done, err := call.Memory.Undo(ctx, call.Access, args)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(call.text(ctx, "memory.undone") + "\n\n")
	for _, part := range []struct {
		key     string
		entries []memory.Entry
	}{{"memory.back", done.Restored}, {"memory.away", done.Retired}, {"memory.before", done.Changed}} {
		for _, e := range part.entries {
			b.WriteString("- " + call.text(ctx, part.key, "text", history.OneLine(e.Text, listedRunes)) + "\n")
		}
	}
	return b.String(), nil
}

// keepPattern matches an answer to a question: keep 12a, keep 12 both. Other words are a search.
var keepPattern = lazyregexp.New(`(?i)^keep(?:\s+([0-9]{1,18})\s*(a|b|both))?$`)

// answerQuestion is the command !memory keep: it answers a question, or lists the open ones.
func answerQuestion(ctx context.Context, call *Call, number, choice string) (string, error) {
	if number == "" {
		open, err := openQuestions(ctx, call)
		return cmp.Or(open, call.text(ctx, "question.none")), err
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return "", err // keepPattern limits the digits
	}
	chosen := questions.Choice(strings.ToLower(choice))
	kept, other, err := call.Questions.Answer(ctx, call.Access, n, chosen)
	if err != nil || chosen == questions.KeepBoth {
		return call.text(ctx, "question.both"), err
	}
	return call.text(ctx, "question.kept") + "\n\n- " + call.text(ctx, "dream.now", "text", history.OneLine(kept.Text, listedRunes)) +
		"\n- " + call.text(ctx, "dream.no_longer", "text", history.OneLine(other.Text, listedRunes)), nil
}

// openQuestions lists the open questions about entries visible here; "" if there are no questions.
func openQuestions(ctx context.Context, call *Call) (string, error) {
	list, err := call.Questions.Questions(ctx, call.Access)
	if err != nil || len(list) == 0 {
		return "", err
	}
	return questions.NoticeText(call.Messages.For(ctx, call.In.Room), list, call.Zone), nil
}

// entryLine lists an entry with its ID, for !forget.
func entryLine(e memory.Entry) string {
	return fmt.Sprintf("- %s `%s`\n", history.OneLine(e.Text, listedRunes), e.ID)
}

package session

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"time"

	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/memory"
)

// Questions is how people are asked what only they can decide, in the language of say:
// each by its number, with what to write. Texts of memories stand in it as they are, so that
// what is forgotten is found in it.
func Questions(say i18n.Say, list []memory.Question, zone *time.Location) string {
	var b strings.Builder
	b.WriteString(say("question.lead") + "\n")
	for _, q := range list {
		number := strconv.FormatInt(q.ID, 10)
		b.WriteString("\n" + say("question.which", "number", number, "why", q.Why.In(say)) + "\n\n")
		for i, e := range []memory.Entry{q.First, q.Second} {
			b.WriteString("- " + say("question.one", "letter", "ab"[i:i+1], "date", e.Since().In(zone).Format(time.DateOnly), "text", e.Text) + "\n")
		}
		b.WriteString("\n" + say("question.answer", "number", number) + "\n")
	}
	return b.String()
}

// keepForm is an answer: keep 12a, keep 12 both. Other words are looked for.
var keepForm = regexp.MustCompile(`(?i)^keep(?:\s+([0-9]{1,18})\s*(a|b|both))?$`)

// choose is !memory keep: what a person says to a question, or which are open.
func (s *Session) choose(ctx context.Context, in Inbound, number, choice string) (string, error) {
	if number == "" {
		open, err := s.openQuestions(ctx, in)
		return cmp.Or(open, s.text(ctx, "question.none")), err
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return "", err // the form has room for no more digits
	}
	return s.answer(ctx, in, n, memory.Choice(strings.ToLower(choice)))
}

func (s *Session) answer(ctx context.Context, in Inbound, number int64, choice memory.Choice) (string, error) {
	kept, other, err := s.cfg.Memory.Answer(ctx, s.access(in), number, choice)
	switch {
	case errors.Is(err, memory.ErrNoQuestion):
		return s.text(ctx, "question.unknown"), nil
	case errors.Is(err, memory.ErrSettled):
		return s.text(ctx, "question.settled"), nil
	case err != nil:
		return "", err
	case choice == memory.KeepBoth:
		return s.text(ctx, "question.both"), nil
	}
	return s.text(ctx, "question.kept") + "\n\n- " + s.text(ctx, "dream.now", "text", history.OneLine(kept.Text, listedRunes)) +
		"\n- " + s.text(ctx, "dream.no_longer", "text", history.OneLine(other.Text, listedRunes)), nil
}

// openQuestions are the open questions about what may be seen here, for people; "" = there are none.
func (s *Session) openQuestions(ctx context.Context, in Inbound) (string, error) {
	list, err := s.cfg.Memory.Questions(ctx, s.access(in))
	if err != nil || len(list) == 0 {
		return "", err
	}
	return Questions(s.cfg.Messages.For(ctx, s.room), list, s.cfg.Location), nil
}

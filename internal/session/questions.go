package session

import (
	"context"
	"errors"
	"regexp"
	"slices"
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

// keepForm is an answer: keep 12a, keep 12 both, keep mem_… Other words are looked for.
var keepForm = regexp.MustCompile(`(?i)^keep(?:\s+(?:([0-9]{1,18})(?:\s*(a|b)|\s+(both))?|(mem_[a-z0-9]+)))?$`)

// choose is !memory keep: what a person says to a question, or which are open.
func (s *Session) choose(ctx context.Context, in Inbound, answer []string) (string, error) {
	number, choice, id := answer[1], memory.Choice(strings.ToLower(answer[2]+answer[3])), strings.ToLower(answer[4])
	if choice != "" {
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return "", err // the form has room for no more digits
		}
		return s.answer(ctx, in, n, choice)
	}
	list, err := s.cfg.Memory.Questions(ctx, s.access(in))
	if err != nil {
		return "", err
	}
	list = slices.DeleteFunc(list, func(q memory.Question) bool {
		return number != "" && number != strconv.FormatInt(q.ID, 10) || id != "" && q.First.ID != id && q.Second.ID != id
	})
	switch {
	case len(list) == 0 && number+id == "":
		return s.text(ctx, "question.none"), nil
	case len(list) == 0:
		return s.text(ctx, "question.unknown"), nil
	case len(list) > 1 || id == "":
		return Questions(s.cfg.Messages.For(ctx, s.room), list, s.cfg.Location), nil
	case list[0].First.ID == id:
		return s.answer(ctx, in, list[0].ID, memory.KeepFirst)
	}
	return s.answer(ctx, in, list[0].ID, memory.KeepSecond)
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

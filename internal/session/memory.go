package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"reverie/internal/chat"
	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/memory"
	"reverie/internal/questions"
	"reverie/internal/trust"
)

// access is what the sender of in may see and change here.
func (s *Session) access(in chat.Inbound) memory.Access {
	return memory.Access{Actor: in.Sender, Scopes: s.scopes(in), Owner: s.level(in) == trust.Owner, Integrity: s.level(in)}
}

const (
	mostListed  = 50
	listedRunes = 300
)

// memories is !memory: what is remembered here, or a change of who may see it.
func (s *Session) memories(ctx context.Context, in chat.Inbound, args string) (string, error) {
	words := strings.Fields(args)
	if len(words) > 0 && len(words) < 3 && (words[0] == "share" || words[0] == "private") {
		return s.shareMemory(ctx, in, words[0], strings.Join(words[1:], ""))
	}
	if answer := keepForm.FindStringSubmatch(args); answer != nil {
		return s.choose(ctx, in, answer[1], answer[2])
	}
	// Entries first: it takes in what was edited in the files.
	if _, err := s.cfg.Memory.Entries(ctx, s.scopes(in)...); err != nil {
		s.log.Warn("memory files", "err", err)
	}
	var b strings.Builder
	found := 0
	for _, scope := range s.scopes(in) {
		one := s.access(in)
		one.Scopes = []memory.Scope{scope}
		entries, err := s.cfg.Memory.List(ctx, one, memory.Filter{Words: args})
		if err != nil {
			return "", err
		}
		found += len(entries)
		if args != "" && len(entries) == 0 {
			continue
		}
		fmt.Fprintf(&b, "**%s** (%d)\n\n", s.cfg.Memory.File(scope), len(entries))
		for _, e := range entries[max(0, len(entries)-mostListed):] {
			fmt.Fprintf(&b, "- %s `%s`\n", history.OneLine(e.Text, listedRunes), e.ID)
		}
		if n := len(entries) - mostListed; n > 0 {
			b.WriteString("- " + s.text(ctx, "memory.older", "count", fmt.Sprint(n)) + "\n")
		}
		b.WriteString("\n")
	}
	switch {
	case found == 0 && args == "":
		b.WriteString(s.text(ctx, "memory.empty"))
	case found == 0:
		b.WriteString(s.text(ctx, "memory.not_found"))
	}
	return strings.TrimSpace(b.String()), nil
}

func (s *Session) shareMemory(ctx context.Context, in chat.Inbound, verb, id string) (string, error) {
	switch {
	case !in.Private:
		return s.text(ctx, "memory.share_where"), nil
	case id == "":
		return s.text(ctx, "memory.share_say", "name", verb), nil
	}
	change, done := s.cfg.Memory.Share, "memory.shared"
	if verb == "private" {
		change, done = s.cfg.Memory.Withdraw, "memory.private"
	}
	e, err := change(ctx, s.access(in), id)
	if err != nil {
		return "", err
	}
	return s.text(ctx, done, "text", history.OneLine(e.Text, listedRunes)), nil
}

// refused is what a person reads when a command cannot be done; "" if the error is not for them.
func (s *Session) refused(ctx context.Context, err error) string {
	var large *memory.FileSizeError
	switch {
	case errors.As(err, &large):
		return s.largeFile(ctx, large)
	case errors.Is(err, memory.ErrNotFound):
		return s.text(ctx, "memory.not_found")
	case errors.Is(err, memory.ErrNotYours):
		return s.text(ctx, "memory.not_yours")
	case errors.Is(err, memory.ErrNothing):
		return s.text(ctx, "memory.nothing")
	case errors.Is(err, memory.ErrGone):
		return s.text(ctx, "memory.gone")
	case errors.Is(err, memory.ErrChanged):
		return s.text(ctx, "memory.changed")
	}
	return ""
}

// largeFile says of a memory file that it is too large to be read.
func (s *Session) largeFile(ctx context.Context, e *memory.FileSizeError) string {
	const mebi = 1 << 20
	size, most := (e.Size+mebi-1)/mebi, memory.MaxFile/mebi
	return s.text(ctx, "memory.file_large", "file", e.File, "size", fmt.Sprintf("%d MiB", size), "most", fmt.Sprintf("%d MiB", most))
}

// rememberThis is !remember: the person's own words, noted as they are.
func (s *Session) rememberThis(ctx context.Context, in chat.Inbound, args string) (string, error) {
	if args == "" {
		return s.text(ctx, "memory.say"), nil
	}
	e, added, err := s.cfg.Memory.Add(ctx, memory.Entry{
		Scope: s.scopes(in)[0], Text: args, Source: memory.UserExplicit, Integrity: s.level(in), Event: in.ID, Quote: args, ObservedAt: in.At,
	}, in.Sender)
	var invalid *memory.TextError
	switch {
	case errors.As(err, &invalid):
		return s.text(ctx, "memory.cannot", "why", s.why(ctx, invalid.Why)), nil
	case err != nil:
		return "", err
	case !added:
		return s.text(ctx, "memory.known", "text", history.OneLine(e.Text, listedRunes)), nil
	}
	return s.text(ctx, "memory.noted", "file", s.cfg.Memory.File(e.Scope), "text", history.OneLine(e.Text, listedRunes)), nil
}

// forgetThis is !forget. Nothing takes it back, so words only show what would be forgotten,
// with the ids to say it with. What is forgotten is not repeated: the reply is kept.
func (s *Session) forgetThis(ctx context.Context, in chat.Inbound, args string) (string, error) {
	if args == "" {
		return s.text(ctx, "memory.forget_say"), nil
	}
	a := s.access(in)
	found, exact, err := s.cfg.Memory.Find(ctx, a, args)
	if err != nil {
		return "", err
	}
	if !exact {
		var b strings.Builder
		b.WriteString(s.text(ctx, "memory.which", "count", fmt.Sprint(len(found))) + "\n\n")
		for _, e := range found[max(0, len(found)-mostListed):] {
			fmt.Fprintf(&b, "- %s `%s`\n", history.OneLine(e.Text, listedRunes), e.ID)
		}
		return b.String(), nil
	}
	done, err := s.cfg.Memory.Forget(ctx, a, found[0].ID)
	if err != nil {
		return "", err
	}
	text := s.text(ctx, "memory.forgotten")
	if done.Unfound > 0 {
		text = i18n.Sentences(text, s.text(ctx, "memory.unfound", "count", fmt.Sprint(done.Unfound)))
	}
	if done.Unread != nil {
		text = i18n.Sentences(text, s.largeFile(ctx, done.Unread))
	}
	return i18n.Sentences(text, s.text(ctx, "memory.stays")), nil
}

// undoThis is !undo.
func (s *Session) undoThis(ctx context.Context, in chat.Inbound, args string) (string, error) {
	done, err := s.cfg.Memory.Undo(ctx, s.access(in), args)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(s.text(ctx, "memory.undone") + "\n\n")
	for _, line := range s.undone(ctx, done) {
		b.WriteString("- " + line + "\n")
	}
	return b.String(), nil
}

// undone says what taking back changed, a line each.
func (s *Session) undone(ctx context.Context, done memory.Undone) []string {
	var lines []string
	for _, part := range []struct {
		key     string
		entries []memory.Entry
	}{{"memory.back", done.Back}, {"memory.away", done.Away}, {"memory.before", done.Changed}} {
		for _, e := range part.entries {
			lines = append(lines, s.text(ctx, part.key, "text", history.OneLine(e.Text, listedRunes)))
		}
	}
	return lines
}

// keepForm is an answer: keep 12a, keep 12 both. Other words are looked for.
var keepForm = regexp.MustCompile(`(?i)^keep(?:\s+([0-9]{1,18})\s*(a|b|both))?$`)

// choose is !memory keep: what a person says to a question, or which are open.
func (s *Session) choose(ctx context.Context, in chat.Inbound, number, choice string) (string, error) {
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

func (s *Session) answer(ctx context.Context, in chat.Inbound, number int64, choice memory.Choice) (string, error) {
	kept, other, err := s.cfg.Memory.Answer(ctx, s.access(in), number, choice)
	switch {
	case errors.Is(err, memory.ErrNoQuestion), errors.Is(err, memory.ErrSettled):
		return s.text(ctx, "question.unknown"), nil
	case err != nil:
		return "", err
	case choice == memory.KeepBoth:
		return s.text(ctx, "question.both"), nil
	}
	return s.text(ctx, "question.kept") + "\n\n- " + s.text(ctx, "dream.now", "text", history.OneLine(kept.Text, listedRunes)) +
		"\n- " + s.text(ctx, "dream.no_longer", "text", history.OneLine(other.Text, listedRunes)), nil
}

// openQuestions are the open questions about what may be seen here, for people; "" = there are none.
func (s *Session) openQuestions(ctx context.Context, in chat.Inbound) (string, error) {
	list, err := s.cfg.Memory.Questions(ctx, s.access(in))
	if err != nil || len(list) == 0 {
		return "", err
	}
	return questions.Text(s.cfg.Messages.For(ctx, s.room), list, s.cfg.Location), nil
}

package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/memory"
	"reverie/internal/tool"
)

// access is what the sender of in may see and change here.
func (s *Session) access(in Inbound) memory.Access {
	return memory.Access{Actor: in.Sender, Scopes: s.scopes(in), Owner: slices.Contains(s.cfg.Owners, in.Sender)}
}

const (
	mostListed  = 50
	listedRunes = 300
)

// memories is !memory: what is remembered here, or a change of who may see it.
func (s *Session) memories(ctx context.Context, in Inbound, args string) (string, error) {
	verb, id, _ := strings.Cut(args, " ")
	id = strings.TrimSpace(id)
	if strings.HasPrefix(id, "mem_") && (verb == "share" || verb == "private") {
		return s.shareMemory(ctx, in, verb, id)
	}
	// Entries first: it takes in what was edited in the files.
	if _, err := s.cfg.Memory.Entries(ctx, s.scopes(in)...); err != nil {
		s.log.Warn("memory files", "err", err)
	}
	var b strings.Builder
	for _, scope := range s.scopes(in) {
		one := s.access(in)
		one.Scopes = []memory.Scope{scope}
		entries, err := s.cfg.Memory.List(ctx, one, memory.Filter{Words: args})
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "**%s** (%d)\n\n", s.cfg.Memory.File(scope), len(entries))
		for _, e := range entries[max(0, len(entries)-mostListed):] {
			fmt.Fprintf(&b, "- %s `%s`\n", oneLine(e.Text, listedRunes), e.ID)
		}
		if n := len(entries) - mostListed; n > 0 {
			fmt.Fprintf(&b, "- … and %d older ones in the file\n", n)
		}
		b.WriteString("\n")
	}
	return strings.TrimSpace(b.String()), nil
}

func (s *Session) shareMemory(ctx context.Context, in Inbound, verb, id string) (string, error) {
	if !in.Private {
		return "Who may know something is decided in our direct chat, not in a room with others.", nil
	}
	change, done := s.cfg.Memory.Share, "Everybody who may talk to me can know this now"
	if verb == "private" {
		change, done = s.cfg.Memory.Withdraw, "This is private again"
	}
	e, err := change(ctx, s.access(in), id)
	if text, ok := refused(err); ok {
		return text, nil
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s: %s `!undo` takes it back.", done, oneLine(e.Text, listedRunes)), nil
}

// refused is what a person reads when something cannot be done; false if the
// error is not for them.
func refused(err error) (string, bool) {
	switch {
	case errors.Is(err, memory.ErrNotFound):
		return "I remember nothing like that here. `!memory` lists what I do.", true
	case errors.Is(err, memory.ErrNotYours):
		return "Only the person it belongs to, or an owner, may do that.", true
	case errors.Is(err, memory.ErrNothing):
		return "There is no change of yours here that I could take back.", true
	case errors.Is(err, memory.ErrGone):
		return "Your last change was to have something forgotten. That is gone for good; tell me again what I should know.", true
	case errors.Is(err, memory.ErrChanged):
		return "It was changed again since, so I leave it as it is.", true
	}
	return "", false
}

// rememberThis is !remember: the person's own words, noted as they are.
func (s *Session) rememberThis(ctx context.Context, in Inbound, args string) (string, error) {
	if args == "" {
		return "Say what: `!remember my sister's name is Jana`.", nil
	}
	e, added, err := s.cfg.Memory.Add(ctx, memory.Entry{
		Scope: s.scopes(in)[0], Text: args, Source: memory.UserExplicit, Event: in.ID, Quote: args, ObservedAt: in.At,
	}, in.Sender)
	var invalid *memory.TextError
	switch {
	case errors.As(err, &invalid):
		return "I cannot keep that: " + invalid.Error() + ".", nil
	case err != nil:
		return "", err
	case !added:
		return fmt.Sprintf("I know that already: %s `%s`", oneLine(e.Text, listedRunes), e.ID), nil
	}
	return fmt.Sprintf("Remembered, in %s: %s `%s`", s.cfg.Memory.File(e.Scope), oneLine(e.Text, listedRunes), e.ID), nil
}

// forgetThis is !forget. It does not repeat what it forgot: the reply is kept.
func (s *Session) forgetThis(ctx context.Context, in Inbound, args string) (string, error) {
	if args == "" {
		return "Say what: `!forget` and words of it, or the id that `!memory` shows.", nil
	}
	a := s.access(in)
	found, err := s.cfg.Memory.Find(ctx, a, args)
	if text, ok := refused(err); ok {
		return text, nil
	}
	if err != nil {
		return "", err
	}
	if len(found) > 1 {
		var b strings.Builder
		fmt.Fprintf(&b, "%d memories hold these words. Which one? `!forget` with its id forgets it for good.\n\n", len(found))
		for _, e := range found[max(0, len(found)-mostListed):] {
			fmt.Fprintf(&b, "- %s `%s`\n", oneLine(e.Text, listedRunes), e.ID)
		}
		return b.String(), nil
	}
	done, err := s.cfg.Memory.Forget(ctx, a, found[0].ID)
	if text, ok := refused(err); ok {
		return text, nil
	}
	if err != nil {
		return "", err
	}
	text := "Forgotten for good."
	if done.Entries > 1 {
		text = fmt.Sprintf("Forgotten for good, with %d earlier wordings of it.", done.Entries-1)
	}
	text += " I will not note it again unless you ask me to with `!remember`."
	if done.Unfound > 0 {
		text += fmt.Sprintf(" %d past messages say it in other words; I no longer find them.", done.Unfound)
	}
	return text + " The messages in which you told me stay in this room, and in my transcript, until you delete them here; then they are forgotten as well.", nil
}

// undoThis is !undo.
func (s *Session) undoThis(ctx context.Context, in Inbound, args string) (string, error) {
	if strings.EqualFold(args, "compact") {
		return s.uncompact(ctx, in)
	}
	done, err := s.cfg.Memory.Undo(ctx, s.access(in), args)
	if text, ok := refused(err); ok {
		return text, nil
	}
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("Taken back:\n\n")
	for _, line := range done.Lines() {
		b.WriteString("- " + oneLine(line, listedRunes) + "\n")
	}
	return b.String(), nil
}

// ownTools are the tools whose results are nobody else's words.
var ownTools = []string{"append_memory", "task", "goal", "add_skill", tool.StaySilent}

// provenance adds to a tool's scope which message it acts on, what its sender said
// in this conversation, and whether words from elsewhere were read since.
func provenance(scope tool.Scope, in Inbound, past []history.Message) tool.Scope {
	scope.Event, scope.Quote, scope.At = in.ID, in.Text, in.At
	elsewhere, asking := false, false
	var said, overheard []string
	for _, m := range past {
		if m.Bystanders {
			overheard = append(overheard, m.Quotes())
		}
		before := asking // several messages may be answered together
		asking = m.Role == llm.User
		switch {
		case m.Role == llm.User:
			scope.Bystanders = m.Bystanders || before && scope.Bystanders
			elsewhere = scope.Bystanders || len(m.Files) > 0
			if m.Sender == in.Sender {
				said = append(said, m.Text)
			}
		case slices.ContainsFunc(m.Calls, func(c llm.ToolCall) bool { return !slices.Contains(ownTools, c.Name) }):
			elsewhere = true
		}
	}
	scope.Overheard = strings.Join(overheard, "\n")
	scope.Outside, scope.Agreed = outside(past), agreed(past, in.Sender)
	scope.Elsewhere, scope.Said = elsewhere || in.Event != "", strings.Join(said[max(0, len(said)-20):], "\n")
	return scope
}

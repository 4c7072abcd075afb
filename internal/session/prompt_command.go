package session

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"reverie/internal/prompt"
)

// promptTable is !prompt: what a prompt is made of, in numbers, in the language of the room.
// What stands in files, and what went wrong in detail, is for the operator.
func (s *Session) promptTable(ctx context.Context, r prompt.Report) string {
	var b strings.Builder
	b.WriteString(s.text(ctx, "prompt.columns") + "\n|---|---|---|---|---|\n")
	row := func(zone, section string, tokens int, state prompt.State, note string) {
		said := ""
		if state != "" {
			said = s.text(ctx, "prompt.state."+string(state))
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %s | %s |\n", s.text(ctx, "prompt.zone."+zone), section, tokens, said, strings.ReplaceAll(note, "|", `\|`))
	}
	history := func() {
		note := ""
		if n := r.History.LeftOut; n > 0 {
			note = s.text(ctx, "prompt.left_out", "count", fmt.Sprint(n))
		}
		row("history", s.text(ctx, "count.messages", "count", fmt.Sprint(r.History.Messages)), r.History.Tokens, prompt.Kept, note)
	}
	tail := slices.IndexFunc(r.Sections, func(x prompt.SectionReport) bool { return x.Zone == prompt.Tail })
	for i, x := range r.Sections {
		if i == tail {
			history()
		}
		row(string(x.Zone), x.ID, x.Tokens, x.State, s.promptNote(ctx, x))
	}
	if tail < 0 {
		history()
	}
	row("tools", "", r.ToolTokens, "", "")
	b.WriteString("\n- " + strings.Join(s.promptLines(ctx, r), "\n- "))
	return b.String()
}

// promptNote is the note on a section for people: what was left out of it, never an error
// as it was said.
func (s *Session) promptNote(ctx context.Context, x prompt.SectionReport) string {
	switch {
	case x.State == prompt.Failed:
		return s.text(ctx, "prompt.unread")
	case x.Note != "" && !x.Note.Known():
		return s.text(ctx, "prompt.as_before")
	}
	return x.Note.In(s.cfg.Messages.For(ctx, s.room))
}

// promptLines are what is to be said of a prompt as a whole.
func (s *Session) promptLines(ctx context.Context, r prompt.Report) []string {
	window := s.text(ctx, "prompt.window_unknown")
	if r.Window > 0 {
		window = s.text(ctx, "prompt.window", "window", fmt.Sprint(r.Window), "answer", fmt.Sprint(r.MaxOutput))
	}
	total := s.text(ctx, "prompt.total", "total", fmt.Sprint(r.Total))
	if n := r.Counted(); n != r.Total {
		total = s.text(ctx, "prompt.total_counted", "total", fmt.Sprint(r.Total), "counted", fmt.Sprint(n))
	}
	lines := []string{total, window,
		s.text(ctx, "prompt.prefix", "layout", string(r.Layout), "prefix", r.PrefixHash, "percent", fmt.Sprintf("%.0f", 100*r.Reused))}
	if i := r.Instructions; i != nil {
		lines = append(lines, s.text(ctx, "prompt.instructions", "tokens", fmt.Sprint(i.Tokens), "budget", fmt.Sprint(i.Budget), "tier", fmt.Sprint(i.Tier)))
	}
	if why := s.epochReason(ctx, r.Epoch.Reason); r.Epoch.New {
		lines = append(lines, s.text(ctx, "prompt.epoch_new", "why", why))
	} else {
		lines = append(lines, s.text(ctx, "prompt.epoch", "at", r.Epoch.Started.Format(minute), "why", why))
	}
	words := s.text(ctx, "prompt.words")
	var files []string
	for _, p := range r.Problems {
		switch at := asWord(p.File); {
		case p.File == "":
		case p.Line > 0:
			files = append(files, fmt.Sprintf("%s:%d", at, p.Line))
		default:
			files = append(files, at)
		}
	}
	if n := len(files); n > 0 {
		words = sentences(s.text(ctx, "prompt.problems", "files", strings.Join(slices.Compact(files), ", ")), words)
	}
	return append(lines, words)
}

// epochReasons name the sentences for why the part that stays was made anew; what begins
// with a blank is said of sections.
var epochReasons = map[string]string{
	"new conversation": "prompt.why.conversation", "new day": "prompt.why.day", "history": "prompt.why.history", "many pictures": "prompt.why.pictures",
	"layout changed": "prompt.why.layout", "sources changed": "prompt.why.sources", "stored prefix is damaged": "prompt.why.damaged",
	" changed": "prompt.why.changed", " edited": "prompt.why.edited", " grew": "prompt.why.grew",
}

func (s *Session) epochReason(ctx context.Context, reason string) string {
	if key := epochReasons[reason]; key != "" {
		return s.text(ctx, key)
	}
	if at := strings.LastIndexByte(reason, ' '); at >= 0 && epochReasons[reason[at:]] != "" {
		return s.text(ctx, epochReasons[reason[at:]], "names", reason[:at])
	}
	return reason
}

package session

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"reverie/internal/chat"
	"reverie/internal/goal"
	"reverie/internal/history"
	"reverie/internal/i18n"
)

// goal is the command !goal: it shows the goal of the room, or changes it.
func (s *Session) goal(ctx context.Context, in chat.Inbound, args string) (string, error) {
	word, rest, _ := strings.Cut(args, " ")
	rest = strings.TrimSpace(rest)
	var g goal.Goal
	var err error
	said := ""
	switch strings.ToLower(word) {
	case "":
		return s.showGoal(ctx, in)
	case "history":
		return s.goalHistory(ctx, in)
	case "new":
		if rest == "" {
			return s.text(ctx, "goal.say"), nil
		}
		said = "goal.set"
		g, err = s.goals.Create(ctx, s.caller(in), rest, "")
	case "pause":
		said = "goal.paused"
		g, err = s.goals.Pause(ctx, s.caller(in), rest)
	case "resume":
		said = "goal.resumed"
		g, err = s.goals.Resume(ctx, s.caller(in), rest)
	case "done":
		said = "goal.reached"
		g, err = s.goals.Complete(ctx, s.caller(in), "", cmp.Or(rest, string(i18n.New("why.goal_by_person"))))
	case "drop":
		said = "goal.dropped"
		g, err = s.goals.Abandon(ctx, s.caller(in), "", cmp.Or(rest, string(i18n.New("why.goal_given_up"))))
	default:
		return s.text(ctx, "goal.usage"), nil
	}
	if text, ok := goal.Refusal(err); ok {
		return capital(text.In(s.cfg.Messages.For(ctx, s.room))) + ".", nil
	}
	if err != nil {
		return "", err
	}
	return s.text(ctx, said, "goal", strings.TrimRight(g.Description, ".!")), nil
}

func (s *Session) showGoal(ctx context.Context, in chat.Inbound) (string, error) {
	g, ok, err := s.goals.Active(ctx, s.place(in))
	if err != nil {
		return "", err
	}
	if ok {
		return goalText(s.cfg.Messages.For(ctx, s.room), g), nil
	}
	all, err := s.goals.List(ctx, s.place(in), 1)
	if err != nil {
		return "", err
	}
	if len(all) > 0 && all[0].Status == goal.Paused {
		return s.text(ctx, "goal.waits", "goal", all[0].LineIn(s.cfg.Messages.For(ctx, s.room))), nil
	}
	return s.text(ctx, "goal.none"), nil
}

// mostFiles is how many files of a goal are shown.
const mostFiles = 10

// goalText is a goal in Markdown.
func goalText(say i18n.Say, g goal.Goal) string {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s** (%s", g.Description, say("goal."+g.Priority))
	if p := g.Progress(); p.Total > 0 {
		fmt.Fprintf(&b, ", %s, %d %%", p.In(say), p.Percentage)
	}
	b.WriteString(")\n\n")
	for _, c := range g.Checkpoints {
		fmt.Fprintf(&b, "- %s %d. %s", c.Status.Sign(), c.N, c.Description)
		if c.Status == goal.InProgress {
			b.WriteString(" (" + say("goal.in_progress") + ")")
		}
		b.WriteString("\n")
	}
	for _, d := range g.Decisions {
		if d.Rationale != "" {
			d.Description = say("goal.because", "text", d.Description, "why", d.Rationale)
		}
		if !d.Locked {
			d.Description = say("goal.decided", "text", d.Description)
		}
		b.WriteString("- " + d.LineIn(say) + "\n")
	}
	older := max(0, len(g.Artifacts)-mostFiles)
	if older > 0 {
		b.WriteString("- " + say("goal.older", "count", fmt.Sprint(older)) + "\n")
	}
	for _, a := range g.Artifacts[older:] {
		b.WriteString("- " + say("goal.file."+a.Action, "path", a.Path) + "\n")
	}
	if g.Next != "" {
		b.WriteString("\n" + say("goal.next", "text", g.Next))
	}
	return strings.TrimSpace(b.String())
}

// capital is text with a capital letter.
func capital(text string) string {
	r, n := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(r)) + text[n:]
}

// How much !goal history shows.
const (
	mostGoals  = 15
	mostEvents = 15
)

func (s *Session) goalHistory(ctx context.Context, in chat.Inbound) (string, error) {
	goals, err := s.goals.List(ctx, s.place(in), mostGoals)
	if err != nil {
		return "", err
	}
	if len(goals) == 0 {
		return s.text(ctx, "goal.never"), nil
	}
	var b strings.Builder
	for _, g := range goals {
		b.WriteString("- " + g.LineIn(s.cfg.Messages.For(ctx, s.room)))
		if g.Summary != "" {
			b.WriteString(": " + g.Summary.In(s.cfg.Messages.For(ctx, s.room)))
		}
		b.WriteString("\n")
	}
	events, err := s.goals.Events(ctx, s.place(in), goals[0].ID)
	if err != nil {
		return "", err
	}
	b.WriteString("\n" + s.text(ctx, "goal.lately", "goal", history.OneLine(goals[0].Description, 60)) + "\n\n")
	for _, e := range events[max(0, len(events)-mostEvents):] {
		line := e.At.In(s.cfg.Location).Format(minute) + " " + s.text(ctx, "state."+e.Kind)
		if e.Detail != "" {
			line += ": " + e.Detail.In(s.cfg.Messages.For(ctx, s.room))
		}
		b.WriteString("- " + line + "\n")
	}
	return strings.TrimSpace(b.String()), nil
}

package session

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"reverie/internal/task"
)

const goalUsage = "`!goal` shows the goal. `!goal new TEXT` sets one; `!goal pause`, `!goal resume`, `!goal done`, `!goal drop` and `!goal history` do what they say."

// goal is the command !goal: it shows the goal of the room, or changes it.
func (s *Session) goal(ctx context.Context, in Inbound, args string) (string, error) {
	word, rest, _ := strings.Cut(args, " ")
	rest = strings.TrimSpace(rest)
	goals := s.cfg.Tasks.Goals()
	var goal task.Goal
	var err error
	said := ""
	switch strings.ToLower(word) {
	case "":
		return s.showGoal(ctx)
	case "history":
		return s.goalHistory(ctx)
	case "new":
		if rest == "" {
			return "Say what the goal is: `!goal new TEXT`.", nil
		}
		said = "This is the goal now"
		goal, err = goals.Create(ctx, s.room, in.Sender, rest, "")
	case "pause":
		said = "The goal waits; `!goal resume` goes on with it"
		goal, err = goals.Pause(ctx, s.room, rest)
	case "resume":
		said = "We go on with this goal"
		goal, err = goals.Resume(ctx, s.room, rest)
	case "done":
		said = "The goal is reached"
		goal, err = goals.Complete(ctx, s.room, "", cmp.Or(rest, "The person says that it is reached."))
	case "drop":
		said = "The goal is dropped"
		goal, err = goals.Abandon(ctx, s.room, "", cmp.Or(rest, "The person gave it up."))
	default:
		return goalUsage, nil
	}
	if text, ok := task.Refusal(err); ok {
		return strings.ToUpper(text[:1]) + text[1:] + ".", nil
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s: %s.", said, strings.TrimRight(goal.Description, ".!")), nil
}

func (s *Session) showGoal(ctx context.Context) (string, error) {
	goal, ok, err := s.cfg.Tasks.Goals().Active(ctx, s.room)
	if err != nil {
		return "", err
	}
	if ok {
		return goalText(goal), nil
	}
	all, err := s.cfg.Tasks.Goals().List(ctx, s.room, 1)
	if err != nil {
		return "", err
	}
	if len(all) > 0 && all[0].Status == task.Paused {
		return "No goal is active here. The last one waits: " + all[0].Line() + ". `!goal resume` goes on with it, `!goal new TEXT` sets another.", nil
	}
	return "There is no goal here. `!goal new TEXT` sets one.", nil
}

// mostFiles is how many files of a goal are shown.
const mostFiles = 10

// goalText is a goal in Markdown.
func goalText(g task.Goal) string {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s** (%s priority", g.Description, g.Priority)
	if p := g.Progress(); p.Total > 0 {
		fmt.Fprintf(&b, ", %d of %d steps done, %d %%", p.Completed, p.Total, p.Percentage)
	}
	b.WriteString(")\n\n")
	for _, c := range g.Checkpoints {
		b.WriteString("- " + c.Line() + "\n")
	}
	for _, d := range g.Decisions {
		if d.Rationale != "" {
			d.Description += ", because: " + d.Rationale
		}
		if !d.Locked {
			d.Description = "Decided: " + d.Description
		}
		b.WriteString("- " + d.Line() + "\n")
	}
	older := max(0, len(g.Artifacts)-mostFiles)
	if older > 0 {
		fmt.Fprintf(&b, "- … and %d older files\n", older)
	}
	for _, a := range g.Artifacts[older:] {
		b.WriteString("- " + a.Line() + "\n")
	}
	if g.Next != "" {
		b.WriteString("\nNext: " + g.Next)
	}
	return strings.TrimSpace(b.String())
}

// How much !goal history shows.
const (
	mostGoals  = 15
	mostEvents = 15
)

func (s *Session) goalHistory(ctx context.Context) (string, error) {
	goals, err := s.cfg.Tasks.Goals().List(ctx, s.room, mostGoals)
	if err != nil {
		return "", err
	}
	if len(goals) == 0 {
		return "There has been no goal here yet. `!goal new TEXT` sets one.", nil
	}
	var b strings.Builder
	for _, g := range goals {
		b.WriteString("- " + g.Line())
		if g.Summary != "" {
			b.WriteString(": " + g.Summary)
		}
		b.WriteString("\n")
	}
	events, err := s.cfg.Tasks.Goals().Events(ctx, s.room, goals[0].ID)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(&b, "\nLately, in “%s”:\n\n", oneLine(goals[0].Description, 60))
	for _, e := range events[max(0, len(events)-mostEvents):] {
		line := e.At.In(s.cfg.Location).Format("2006-01-02 15:04") + " " + e.Kind
		if e.Detail != "" {
			line += ": " + e.Detail
		}
		b.WriteString("- " + line + "\n")
	}
	return strings.TrimSpace(b.String()), nil
}

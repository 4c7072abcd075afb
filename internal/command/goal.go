package command

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"reverie/internal/goal"
	"reverie/internal/i18n"
)

// changeGoal is the command !goal: it shows the goal of the room, or changes it.
func changeGoal(ctx context.Context, call *Call, args string) (string, error) {
	word, rest, _ := strings.Cut(args, " ")
	rest = strings.TrimSpace(rest)
	var g goal.Goal
	var err error
	said := ""
	switch strings.ToLower(word) {
	case "":
		return showGoal(ctx, call)
	case "history":
		return goalHistory(ctx, call)
	case "new":
		if rest == "" {
			return call.text(ctx, "goal.say"), nil
		}
		said = "goal.set"
		g, err = call.Goals.Create(ctx, call.Caller, rest, "")
	case "pause":
		said = "goal.paused"
		g, err = call.Goals.Pause(ctx, call.Caller, rest)
	case "resume":
		said = "goal.resumed"
		g, err = call.Goals.Resume(ctx, call.Caller, rest)
	case "done":
		said = "goal.reached"
		g, err = call.Goals.Complete(ctx, call.Caller, "", cmp.Or(rest, string(i18n.New("why.goal_by_person"))))
	case "drop":
		said = "goal.dropped"
		g, err = call.Goals.Abandon(ctx, call.Caller, "", cmp.Or(rest, string(i18n.New("why.goal_given_up"))))
	default:
		return call.text(ctx, "goal.usage"), nil
	}
	if text, ok := goal.Refusal(err); ok {
		return capitalize(text.In(call.Messages.For(ctx, call.In.Room))) + ".", nil
	}
	if err != nil {
		return "", err
	}
	return call.text(ctx, said, "goal", strings.TrimRight(g.Description, ".!")), nil
}

func showGoal(ctx context.Context, call *Call) (string, error) {
	say := call.Messages.For(ctx, call.In.Room)
	g, ok, err := call.Goals.Active(ctx, call.Place)
	if err != nil || ok {
		return goalText(say, g), err
	}
	all, err := call.Goals.List(ctx, call.Place, 1)
	if len(all) > 0 && all[0].Status == goal.Paused {
		return say("goal.waits", "goal", all[0].LineIn(say)), nil
	}
	return say("goal.none"), err
}

// maxFiles is how many files of a goal are shown.
const maxFiles = 10

func goalText(say i18n.Say, g goal.Goal) string {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s** (%s", g.Description, say("goal."+g.Priority))
	if p := g.Progress(); p.Total > 0 {
		fmt.Fprintf(&b, ", %s, %d %%", p.In(say), p.Percentage)
	}
	b.WriteString(")\n\n")
	for _, c := range g.Checkpoints {
		fmt.Fprintf(&b, "- %s %d. %s", c.Status.Emoji(), c.N, c.Description)
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
	older := max(0, len(g.Artifacts)-maxFiles)
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

// capitalize returns text with its first letter in upper case.
func capitalize(text string) string {
	r, n := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(r)) + text[n:]
}

// maxGoals is how many goals !goal history shows.
const maxGoals = 15

func goalHistory(ctx context.Context, call *Call) (string, error) {
	goals, err := call.Goals.List(ctx, call.Place, maxGoals)
	if err != nil || len(goals) == 0 {
		return call.text(ctx, "goal.never"), err
	}
	var b strings.Builder
	say := call.Messages.For(ctx, call.In.Room)
	for _, g := range goals {
		b.WriteString("- " + g.LineIn(say))
		if g.Summary != "" {
			b.WriteString(": " + g.Summary.In(say))
		}
		b.WriteString("\n")
	}
	return strings.TrimSpace(b.String()), nil
}

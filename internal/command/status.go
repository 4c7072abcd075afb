package command

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"reverie/internal/chat"
	"reverie/internal/i18n"
	"reverie/internal/trust"
	"reverie/internal/usage"
)

func showStatus(ctx context.Context, call *Call, _ string) (string, error) {
	past, err := call.History.Load(ctx, call.Talk)
	if err != nil {
		return "", err
	}
	memories, err := call.Memory.Outline(ctx, call.Access.Scopes...)
	if err != nil {
		return "", err
	}
	tasks, err := call.Tasks.List(ctx, call.Place, "")
	if err != nil {
		return "", err
	}
	now, err := modeNow(ctx, call)
	if err != nil {
		return "", err
	}
	window, out := call.Models.Window(now.Role)
	say := call.Messages.For(ctx, call.In.Room)
	lines := []string{
		call.text(ctx, "status.awake", "time", i18n.Span(call.Now().Sub(call.Started).Round(time.Second)).In(say)),
		modeSentence(ctx, call, now),
		call.text(ctx, "status.models", "role", now.Mode.Role, "models", strings.Join(call.Models.Role(now.Role), ", "),
			"window", fmt.Sprint(window), "answer", fmt.Sprint(out)),
		call.text(ctx, "status.talk", "messages", call.text(ctx, "status.messages", "count", fmt.Sprint(len(past))),
			"memories", call.text(ctx, "status.memories", "count", fmt.Sprint(len(memories))),
			"tasks", call.text(ctx, "status.tasks", "count", fmt.Sprint(len(tasks)))),
	}
	of, err := call.Session.WindowStatus(ctx, past)
	if err != nil {
		return "", err
	}
	lines = append(lines, of...)
	if call.Status != nil {
		lines = append(lines, call.Status(ctx, say)...)
	}
	return "- " + strings.Join(lines, "\n- "), nil
}

func verifyPerson(ctx context.Context, call *Call, args string) (string, error) {
	if call.Verify == nil {
		return call.text(ctx, "verify.nobody"), nil
	}
	return call.Verify(ctx, call.In.Sender, call.In.Room, args)
}

func whoami(ctx context.Context, call *Call, _ string) (string, error) {
	role, where := "whoami.allowed", "whoami.room"
	if call.Access.Integrity == trust.Owner {
		role = "whoami.owner"
	}
	if call.In.Private {
		where = "whoami.direct"
	}
	files := make([]string, 0, 2)
	for _, scope := range call.Access.Scopes {
		files = append(files, "`"+call.Memory.File(scope)+"`")
	}
	return fmt.Sprintf("%s %s (%s)", call.text(ctx, role, "person", call.In.Sender), call.text(ctx, where), strings.Join(files, ", ")), nil
}

func listTasks(ctx context.Context, call *Call, _ string) (string, error) {
	tasks, err := call.Tasks.List(ctx, call.Place, "")
	if err != nil || len(tasks) == 0 {
		return call.text(ctx, "tasks.none"), err
	}
	var b strings.Builder
	say := call.Messages.For(ctx, call.In.Room)
	for _, t := range tasks {
		line := t.Line(say)
		if !t.NextDue.IsZero() {
			line = say("tasks.next", "task", line, "at", call.Tasks.FormatTime(say, t, t.NextDue))
		}
		b.WriteString("- " + line + "\n")
	}
	return b.String(), nil
}

// listSubSessions is the command !helpers.
func listSubSessions(ctx context.Context, call *Call, _ string) (string, error) {
	if call.Helpers == nil {
		return call.text(ctx, "helpers.off"), nil
	}
	lines, err := call.Helpers(ctx, call.Place, call.Messages.For(ctx, call.In.Room))
	if err != nil || len(lines) == 0 {
		return call.text(ctx, "helpers.none"), err
	}
	return "- " + strings.Join(lines, "\n- ") + "\n\n" + call.text(ctx, "helpers.stop"), nil
}

// promptReport is the command !prompt: the figures of the next request. Its text is only for the
// operator, see `bot prompt`.
func promptReport(ctx context.Context, call *Call, _ string) (string, error) {
	p, _, err := call.Session.Preview(ctx, call.In)
	r, window := p.Report, call.text(ctx, "prompt.window_unknown")
	if r.Window > 0 {
		window = call.text(ctx, "prompt.window", "window", fmt.Sprint(r.Window), "answer", fmt.Sprint(r.MaxOutput))
	}
	total := call.text(ctx, "prompt.total", "total", fmt.Sprint(r.Total))
	if n := r.Counted(); n != r.Total {
		total = call.text(ctx, "prompt.total_counted", "total", fmt.Sprint(r.Total), "counted", fmt.Sprint(n))
	}
	lines := []string{total, window,
		call.text(ctx, "prompt.prefix", "layout", string(r.Layout), "prefix", r.PrefixHash, "percent", fmt.Sprintf("%.0f", 100*r.Reused))}
	if i := r.Instructions; i != nil {
		lines = append(lines, call.text(ctx, "prompt.instructions", "tokens", fmt.Sprint(i.Tokens), "budget", fmt.Sprint(i.Budget),
			"tier", fmt.Sprint(i.Tier)))
	}
	if r.Epoch.New {
		lines = append(lines, call.text(ctx, "prompt.epoch_new"))
	} else {
		lines = append(lines, call.text(ctx, "prompt.epoch", "at", r.Epoch.Started.Format(minute)))
	}
	return "- " + strings.Join(append(lines, call.text(ctx, "prompt.words")), "\n- "), err
}

// showUsage is the command !usage. Owners see everybody's tokens, in a direct chat; others their own.
func showUsage(ctx context.Context, call *Call, _ string) (string, error) {
	if call.Usage == nil {
		return call.text(ctx, "usage.none"), nil
	}
	owner := call.Access.Integrity == trust.Owner && call.In.Private
	whose := call.In.Sender
	if owner {
		whose = usage.Everybody
	}
	rows, err := call.Usage.LastWeek(ctx, whose)
	if err != nil {
		return "", err
	}
	limits, err := call.Usage.Limits(ctx, call.In.Sender, "")
	if err != nil {
		return "", err
	}
	var lines []string
	for _, r := range rows {
		about := ""
		if r.Estimated {
			about = "~"
		}
		who := cmp.Or(r.Person, call.text(ctx, "usage.background"))
		lines = append(lines, call.text(ctx, "usage.line", "model", Word(r.Model), "person", who,
			"today", about+fmt.Sprint(r.Today), "week", about+fmt.Sprint(r.Week)))
	}
	if len(rows) == 0 {
		lines = append(lines, call.text(ctx, "usage.none"))
	}
	for _, l := range limits {
		if owner || l.Model == "" {
			lines = append(lines, limitSentence(ctx, call, l))
		}
	}
	return call.text(ctx, "usage.head") + "\n\n- " + strings.Join(lines, "\n- "), nil
}

// limitSentence tells how much of a daily limit is used.
func limitSentence(ctx context.Context, call *Call, l usage.Limit) string {
	percent, most := fmt.Sprint(l.Percent()), fmt.Sprint(l.Most)
	if l.Model == "" {
		return call.text(ctx, "usage.limit_own", "percent", percent, "most", most)
	}
	return call.text(ctx, "usage.limit", "model", Word(l.Model), "percent", percent, "most", most)
}

// WarnOfLimits tells the person of call which daily limits are nearly reached, each once a day.
func WarnOfLimits(ctx context.Context, call *Call, to chat.Transport) {
	if call.Usage == nil {
		return
	}
	limits, err := call.Usage.TakeWarnings(ctx, call.In.Sender, call.Access.Integrity == trust.Owner)
	for _, l := range limits {
		if err == nil {
			err = to.Send(ctx, call.In.Room, chat.Outgoing{ID: "limit:" + call.In.ID + ":" + l.Model,
				Thread: call.Talk.Thread(), Notice: true, Text: limitSentence(ctx, call, l)})
		}
	}
	if err != nil {
		call.Log.Error("nobody was told of a limit", "err", err)
	}
}

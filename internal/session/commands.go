package session

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/llm"
	"reverie/internal/prompt"
	"reverie/internal/trust"
)

// command is one word people can say with a "!" or a "/" before it. It answers with
// Markdown, and help.NAME of data/messages says what it is for; commands never call the model, but for !retry.
type command struct {
	name string
	run  func(s *Session, ctx context.Context, in Inbound, args string) (string, error)
}

// commands lists what the bot understands, in the order !help shows it.
func commands() []command {
	return []command{
		{"help", (*Session).help},
		{"new", (*Session).startNew},
		{"retry", nil}, // handled by command: it answers through the model
		{"stop", (*Session).stop},
		{"compact", (*Session).compactNow},
		{"approve", (*Session).approve},
		{"deny", (*Session).deny},
		{"summary", (*Session).showSummary},
		{"status", (*Session).status},
		{"tasks", (*Session).listTasks},
		{"helpers", (*Session).listHelpers},
		{"goal", (*Session).goal},
		{"memory", (*Session).memories},
		{"remember", (*Session).rememberThis},
		{"forget", (*Session).forgetThis},
		{"undo", (*Session).undoThis},
		{"dream", (*Session).dream},
		{"think", (*Session).think},
		{"mode", (*Session).changeMode},
		{"model", (*Session).model},
		{"skills", (*Session).skills},
		{"config", (*Session).config},
		{"prompt", (*Session).promptReport},
		{"verify", (*Session).verify},
		{"whoami", (*Session).whoami},
	}
}

var commandForm = regexp.MustCompile(`(?s)^([!/])([A-Za-z]+)(?:\s+(.*))?$`)

// parseCommand recognises "!name arguments", and with a "/" the names of commands. Matrix
// clients keep most of what begins with "/" for themselves, so "!" is what people are told.
// A sign followed by anything but a letter is ordinary text.
func parseCommand(text string) (name, args string, ok bool) {
	m := commandForm.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return "", "", false
	}
	name = strings.ToLower(m[2])
	if _, known := commandNamed(name); m[1] == "/" && !known {
		return "", "", false
	}
	return name, strings.TrimSpace(m[3]), true
}

// commandNamed is the command name.
func commandNamed(name string) (command, bool) {
	all := commands()
	i := slices.IndexFunc(all, func(c command) bool { return c.name == name })
	if i < 0 {
		return command{}, false
	}
	return all[i], true
}

// alone reports whether in is answered by itself: a command, or a system event.
func (in Inbound) alone() bool {
	_, _, command := parseCommand(in.Text)
	return command || in.Event != "" || in.Change != ""
}

func (s *Session) command(ctx context.Context, in Inbound, name, args string) error {
	c, known := commandNamed(name)
	switch {
	case !known:
		return s.notice(ctx, in, s.unknownCommand(ctx, name))
	case name == "retry":
		return s.retry(ctx, in)
	}
	text, err := c.run(s, ctx, in, args)
	if why := s.refused(ctx, err); why != "" {
		text, err = why, nil
	}
	if err != nil {
		return err
	}
	return s.notice(ctx, in, text)
}

func (s *Session) unknownCommand(ctx context.Context, name string) string {
	var names []string
	for _, c := range commands() {
		names = append(names, c.name)
	}
	return sentences(s.text(ctx, "command.unknown", "name", asWord("!"+name)), s.nearestLine(ctx, name, names, "!"), s.text(ctx, "command.list"))
}

// help is !help: all commands, or the one that args names.
func (s *Session) help(ctx context.Context, _ Inbound, args string) (string, error) {
	if name := strings.ToLower(strings.TrimLeft(args, "!/")); name != "" {
		if _, known := commandNamed(name); !known {
			return s.unknownCommand(ctx, name), nil
		}
		return fmt.Sprintf("`!%s`: %s", name, s.text(ctx, "help."+name)), nil
	}
	var b strings.Builder
	b.WriteString(s.text(ctx, "help") + "\n\n")
	for _, c := range commands() {
		fmt.Fprintf(&b, "- `!%s`: %s\n", c.name, s.text(ctx, "help."+c.name))
	}
	return strings.TrimSpace(b.String()), nil
}

func (s *Session) startNew(ctx context.Context, _ Inbound, _ string) (string, error) {
	s.recallable(ctx)
	s.leaving()
	if err := s.pin(ctx, ""); err != nil {
		return "", err
	}
	if _, err := s.cfg.History.StartNew(ctx, s.talk); err != nil {
		return "", err
	}
	return s.text(ctx, "new"), nil
}

// retry answers the last message of a person anew. What the model had said or
// done since is set aside, not deleted.
func (s *Session) retry(ctx context.Context, in Inbound) error {
	clear(s.paces) // a person asks
	past, err := s.cfg.History.Load(ctx, s.talk)
	if err != nil {
		return err
	}
	for _, m := range slices.Backward(past) {
		if m.EventID == replyID(in.ID) { // answered before an interruption
			if err := s.catchUp(ctx, in); err != nil {
				return err
			}
			if err := s.say(ctx, in, m.Text); err != nil {
				return err
			}
			return s.askGathered(ctx, in.ID)
		}
		if m.Role != llm.User || m.Sender == "" || history.TakenBack(m) { // nobody wrote a system event
			continue
		}
		if err := s.cfg.History.Retire(ctx, s.talk, m.ID); err != nil {
			return err
		}
		return s.respond(ctx, in)
	}
	return s.notice(ctx, in, s.text(ctx, "retry.nothing"))
}

func (s *Session) status(ctx context.Context, in Inbound, _ string) (string, error) {
	past, err := s.cfg.History.Load(ctx, s.talk)
	if err != nil {
		return "", err
	}
	entries, err := s.cfg.Memory.Entries(ctx, s.scopes(in)...)
	if err != nil {
		return "", err
	}
	tasks, err := s.cfg.Tasks.List(ctx, s.place(in), "")
	if err != nil {
		return "", err
	}
	now, err := s.mode(ctx)
	if err != nil {
		return "", err
	}
	window, out := s.cfg.Models.Window(now.role)
	say := s.cfg.Messages.For(ctx, s.room)
	lines := []string{
		s.text(ctx, "status.awake", "time", i18n.Span(s.cfg.Now().Sub(s.began).Round(time.Second)).In(say)),
		s.modeLine(ctx, now),
		s.text(ctx, "status.models", "role", now.mode.roleName(), "models", strings.Join(s.cfg.Models.Role(now.role), ", "), "window", fmt.Sprint(window), "answer", fmt.Sprint(out)),
		s.text(ctx, "status.talk", "messages", s.text(ctx, "status.messages", "count", fmt.Sprint(len(past))),
			"memories", s.text(ctx, "status.memories", "count", fmt.Sprint(len(entries))), "tasks", s.text(ctx, "status.tasks", "count", fmt.Sprint(len(tasks)))),
	}
	tier, err := s.tierLine(ctx, past)
	if err != nil {
		return "", err
	}
	lines = append(lines, tier)
	if last := s.usageLine(ctx); last != "" {
		lines = append(lines, last)
	}
	if s.cfg.Status != nil {
		lines = append(lines, s.cfg.Status(ctx, say)...)
	}
	return "- " + strings.Join(lines, "\n- "), nil
}

func (s *Session) promptReport(ctx context.Context, in Inbound, _ string) (string, error) {
	p, err := s.preview(ctx, in)
	if err != nil {
		return "", err
	}
	return s.promptWords(ctx, p.Report), nil
}

// preview is the prompt that in would get now.
func (s *Session) preview(ctx context.Context, in Inbound) (prompt.Prompt, error) {
	past, err := s.cfg.History.Load(ctx, s.talk)
	if err != nil {
		return prompt.Prompt{}, err
	}
	how, err := s.manner(ctx, s.place(in), past, true)
	if err != nil {
		return prompt.Prompt{}, err
	}
	t := s.promptTurn(in, past, how)
	t.Preview = true
	return s.cfg.Prompt.Assemble(ctx, t)
}

func (s *Session) verify(ctx context.Context, in Inbound, args string) (string, error) {
	if s.cfg.Verify == nil {
		return s.text(ctx, "verify.nobody"), nil
	}
	return s.cfg.Verify(ctx, in.Sender, in.Room, args)
}

func (s *Session) whoami(ctx context.Context, in Inbound, _ string) (string, error) {
	role, where := "whoami.allowed", "whoami.room"
	if s.level(in) == trust.Owner {
		role = "whoami.owner"
	}
	if in.Private {
		where = "whoami.direct"
	}
	files := make([]string, 0, 2)
	for _, scope := range s.scopes(in) {
		files = append(files, "`"+s.cfg.Memory.File(scope)+"`")
	}
	return fmt.Sprintf("%s %s (%s)", s.text(ctx, role, "person", in.Sender), s.text(ctx, where), strings.Join(files, ", ")), nil
}

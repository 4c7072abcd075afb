package session

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"reverie/internal/llm"
)

// command is one word people can say with a "!" before it. It answers with
// Markdown; commands never call the model, but for !retry.
type command struct {
	name, help string
	run        func(s *Session, ctx context.Context, in Inbound, args string) (string, error)
}

// commands lists what the bot understands, in the order !help shows it.
func commands() []command {
	return []command{
		{"help", "this list", (*Session).help},
		{"new", "start a new conversation; what I was told to remember stays; `keep`: with a summary of this one", (*Session).startNew},
		{"retry", "answer your last message again", nil}, // handled by command: it answers through the model
		{"stop", "stop the answer I am working on, and what works in the background for this room", (*Session).stop},
		{"compact", "summarise the older part of this conversation, so that there is room again", (*Session).compactNow},
		{"summary", "what I have of the part that is summarised", (*Session).showSummary},
		{"status", "how I am: model, connection, this conversation", (*Session).status},
		{"tasks", "the open tasks of this room, and when they are due", (*Session).listTasks},
		{"jobs", "what has started by itself here lately, and how it went", (*Session).jobs},
		{"helpers", "what works in the background for this room, and what has lately", (*Session).listHelpers},
		{"goal", "what we work towards here: `new TEXT`, `pause`, `resume`, `done`, `drop` or `history`", (*Session).goal},
		{"memory", "what I remember here, and in which file it stands; with words, what holds them; `share` or `private` and an id: who may know it", (*Session).memories},
		{"remember", "have me remember the words that follow", (*Session).rememberThis},
		{"forget", "have something forgotten for good: its id, or words of it", (*Session).forgetThis},
		{"undo", "take back your last change to what I remember here; `compact`: the last summary of this conversation", (*Session).undoThis},
		{"dream", "put my memory in order now; `status`: how it went last, `undo`: take that back", (*Session).dream},
		{"think", "how much I think before I answer here: `off`, `low`, `medium`, `high`, or `default`", (*Session).think},
		{"mode", "how I work here: " + modeChoice(), (*Session).changeMode},
		{"prompt", "what the model is sent, in numbers", (*Session).promptReport},
		{"verify", "make sure that we are who we seem to be: compare emoji", (*Session).verify},
		{"whoami", "who you are to me, and what I may use here", (*Session).whoami},
	}
}

var commandForm = regexp.MustCompile(`(?s)^!([A-Za-z]+)(?:\s+(.*))?$`)

// parseCommand recognises "!name arguments". A "!" followed by anything but a
// letter is ordinary text.
func parseCommand(text string) (name, args string, ok bool) {
	m := commandForm.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return "", "", false
	}
	return strings.ToLower(m[1]), strings.TrimSpace(m[2]), true
}

// alone reports whether in is answered by itself: a command, or a system event.
func (in Inbound) alone() bool {
	_, _, command := parseCommand(in.Text)
	return command || in.Event != ""
}

func (s *Session) command(ctx context.Context, in Inbound, name, args string) error {
	if name == "retry" {
		return s.retry(ctx, in)
	}
	for _, c := range commands() {
		if c.name != name {
			continue
		}
		text, err := c.run(s, ctx, in, args)
		if err != nil {
			return err
		}
		return s.notice(ctx, in, text)
	}
	return s.notice(ctx, in, fmt.Sprintf("I do not know `!%s`. `!help` lists what I understand.", oneLine(name, 30)))
}

func (s *Session) help(context.Context, Inbound, string) (string, error) {
	var b strings.Builder
	b.WriteString("Just write to me. Besides that I understand:\n\n")
	for _, c := range commands() {
		fmt.Fprintf(&b, "- `!%s`: %s\n", c.name, c.help)
	}
	return b.String(), nil
}

func (s *Session) startNew(ctx context.Context, in Inbound, args string) (string, error) {
	if strings.EqualFold(args, "keep") {
		return s.rollOver(ctx, in)
	}
	s.recallable(ctx)
	s.leaving()
	if err := s.pin(ctx, ""); err != nil {
		return "", err
	}
	if _, err := s.cfg.History.StartNew(ctx, s.room); err != nil {
		return "", err
	}
	return "A new conversation starts here. What I was told to remember, and the tasks, are kept.", nil
}

// retry answers the last message of a person anew. What the model had said or
// done since is set aside, not deleted.
func (s *Session) retry(ctx context.Context, in Inbound) error {
	past, err := s.cfg.History.Load(ctx, s.room)
	if err != nil {
		return err
	}
	for _, m := range slices.Backward(past) {
		if m.EventID == replyID(in.ID) { // answered before an interruption
			if err := s.catchUp(ctx, in.Sender); err != nil {
				return err
			}
			return s.say(ctx, in, m.Text)
		}
		if m.Role != llm.User || m.Sender == "" { // nobody wrote a system event
			continue
		}
		if err := s.cfg.History.Retire(ctx, s.room, m.ID); err != nil {
			return err
		}
		return s.respond(ctx, in)
	}
	return s.notice(ctx, in, "There is nothing to try again yet: this conversation has no message of yours.")
}

func (s *Session) status(ctx context.Context, in Inbound, _ string) (string, error) {
	past, err := s.cfg.History.Load(ctx, s.room)
	if err != nil {
		return "", err
	}
	entries, err := s.cfg.Memory.Entries(ctx, s.scopes(in)...)
	if err != nil {
		return "", err
	}
	tasks, err := s.cfg.Tasks.List(ctx, s.room, "")
	if err != nil {
		return "", err
	}
	now, err := s.mode(ctx)
	if err != nil {
		return "", err
	}
	mode, err := s.modeLine(ctx, now)
	if err != nil {
		return "", err
	}
	window, out := s.cfg.Models.Window(now.role)
	lines := []string{
		fmt.Sprintf("Awake for %s.", s.cfg.Now().Sub(s.began).Round(time.Second)),
		mode,
		fmt.Sprintf("Models for %s, in order: %s (window %d tokens, of which %d for the answer).", now.role, strings.Join(s.cfg.Models.Role(now.role), ", "), window, out),
		fmt.Sprintf("This conversation: %d messages. I remember %d things here; %d open tasks.", len(past), len(entries), len(tasks)),
	}
	tier, err := s.tierLine(ctx, past)
	if err != nil {
		return "", err
	}
	lines = append(lines, tier)
	if last := strings.TrimSpace(s.guardLine() + " " + s.usageLine()); last != "" {
		lines = append(lines, last)
	}
	if s.cfg.Status != nil {
		lines = append(lines, s.cfg.Status(ctx)...)
	}
	return "- " + strings.Join(lines, "\n- "), nil
}

func (s *Session) promptReport(ctx context.Context, in Inbound, _ string) (string, error) {
	past, err := s.cfg.History.Load(ctx, s.room)
	if err != nil {
		return "", err
	}
	how, err := s.manner(ctx, past, true)
	if err != nil {
		return "", err
	}
	t := s.promptTurn(in, past, how)
	t.Preview = true
	p, err := s.cfg.Prompt.Assemble(ctx, t)
	if err != nil {
		return "", err
	}
	return "```\n" + p.Report.String() + "\n```\n`bot prompt` on my machine shows the words.", nil
}

func (s *Session) verify(ctx context.Context, in Inbound, args string) (string, error) {
	if s.cfg.Verify == nil {
		return "There is nothing to verify here: nobody is between us.", nil
	}
	return s.cfg.Verify(ctx, in.Sender, in.Room, args)
}

func (s *Session) whoami(_ context.Context, in Inbound, _ string) (string, error) {
	role := "allowed to talk to me"
	if slices.Contains(s.cfg.Owners, in.Sender) {
		role = "an owner"
	}
	where := "This is a room with others: I use only what was said to me in this room, and what is shared with everybody."
	if in.Private {
		where = "This is a direct chat: I use what you told me in private, and what is shared with everybody."
	}
	files := make([]string, 0, 2)
	for _, scope := range s.scopes(in) {
		files = append(files, "`"+s.cfg.Memory.File(scope)+"`")
	}
	return fmt.Sprintf("You are %s, %s. %s (%s)", in.Sender, role, where, strings.Join(files, ", ")), nil
}

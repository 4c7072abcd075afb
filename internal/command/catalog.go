// Package command implements the chat commands, which begin with "!" or "/". catalog lists them; each
// subject has a file. Only !retry asks the model.
package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"reverie/internal/chat"
	"reverie/internal/goal"
	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/lazyregexp"
	"reverie/internal/llm"
	"reverie/internal/manner"
	"reverie/internal/memory"
	"reverie/internal/profile"
	"reverie/internal/prompt"
	"reverie/internal/questions"
	"reverie/internal/settings"
	"reverie/internal/skill"
	"reverie/internal/store"
	"reverie/internal/task"
	"reverie/internal/text"
	"reverie/internal/trust"
	"reverie/internal/usage"
	"reverie/internal/voice"
)

// catalog lists the commands in the order of !help. The message text help.NAME describes each.
func catalog() []entry {
	return []entry{
		{"help", help},
		{"new", startNew},
		{"retry", retry},
		{"stop", bySession(Session.Stop)},
		{"compact", bySession(Session.CompactNow)},
		{"approve", bySession(Session.Approve)},
		{"deny", bySession(Session.Deny)},
		{"summary", showSummary},
		{"status", showStatus},
		{"usage", showUsage},
		{"tasks", listTasks},
		{"helpers", listSubSessions},
		{"goal", changeGoal},
		{"memory", listMemories},
		{"remember", remember},
		{"forget", forget},
		{"undo", undoThis},
		{"profile", changeProfile},
		{"dream", controlDream},
		{"think", changeThink},
		{"mode", changeMode},
		{"model", changeModel},
		{"persona", changePersona},
		{"skills", listSkills},
		{"voice", showVoice},
		{"config", configure},
		{"prompt", promptReport},
		{"verify", verifyPerson},
		{"web", openInspector},
		{"whoami", whoami},
	}
}

type entry struct {
	name string
	run  run
}

// run runs a command and returns its answer in Markdown.
type run func(ctx context.Context, call *Call, args string) (string, error)

func bySession(do func(s Session, ctx context.Context, in chat.Message, args string) (string, error)) run {
	return func(ctx context.Context, call *Call, args string) (string, error) {
		return do(call.Session, ctx, call.In, args)
	}
}

func startNew(ctx context.Context, call *Call, _ string) (string, error) {
	return call.text(ctx, "new"), call.Session.StartNew(ctx)
}

func retry(ctx context.Context, call *Call, _ string) (string, error) {
	return "", cmp.Or(call.Session.Retry(ctx, call.In), ErrAnswered)
}

// Config holds what the commands of all rooms need.
type Config struct {
	Memory    *memory.Store
	Questions questions.Store
	Tasks     *task.Store
	Goals     *goal.Store
	Skills    *skill.Library
	Manner    manner.Store
	History   *history.Store
	Models    *llm.Models
	Settings  settings.Store
	Usage     *usage.Store // nil = tokens are not counted
	Messages  *settings.Messages
	Voice     voice.Voice
	// Helpers lists the sub-sessions visible at p, a line each. nil = disabled.
	Helpers  func(ctx context.Context, p trust.Place, say i18n.Say) ([]string, error)
	Profiles profile.Store
	Started  time.Time // when the program started
	Now      func() time.Time

	Dreams *Dreams // nil = dreaming is off
	// Status returns more lines for !status, in the language of say; may be nil.
	Status func(ctx context.Context, say i18n.Say) []string
	// Verify runs !verify with its arguments and returns the answer. nil = devices cannot be verified here.
	Verify func(ctx context.Context, person, room, args string) (string, error)
	// Inspector returns a link with which person gets into the inspector, once. nil = it is off.
	Inspector func(person string) string
}

// Session is the conversation in which a command is given. Methods that return a string return the
// command's answer.
type Session interface {
	// StartNew starts a new conversation without a summary.
	StartNew(ctx context.Context) error
	// Retry answers the last message of a person again.
	Retry(ctx context.Context, in chat.Message) error
	// Stop cancels the running work.
	Stop(ctx context.Context, in chat.Message, args string) (string, error)
	// CompactNow compacts the conversation.
	CompactNow(ctx context.Context, in chat.Message, args string) (string, error)
	// Approve approves acts; args are the question's code and optionally "conversation".
	Approve(ctx context.Context, in chat.Message, args string) (string, error)
	// Deny denies the acts of the question code.
	Deny(ctx context.Context, in chat.Message, code string) (string, error)
	// Preview returns the prompt that in would get now, and its tools.
	Preview(ctx context.Context, in chat.Message) (prompt.Prompt, []llm.ToolSpec, error)
	// WindowStatus returns lines for !status about the tier and the window.
	WindowStatus(ctx context.Context, past []history.Message) ([]string, error)
}

// Call is one command given by a person.
type Call struct {
	*Config
	Session Session
	In      chat.Message
	Talk    history.Timeline
	Place   trust.Place   // where the answer is read
	Access  memory.Access // to memory, of the person
	Caller  trust.Caller
	Log     *slog.Logger
	Zone    *time.Location // of times in the answer
}

// text returns a message text in the room's language.
func (c *Call) text(ctx context.Context, key string, fill ...string) string {
	return c.Messages.Text(ctx, c.In.Room, key, fill...)
}

// ErrAnswered means that a command has already sent its answer.
var ErrAnswered = errors.New("command: already answered")

// Run runs the command name and returns its answer.
func Run(ctx context.Context, call *Call, name, args string) (string, error) {
	e, known := lookup(name)
	if !known {
		return unknownCommand(ctx, call, name), nil
	}
	text, err := e.run(ctx, call, args)
	for known, key := range refusals {
		if errors.Is(err, known) {
			return call.text(ctx, key), nil
		}
	}
	return text, err
}

// Names lists the names of all commands.
func Names() []string {
	return store.Map(catalog(), func(e entry) string { return e.name })
}

func unknownCommand(ctx context.Context, call *Call, name string) string {
	return i18n.Sentences(call.text(ctx, "command.unknown", "name", Word("!"+name)), suggestion(ctx, call, name, Names(), "!"),
		call.text(ctx, "command.list"))
}

func help(ctx context.Context, call *Call, args string) (string, error) {
	if name := strings.ToLower(strings.TrimLeft(args, "!/")); name != "" {
		if _, known := lookup(name); !known {
			return unknownCommand(ctx, call, name), nil
		}
		return fmt.Sprintf("`!%s`: %s", name, call.text(ctx, "help."+name)), nil
	}
	var b strings.Builder
	b.WriteString(call.text(ctx, "help") + "\n\n")
	for _, e := range catalog() {
		fmt.Fprintf(&b, "- `!%s`: %s\n", e.name, call.text(ctx, "help."+e.name))
	}
	return strings.TrimSpace(b.String()), nil
}

// suggestion offers the names that are similar to word, each with prefix; "" if none is.
func suggestion(ctx context.Context, call *Call, word string, names []string, prefix string) string {
	near := text.Nearest(word, names)
	if len(near) == 0 {
		return ""
	}
	for i := range near {
		near[i] = prefix + near[i]
	}
	return call.text(ctx, "nearest", "names", codeWords(near))
}

var commandPattern = lazyregexp.New(`(?s)^([!/])([A-Za-z]+)(?:\s+(.*))?$`)

// Parse parses "!name arguments". With "/" it accepts only known names, because Matrix clients handle
// most "/" commands themselves.
func Parse(text string) (name, args string, ok bool) {
	m := commandPattern().FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return "", "", false
	}
	name = strings.ToLower(m[2])
	if _, known := lookup(name); m[1] == "/" && !known {
		return "", "", false
	}
	return name, strings.TrimSpace(m[3]), true
}

func lookup(name string) (entry, bool) {
	i := slices.IndexFunc(catalog(), func(e entry) bool { return e.name == name })
	if i < 0 {
		return entry{}, false
	}
	return catalog()[i], true
}

// AnswerThread returns the thread in which in is answered, by the room's setting: "off" never a thread,
// "always" one that starts at the question, else where it was asked. A command outside of threads gets
// no thread, except !retry, whose thread the transport knows.
func AnswerThread(setting string, in chat.Message) string {
	switch {
	case setting == "off":
		return ""
	case in.Thread != "" || setting != "always":
		return in.Thread
	}
	if _, _, command := Parse(in.Text); command && !IsRetry(in.Text) {
		return ""
	}
	return in.ID
}

// IsRetry reports whether text is the command !retry.
func IsRetry(text string) bool {
	name, _, command := Parse(text)
	return command && name == "retry"
}

// Is reports whether text is a command.
func Is(text string) bool {
	_, _, command := Parse(text)
	return command
}

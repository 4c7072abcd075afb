// Package command has the commands that people say with a "!" or a "/" before them. catalog lists
// them; what they do stands in a file by subject. They never call the model, but for !retry.
package command

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"reverie/internal/chat"
	"reverie/internal/goal"
	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/llm"
	"reverie/internal/memory"
	"reverie/internal/prompt"
	"reverie/internal/questions"
	"reverie/internal/settings"
	"reverie/internal/skill"
	"reverie/internal/task"
	"reverie/internal/trust"
)

// catalog lists what the bot understands, in the order !help shows it: the name, and what it does.
// help.NAME of data/messages says what it is for.
func catalog() []entry {
	return []entry{
		{"help", help},
		{"new", startNew},
		{"retry", retry},
		{"stop", stop},
		{"compact", compact},
		{"approve", approve},
		{"deny", deny},
		{"summary", showSummary},
		{"status", showStatus},
		{"tasks", listTasks},
		{"helpers", listHelpers},
		{"goal", changeGoal},
		{"memory", listMemories},
		{"remember", rememberThis},
		{"forget", forgetThis},
		{"undo", undoThis},
		{"dream", controlDream},
		{"think", changeThink},
		{"mode", changeMode},
		{"model", changeModel},
		{"skills", listSkills},
		{"config", configure},
		{"prompt", promptReport},
		{"verify", verifyPerson},
		{"whoami", whoami},
	}
}

// entry is one command. It answers with Markdown.
type entry struct {
	name string
	run  func(ctx context.Context, call *Call, args string) (string, error)
}

// Config is what the commands of all rooms work with.
type Config struct {
	Memory    *memory.Store
	Questions questions.Store
	Tasks     *task.Store
	Goals     *goal.Store
	Skills    *skill.Library
	History   *history.Store
	Models    *llm.Models
	Settings  settings.Store
	Messages  *settings.Messages
	Helpers   Helpers // nil = there are no sub-sessions
	Location  *time.Location
	Began     time.Time // when the program began
	Now       func() time.Time
	Hooks
}

// Hooks are what commands ask of the rest of the program.
type Hooks struct {
	Dreams *Dreams // nil = there is no such thing here
	// Status returns lines that are added to !status, in the language of say; may be nil.
	Status func(ctx context.Context, say i18n.Say) []string
	// Verify is the command !verify with its arguments; the text it returns is said in room. nil = nobody
	// can be verified here.
	Verify func(ctx context.Context, person, room, args string) (string, error)
}

// Helpers are the sub-sessions.
type Helpers interface {
	// Lines are the sub-sessions that may be known of at p, a line each.
	Lines(ctx context.Context, p trust.Place, say i18n.Say) ([]string, error)
}

// Session is the conversation in which a command is said.
type Session interface {
	// StartNew begins a new conversation, without a summary.
	StartNew(ctx context.Context) error
	// Retry answers the last message of a person anew.
	Retry(ctx context.Context, in chat.Message) error
	// Stop ends what is worked on, and says what that was.
	Stop(ctx context.Context, in chat.Message) (string, error)
	// CompactNow makes the conversation shorter, and says what became of it.
	CompactNow(ctx context.Context, in chat.Message) (string, error)
	// Approve answers a question for leave: code, and how far it goes.
	Approve(ctx context.Context, in chat.Message, args string) (string, error)
	// Deny answers the question for leave that has a code.
	Deny(ctx context.Context, in chat.Message, code string) (string, error)
	// Preview is the prompt that in would get now.
	Preview(ctx context.Context, in chat.Message) (prompt.Prompt, error)
	// Window says for !status what the conversation's window holds, a line each.
	Window(ctx context.Context, past []history.Message) ([]string, error)
}

// Call is one command as somebody said it.
type Call struct {
	*Config
	Session Session
	In      chat.Message
	Talk    history.Timeline
	Place   trust.Place   // where the answer is read
	Access  memory.Access // what the person may see and change
	Caller  trust.Caller
	Log     *slog.Logger
}

// text is a sentence in the language of the room.
func (c *Call) text(ctx context.Context, key string, fill ...string) string {
	return c.Messages.Text(ctx, c.In.Room, key, fill...)
}

// ErrAnswered is the error of a command that was answered already.
var ErrAnswered = errors.New("command: it is answered")

// Run does what the command name says, and returns the answer.
func Run(ctx context.Context, call *Call, name, args string) (string, error) {
	e, known := named(name)
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
	names := make([]string, len(catalog()))
	for i, e := range catalog() {
		names[i] = e.name
	}
	return names
}

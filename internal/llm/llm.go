// Package llm is a client of language models: any server that speaks the OpenAI chat protocol,
// addressed by role, with retries and failover.
//
// Models is the set of configured models; Complete streams an answer and keeps its thinking apart,
// Transcribe writes down speech, Rerank sorts texts, and Embedding makes vectors. A quirk is a part of the protocol
// that a server turned out not to understand; it is learned from its errors and left out from then
// on. Every failure is an Error of one of a few kinds, whose text tells the operator what to do.
// Keys never appear in errors or logs.
package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"time"
)

// Role says who speaks in a Message.
type Role string

// The roles of the chat protocol.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool"
)

// ToolCall is a call that a model asks for. Arguments is a JSON object, or the model's own text if
// it could not be repaired; then the tool reports the fault.
type ToolCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// Message is one message of a conversation.
type Message struct {
	Role       Role
	Content    string
	ToolCalls  []ToolCall // of an assistant message
	ToolCallID string     // of a tool message: the call it answers
	Pictures   []Picture  // of a person's message
}

// ToolSpec describes a tool to the model. Parameters is the JSON schema of an object; empty = no
// parameters.
type ToolSpec struct {
	Name        string
	Description string
	Parameters  json.RawMessage
}

// Request is a request for one answer.
type Request struct {
	Messages []Message
	Tools    []ToolSpec
	Think    Think // how much to think first

	// NoCalls withholds the tools from the server, so that the model answers in words. Calls that
	// it writes anyway are in Reply.ToolCalls.
	NoCalls bool
	// Fit converts a call's arguments to what its tool accepts. On its error the model is asked
	// once more for these arguments alone. nil = arguments stay as they are.
	Fit func(ToolCall) (ToolCall, error)

	// Temperature applies to models without a configured one; nil = the server's default.
	Temperature *float32

	// Marks are ascending indexes into Messages, at most four (Anthropic's limit). The server may
	// cache the request up to the end of each. They are sent only to models with CacheMarks.
	Marks []int

	Person string // for whom the model is asked; "" = the program's own work

	answerSchema *ToolSpec // the answer must be an object of this tool's schema
}

// Usage counts tokens as reported by the server; all zero = not reported.
type Usage struct {
	Prompt int // tokens of the request
	Cached int // part of Prompt that came from the server's cache
	Output int // tokens of the answer, thinking included
}

// Reply is a model's whole answer.
type Reply struct {
	Text      string     // visible text, without thinking
	ToolCalls []ToolCall // each has a name and a unique ID
	Finish    string     // "stop", "tool_calls", "length" (the answer was cut) …
	Usage     Usage
	Model     string // the configured name of the model that answered

	FirstToken time.Duration // from the request to the first token
}

// ModelConfig is one model on one server.
type ModelConfig struct {
	Name        string        `yaml:"name"`     // in roles, in the log and for people
	BaseURL     string        `yaml:"base_url"` // up to and including /v1
	APIKey      string        // empty = none; never logged
	Model       string        `yaml:"model"`       // on its server
	Window      int           `yaml:"window"`      // context window in tokens; 0 = detect it
	MaxOutput   int           `yaml:"max_output"`  // most tokens of one answer; 0 = 2048
	Timeout     time.Duration `yaml:"timeout"`     // for one whole request; 0 = 300 s
	Temperature *float32      `yaml:"temperature"` // overrides a request's; nil = the request's
	Vision      *bool         `yaml:"vision"`      // accepts pictures; nil = as its server says, else false
	CacheMarks  bool          `yaml:"cache_marks"` // the server needs marks to cache a request (Anthropic's models)
}

// Config lists the models and the roles that they serve.
type Config struct {
	Models []ModelConfig
	Roles  map[string][]string // role → model names, in failover order
	Log    *slog.Logger        // nil = silent

	Retry      Retry
	FirstToken time.Duration // until an answer begins; 0 = 120 s, as local servers load the model first
	Idle       time.Duration // between two events of an answer; 0 = 60 s
	Detect     time.Duration // to ask a server for its window; 0 = 2 s

	Meter Meter // nil = tokens are not counted

	Now  func() time.Time  // nil = time.Now
	HTTP http.RoundTripper // nil = a new transport
}

// Meter counts tokens and holds limits.
type Meter interface {
	// Count counts the tokens of a request and its answer. estimated says that the server did not count.
	Count(model, person string, u Usage, estimated bool)
	// Exhausted returns why the model may not be asked for person today; nil = it may.
	Exhausted(ctx context.Context, model, person string) *Error
}

// Retry says how often a failed request is sent to the same model again. The waits are 0.5 s, 2 s
// and then 8 s, or what the server asks for, up to 30 s. Zero means the defaults.
type Retry struct {
	Attempts int // tries per model; 0 = 3

	// Sleep waits for d or until ctx ends, and then returns its error. nil = the real clock.
	Sleep func(ctx context.Context, d time.Duration) error
}

// LogValue keeps the key out of logs.
func (c ModelConfig) LogValue() slog.Value {
	return slog.GroupValue(slog.String("name", c.Name), slog.String("model", c.Model))
}

// Format names the model without its key, whatever the verb.
func (c ModelConfig) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "%s (%s)", c.Name, c.Model) }

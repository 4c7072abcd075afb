// Package llm asks language models: any server that speaks the OpenAI chat
// protocol, addressed by role, with retries and failover. It streams, keeps a
// model's thinking apart from its answer, and turns everything that can go
// wrong into one of a few kinds of Error that say what to do.
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

// ToolCall is one call a model wants made. Arguments is usually a JSON object; when none could be
// made of what the model wrote it is just that, and the tool says so.
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

// ToolSpec describes a tool to the model. Parameters is a JSON schema of an
// object; empty means that it takes none.
type ToolSpec struct {
	Name        string
	Description string
	Parameters  json.RawMessage
}

// Request is what a model is asked.
type Request struct {
	Messages []Message
	Tools    []ToolSpec
	Think    Think // how much to think first

	// NoCalls keeps the tools from the server, so that the model answers in words. What it calls
	// all the same is in Reply.ToolCalls.
	NoCalls bool
	// Fit writes the arguments of a call as its tool takes them, or says what is wrong with them.
	// Then the model is asked once more for these arguments alone. nil = they stay as they are.
	Fit func(ToolCall) (ToolCall, error)

	// Temperature is for models that have none of their own in the configuration,
	// and take one; nil = the server's own.
	Temperature *float32

	// Marks are indexes into Messages, in order and at most four, as Anthropic takes no more: up
	// to the end of each of these, a server may keep what it has read for requests that begin the
	// same. They are sent to models with CacheMarks only.
	Marks []int

	bound *ToolSpec // the answer is an object of this tool's schema, and nothing else
}

// Usage counts tokens as the server reported them; all zero when it did not.
type Usage struct {
	Prompt int // tokens of the request
	Cached int // of these, how many the server took from its cache
	Output int // tokens of the answer, thinking included
}

// Reply is a model's whole answer.
type Reply struct {
	Text      string     // what people may read; no thinking in it
	ToolCalls []ToolCall // every one has a name and an ID of its own
	Finish    string     // "stop", "tool_calls", "length" (the answer was cut) …
	Usage     Usage
	Model     string // the configured name of the model that answered

	First time.Duration // from the request until the answer began
}

// ModelConfig is one model on one server.
type ModelConfig struct {
	Name        string        // how the roles, the log and people call it
	BaseURL     string        // up to and including /v1
	APIKey      string        // empty for servers that want none; never logged
	Model       string        // how the server calls it
	Window      int           // context window in tokens; 0 = detected
	MaxOutput   int           // most tokens of one answer; 0 = 2048
	Timeout     time.Duration // for one whole request; 0 = 300 s
	Temperature *float32      // goes before a request's; nil = as the request says
	Vision      *bool         // it can be shown pictures; nil = as its server says, else it cannot
	CacheMarks  bool          // the server wants to be told what to cache (Anthropic's models, directly or through others)
}

// Config says which models there are and which of them serves which role.
type Config struct {
	Models []ModelConfig
	Roles  map[string][]string // role → model names, in failover order
	Log    *slog.Logger        // nil = silent

	Retry      Retry
	FirstToken time.Duration // until an answer begins; 0 = 120 s, as local servers load the model first
	Idle       time.Duration // between two pieces of an answer; 0 = 60 s
	Detect     time.Duration // for a server to say how large its window is; 0 = 2 s

	Now  func() time.Time  // for the age of what was detected; nil = time.Now
	HTTP http.RoundTripper // carries the requests; nil = one of its own
}

// Retry says how often a failed request is made again to the same model, after waits of 0.5 s,
// 2 s and then 8 s, or what the server asks for, up to 30 s. The zero value means the defaults.
type Retry struct {
	Attempts int // tries per model; 0 = 3

	// Sleep waits for d or until ctx ends, whose error it then returns.
	// nil = by the clock. Tests set it.
	Sleep func(ctx context.Context, d time.Duration) error
}

// LogValue keeps the key out of logs.
func (c ModelConfig) LogValue() slog.Value {
	return slog.GroupValue(slog.String("name", c.Name), slog.String("model", c.Model))
}

// Format names the model without its key, whatever the verb.
func (c ModelConfig) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "%s (%s)", c.Name, c.Model) }

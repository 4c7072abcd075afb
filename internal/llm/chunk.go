package llm

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"strings"

	openai "github.com/sashabaranov/go-openai"
)

// chunk is one event of an answer, with the extensions that servers add. A complete answer (Message
// in place of Delta) parses as well.
type chunk struct {
	Error   json.RawMessage `json:"error"`
	Choices []struct {
		Index        int    `json:"index"`
		Delta        delta  `json:"delta"`
		Message      delta  `json:"message"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Usage   *usage          `json:"usage"`
	Timings json.RawMessage `json:"timings"`
}

type delta struct {
	Content          looseText  `json:"content"`
	Refusal          looseText  `json:"refusal"`
	ReasoningContent looseText  `json:"reasoning_content"` // DeepSeek, llama.cpp, vLLM
	Reasoning        looseText  `json:"reasoning"`         // Ollama, OpenRouter
	ToolCalls        []fragment `json:"tool_calls"`
}

// fragment is a piece of a tool call.
type fragment struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string    `json:"name"`
		Arguments looseText `json:"arguments"`
	} `json:"function"`
}

// usage adds the field names that some servers use for cached tokens.
type usage struct {
	openai.Usage
	CacheHit  int `json:"prompt_cache_hit_tokens"` // DeepSeek
	CacheRead int `json:"cache_read_input_tokens"` // Anthropic's, passed on
	Cached    int `json:"cached_tokens"`           // Moonshot
}

func (u *usage) tokens() Usage {
	t := Usage{Prompt: u.PromptTokens, Cached: max(u.CacheHit, u.CacheRead, u.Cached, 0), Output: u.CompletionTokens}
	if d := u.PromptTokensDetails; d != nil && d.CachedTokens > 0 {
		t.Cached = d.CachedTokens
	}
	return t
}

// withTimings adds counts that only llama.cpp's timings have. It sends them even when usage was not
// requested.
func withTimings(u Usage, raw json.RawMessage) Usage {
	var t struct {
		Cached int `json:"cache_n"`
		Read   int `json:"prompt_n"` // of the request, what was not cached
		Output int `json:"predicted_n"`
	}
	if json.Unmarshal(raw, &t) != nil {
		return u // not llama.cpp's timings
	}
	if u == (Usage{}) {
		u = Usage{Prompt: max(t.Cached, 0) + t.Read, Output: t.Output}
	}
	u.Cached = max(u.Cached, t.Cached)
	return u
}

// looseText is a string that some servers send in another form: a list of text parts, or arguments
// as an object instead of its text.
type looseText string

// UnmarshalJSON accepts any JSON value. A value that is no text is kept as its JSON.
func (t *looseText) UnmarshalJSON(b []byte) error {
	b = bytes.TrimSpace(b)
	switch {
	case len(b) == 0 || string(b) == "null":
		return nil
	case b[0] == '"':
		return json.Unmarshal(b, (*string)(t))
	case b[0] == '[':
		var parts []struct {
			Text string `json:"text"`
		}
		if err := json.Unmarshal(b, &parts); err != nil {
			return err
		}
		for _, p := range parts {
			*t += looseText(p.Text)
		}
		return nil
	default:
		*t = looseText(b)
		return nil
	}
}

// callJoiner assembles tool calls from their fragments.
type callJoiner struct {
	calls []ToolCall
	slot  map[int]int // the server's index → place in calls
}

const maxCalls = 128 // in one answer; more means that the model is looping

func (j *callJoiner) add(f fragment) {
	at, known := len(j.calls)-1, len(j.calls) > 0
	if f.Index != nil {
		at, known = j.slot[*f.Index]
	}
	// Some servers number every call 0, or none at all. A new id therefore starts a new call, and
	// so does a name after arguments.
	if known {
		c := j.calls[at]
		other := f.ID != "" && c.ID != "" && f.ID != c.ID
		if other && f.Function.Name != "" || f.Index == nil && f.ID == "" && f.Function.Name != "" && c.Arguments != "" {
			known = false
		}
	}
	if !known {
		if len(j.calls) == maxCalls {
			return
		}
		at = len(j.calls)
		j.calls = append(j.calls, ToolCall{})
		if f.Index != nil {
			if j.slot == nil {
				j.slot = map[int]int{}
			}
			j.slot[*f.Index] = at
		}
	}
	c := &j.calls[at]
	if c.ID == "" {
		c.ID = f.ID
	}
	if f.Function.Name != c.Name { // some servers repeat the whole name in each fragment
		c.Name += f.Function.Name
	}
	c.Arguments += string(f.Function.Arguments)
}

// assignIDs gives each call a name and a unique ID.
func assignIDs(calls []ToolCall) []ToolCall {
	seen := map[string]bool{}
	for i := range calls {
		c := &calls[i]
		if c.Name = strings.TrimSpace(c.Name); c.Name == "" {
			c.Name = "unnamed" // an empty name makes the next request invalid
		}
		if c.ID == "" || seen[c.ID] {
			c.ID = "call_" + strings.ToLower(rand.Text())
		}
		seen[c.ID] = true
	}
	return calls
}

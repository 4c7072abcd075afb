package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"reverie/internal/i18n"
	"reverie/internal/llm/detect"
	"reverie/internal/text"
)

// failure is the classified failure of one request.
type failure struct {
	kind        Kind
	text        string        // for the operator, without secrets
	retryable   bool          // the same request may succeed later
	retryAfter  time.Duration // the wait that the server asked for; 0 = none
	loading     bool          // the server is still loading the model
	quirk       quirk         // the request may succeed without these parts, or without one of them
	unexplained bool          // refused for an unknown reason
	limit       int           // of TooLarge: the window in tokens, if the server named it
}

// serverError is an error that the server reported by a status or within the stream.
type serverError struct {
	status int // 0 = none (in a stream)
	header http.Header
	code   string
	text   string
	raw    string // the whole error, with fields that only some servers have
}

func (e *serverError) Error() string {
	if e.status == 0 {
		return "the server reported in its answer: " + e.text
	}
	return fmt.Sprintf("the server answered %d %s: %s", e.status, http.StatusText(e.status), e.text)
}

// streamError parses an error event: an object, or plain text.
func streamError(raw json.RawMessage) error {
	text, code := errorFields(raw)
	e := &serverError{code: code, text: text}
	first, _, _ := strings.Cut(code, " ")
	if n, err := strconv.Atoi(first); err == nil && n >= 400 && n < 600 {
		e.status = n
	}
	return e
}

// errorFields extracts the message, and the code and type, from an error of any form.
func errorFields(raw json.RawMessage) (text, code string) {
	var object struct {
		Error   json.RawMessage `json:"error"`
		Message looseText       `json:"message"`
		Detail  looseText       `json:"detail"`
		Code    looseText       `json:"code"`
		Type    looseText       `json:"type"`
	}
	var plain string
	switch {
	case json.Unmarshal(raw, &plain) == nil:
		return plain, ""
	case json.Unmarshal(raw, &object) != nil:
		return string(raw), ""
	case len(object.Error) > 0 && string(object.Error) != "null":
		return errorFields(object.Error)
	}
	text = string(object.Message + object.Detail)
	if text == "" {
		text = string(raw)
	}
	return text, strings.TrimSpace(string(object.Code + " " + object.Type))
}

// judge classifies a failed request. ctx is that of the request.
func (m *model) judge(ctx context.Context, err error) *failure {
	f := m.classify(ctx, err)
	f.text = m.redactSecrets(f.text)
	return f
}

// failed returns the error of a failure.
func (m *model) failed(f *failure) *Error {
	return &Error{Kind: f.kind, Model: m.Name, Err: errors.New(f.text)}
}

func (m *model) classify(ctx context.Context, err error) *failure {
	cause := context.Cause(ctx)
	if cause == errFirstToken || cause == errIdle || cause == errTimeout { //nolint:errorlint // our own values
		return &failure{kind: TimedOut, text: cause.Error()}
	}
	var garbled *garbledError
	if errors.As(err, &garbled) {
		return &failure{kind: Garbled, text: err.Error(), retryable: true}
	}
	var server *serverError
	if errors.As(err, &server) {
		return classifyServerError(server)
	}
	return &failure{kind: Unreachable, text: fmt.Sprintf("%s: %v", m.serverAddress(), withoutURL(err)), retryable: true} // no answer
}

// parseRefusal parses an error answer of any form.
func parseRefusal(status int, header http.Header, raw []byte) *serverError {
	f := &serverError{status: status, header: header, text: strings.TrimSpace(string(raw)), raw: string(raw)}
	switch {
	case f.text == "":
		f.text = "no reason given"
	case strings.HasPrefix(f.text, "<"):
		f.text = "a web page, not an API answer"
	case strings.HasPrefix(f.text, "{"):
		f.text, f.code = errorFields(raw)
	}
	return f
}

// Phrases of server errors, in lower case.
var (
	sayTooLarge = []string{
		"context length", "context_length", "maximum context", "context window", "context size", "exceed_context", "contextlength",
		"prompt is too long", "prompt too long", "input is too long", "input too long", "too many tokens", "reduce the length",
		"maximum prompt length", "request too large", "request_too_large", "token limit exceeded",
		"input length exceeds", "input token count",
	}
	sayNoTools = []string{
		"does not support tools", "not support tool", "tools are not supported", "tools is not supported",
		"enable-auto-tool-choice", "requires --jinja", "support tool use", "function calling is not",
	}
	sayNoThink = []string{
		"reasoning_effort", "reasoning effort", "reasoning.effort", "reasoning value", "think value", "not support thinking",
		"thinking is not supported", "thinking level", "effort parameter", "reasoning is not supported", "not support reasoning",
	}
	sayUnsupported = []string{"support", "deprecated", "invalid", "only", "allowed", "permitted", "unknown", "unrecognized",
		"unexpected", "must be"}
	sayNoMarks  = []string{"cache_control", "cache control", "must be a string", "a valid string", "expected a string"}
	sayNoVision = []string{"image input", "images are not", "image_url", "support image", "multimodal", "vision", "mmproj"}
	sayLoading  = []string{"loading model", "model is loading", "currently loading"}
	sayNoCredit = []string{"insufficient_quota", "billing", "insufficient credits", "insufficient balance"}
)

func containsAny(text string, any []string) bool {
	return slices.ContainsFunc(any, func(s string) bool { return strings.Contains(text, s) })
}

func classifyServerError(e *serverError) *failure {
	f := &failure{kind: Failed, text: e.Error()}
	said := strings.ToLower(e.text + " " + e.code)
	if q := refusedPart(e.status, said); q != 0 {
		f.quirk = q
		return f
	}
	switch {
	case e.status == http.StatusRequestEntityTooLarge, containsAny(said, sayTooLarge):
		f.kind, f.limit = TooLarge, detect.LimitInError(e.raw+" "+f.text)
	case e.status == http.StatusUnauthorized, e.status == http.StatusForbidden, e.status == http.StatusPaymentRequired,
		e.status == http.StatusTooManyRequests && containsAny(said, sayNoCredit):
		f.kind = Denied
	case e.status == http.StatusNotFound:
		f.kind = NotFound
	case e.status == http.StatusTooManyRequests:
		f.kind, f.retryable, f.retryAfter = RateLimited, true, retryAfter(e.header)
	case e.status == http.StatusRequestTimeout, e.status == http.StatusGatewayTimeout:
		f.kind, f.retryable = TimedOut, true
	case e.status >= 500, e.status == 0:
		f.retryable, f.retryAfter = true, retryAfter(e.header)
		f.loading = containsAny(said, sayLoading)
	case e.status < 400: // a redirect, which is not followed
		f.kind = Garbled
	default:
		f.unexplained = e.status == http.StatusBadRequest || e.status == http.StatusUnprocessableEntity
	}
	return f
}

// refusedPart returns the part of the request that the server refused; 0 = unknown.
func refusedPart(status int, said string) quirk {
	if status < 400 || status == http.StatusTooManyRequests {
		return 0
	}
	switch {
	case containsAny(said, sayNoTools):
		return noTools
	case strings.Contains(said, "tool call id") && strings.Contains(said, "length"): // Mistral's templates and its own server
		return shortIDs
	case strings.Contains(said, "roles must alternate"): // Gemma's and Mistral's templates, on every server
		return alternating
	case containsAny(said, sayNoVision) && containsAny(said, sayUnsupported): // llama.cpp and Ollama answer 500
		return noPictures
	case status >= 500:
		if containsAny(said, sayNoThink) { // Ollama refuses a level with 500
			return thinkQuirks
		}
		return 0
	case strings.Contains(said, "stream_options") || strings.Contains(said, "include_usage"):
		return noStreamOptions
	case strings.Contains(said, "max_completion_tokens"): // "use 'max_completion_tokens' instead"
		return newMaxTokens
	case strings.Contains(said, "temperature") && containsAny(said, sayUnsupported):
		return noTemperature
	case strings.Contains(said, "chat_template") || strings.Contains(said, "enable_thinking"):
		return noTemplateArgs
	case containsAny(said, sayNoThink):
		return thinkQuirks
	case containsAny(said, sayNoMarks):
		return noMarks
	}
	return 0
}

// retryAfter parses the Retry-After header; 0 = none.
func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.ParseFloat(h.Get("Retry-After"), 64)
	if err != nil || !(seconds > 0 && seconds < 1e6) { // false for NaN
		return 0
	}
	return time.Duration(seconds * float64(time.Second))
}

// redactSecrets removes secrets from a text and shortens it.
func (m *model) redactSecrets(said string) string {
	for _, s := range m.secrets {
		said = strings.ReplaceAll(said, s, "[secret]")
	}
	return text.Clip(strings.Join(strings.Fields(strings.ToValidUTF8(said, "\uFFFD")), " "), 400)
}

// url parses the server's address, which New has checked.
func (m *model) url() *url.URL {
	u, err := url.Parse(m.BaseURL)
	if err != nil {
		return &url.URL{}
	}
	return u
}

// serverAddress returns the server's address without its password.
func (m *model) serverAddress() string { return m.url().Redacted() }

// Kind classifies the failure of a request. It is the word in the log.
type Kind string

// The kinds of failure. Their sentences for people have the same names.
const (
	Failed        Kind = "failed"         // an error reported by the server that fits no other kind
	Unreachable   Kind = "unreachable"    // no connection, or it broke
	RateLimited   Kind = "rate limited"   // too many requests for now
	Quota         Kind = "quota"          // the model's daily limit of tokens is used up
	PersonalQuota Kind = "personal quota" // that of the person, for all models
	Denied        Kind = "denied"         // key or account refused
	NotFound      Kind = "not found"      // no such model or path on that server
	TooLarge      Kind = "too large"      // the request does not fit the model's window
	TimedOut      Kind = "timed out"      // no answer in time
	Empty         Kind = "empty"          // an answer with nothing in it
	Garbled       Kind = "garbled"        // the answer violates the protocol
)

// Why returns the kind in a word or two, for people.
func (k Kind) Why() i18n.Text { return i18n.New("trouble.why." + k.key()) }

func (k Kind) key() string { return strings.ReplaceAll(string(k), " ", "_") }

// Error is the failure of Complete or Probe. Its text is for the operator: it quotes the server,
// without keys. ForPeople is for everybody else.
type Error struct {
	Kind  Kind
	Model string // configured name; empty when no model is configured
	Err   error
}

func (e *Error) Error() string {
	if e.Model == "" {
		return fmt.Sprintf("llm: %v", e.Err)
	}
	return fmt.Sprintf("llm: model %q: %s: %v", e.Model, e.Kind, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ForPeople returns a sentence or two for chat users: what happened and what helps. It names the model
// and quotes nothing from the server.
func (e *Error) ForPeople() i18n.Text {
	if e.Model == "" {
		return i18n.New("error.no_model")
	}
	return i18n.New("trouble."+e.Kind.key(), "model", e.Model)
}

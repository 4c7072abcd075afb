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

	"reverie/internal/llm/detect"
	"reverie/internal/text"
)

// failure is one failed request, judged.
type failure struct {
	kind    Kind
	text    string        // for the operator, secrets taken out
	again   bool          // the same request may work a little later
	after   time.Duration // when the server said so
	loading bool          // the server is still loading the model
	quirk   quirk         // the same request may work without this, or the one of these that it holds
	vague   bool          // refused for a reason that is none of those known
	limit   int           // of TooLarge: the window in tokens, when the server named it
}

// serverError is an error that the server reported, by status or in the stream.
type serverError struct {
	status int // 0 = none (in a stream)
	header http.Header
	code   string
	text   string
	raw    string // all of it, with fields that only some servers have
}

func (e *serverError) Error() string {
	if e.status == 0 {
		return "the server reported in its answer: " + e.text
	}
	return fmt.Sprintf("the server answered %d %s: %s", e.status, http.StatusText(e.status), e.text)
}

// streamError reads an error event: an object as usual, or just a text.
func streamError(raw json.RawMessage) error {
	text, code := errorFields(raw)
	e := &serverError{code: code, text: text}
	first, _, _ := strings.Cut(code, " ")
	if n, err := strconv.Atoi(first); err == nil && n >= 400 && n < 600 {
		e.status = n
	}
	return e
}

// errorFields finds the message, and the code and type, in an error of whatever form.
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

// judge says what a failed request means. ctx is the request's own.
func (m *model) judge(ctx context.Context, err error) *failure {
	f := m.sort(ctx, err)
	f.text = m.clean(f.text)
	return f
}

func (m *model) sort(ctx context.Context, err error) *failure {
	cause := context.Cause(ctx)
	if cause == errFirstToken || cause == errIdle || cause == errWhole { //nolint:errorlint // our own values
		return &failure{kind: TimedOut, text: cause.Error()}
	}
	var garbled *garbledError
	if errors.As(err, &garbled) {
		return &failure{kind: Garbled, text: err.Error(), again: true}
	}
	var server *serverError
	if errors.As(err, &server) {
		return sortServer(server)
	}
	return unreachable(m, err)
}

// unreachable is the failure of a request that got no answer.
func unreachable(m *model, err error) *failure {
	return &failure{kind: Unreachable, text: fmt.Sprintf("%s: %v", m.place(), withoutURL(err)), again: true}
}

// refusal reads an error answer of whatever form.
func refusal(status int, header http.Header, raw []byte) *serverError {
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

// What servers say, in lower case.
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
	sayNot = []string{"support", "deprecated", "invalid", "only", "allowed", "permitted", "unknown", "unrecognized",
		"unexpected", "must be"}
	sayNoMarks = []string{"cache_control", "cache control", "must be a string", "a valid string", "expected a string"}
	sayBlind   = []string{"image input", "images are not", "image_url", "support image", "multimodal", "vision", "mmproj"}
	sayLoading = []string{"loading model", "model is loading", "currently loading"}
	sayBroke   = []string{"insufficient_quota", "billing", "insufficient credits", "insufficient balance"}
)

func says(text string, any []string) bool {
	return slices.ContainsFunc(any, func(s string) bool { return strings.Contains(text, s) })
}

func sortServer(e *serverError) *failure {
	f := &failure{kind: Failed, text: e.Error()}
	said := strings.ToLower(e.text + " " + e.code)
	if q := refusedPart(e.status, said); q != 0 {
		f.quirk = q
		return f
	}
	switch {
	case e.status == http.StatusRequestEntityTooLarge, says(said, sayTooLarge):
		f.kind, f.limit = TooLarge, detect.InRefusal(e.raw+" "+f.text)
	case e.status == http.StatusUnauthorized, e.status == http.StatusForbidden, e.status == http.StatusPaymentRequired,
		e.status == http.StatusTooManyRequests && says(said, sayBroke):
		f.kind = Denied
	case e.status == http.StatusNotFound:
		f.kind = NotFound
	case e.status == http.StatusTooManyRequests:
		f.kind, f.again, f.after = RateLimited, true, retryAfter(e.header)
	case e.status == http.StatusRequestTimeout, e.status == http.StatusGatewayTimeout:
		f.kind, f.again = TimedOut, true
	case e.status >= 500, e.status == 0:
		f.again, f.after = true, retryAfter(e.header)
		f.loading = says(said, sayLoading)
	case e.status < 400: // a redirect that went nowhere
		f.kind = Garbled
	default:
		f.vague = e.status == http.StatusBadRequest || e.status == http.StatusUnprocessableEntity
	}
	return f
}

// refusedPart finds which part of a request a server did not like.
func refusedPart(status int, said string) quirk {
	if status < 400 || status == http.StatusTooManyRequests {
		return 0
	}
	switch {
	case says(said, sayNoTools):
		return noTools
	case strings.Contains(said, "tool call id") && strings.Contains(said, "length"): // Mistral's templates, and its own server
		return shortIDs
	case strings.Contains(said, "roles must alternate"): // Gemma's and Mistral's templates say so in all servers
		return alternating
	case says(said, sayBlind) && says(said, sayNot): // llama.cpp and Ollama with 500
		return noPictures
	case status >= 500:
		if says(said, sayNoThink) { // Ollama refuses a level so
			return thinkQuirks
		}
		return 0
	case strings.Contains(said, "stream_options") || strings.Contains(said, "include_usage"):
		return noStreamOptions
	case strings.Contains(said, "max_completion_tokens"): // "use 'max_completion_tokens' instead"
		return newMaxTokens
	case strings.Contains(said, "temperature") && says(said, sayNot):
		return noTemperature
	case strings.Contains(said, "chat_template") || strings.Contains(said, "enable_thinking"):
		return noTemplateArgs
	case says(said, sayNoThink):
		return thinkQuirks
	case says(said, sayNoMarks):
		return noMarks
	}
	return 0
}

// retryAfter is how long the server wants to be left alone; 0 = it does not say.
func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.ParseFloat(h.Get("Retry-After"), 64)
	if err != nil || !(seconds > 0 && seconds < 1e6) { // NaN is neither
		return 0
	}
	return time.Duration(seconds * float64(time.Second))
}

// clean takes secrets out of a text and keeps it short.
func (m *model) clean(said string) string {
	for _, s := range m.secrets {
		said = strings.ReplaceAll(said, s, "[secret]")
	}
	return text.Clip(strings.Join(strings.Fields(strings.ToValidUTF8(said, "\uFFFD")), " "), 400)
}

// url is the server's address, which New has checked.
func (m *model) url() *url.URL {
	u, err := url.Parse(m.BaseURL)
	if err != nil {
		return &url.URL{}
	}
	return u
}

// place is the server's address without a password.
func (m *model) place() string { return m.url().Redacted() }

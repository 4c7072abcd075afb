package llm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// What one request for vectors may hold. Servers on small machines give up on more.
const (
	maxBatch      = 64        // texts
	maxBatchBytes = 64 << 10  // of all texts together; a longer one goes alone
	minCutRunes   = 100       // a text that is still too long at this length is not the trouble
	maxDimension  = 16_384    // numbers of one vector
	maxVectors    = 128 << 20 // bytes of one answer
	embedTimeout  = 2 * time.Minute
)

// EmbeddingConfig is the model that turns texts into vectors. There is one and no
// failover: vectors of different models cannot be compared.
type EmbeddingConfig struct {
	BaseURL string        // up to and including /v1 (OpenAI's protocol), or /api (Ollama's own)
	APIKey  string        // empty for servers that want none; never logged
	Model   string        // how the server calls it
	Timeout time.Duration // for one request; 0 = 2 minutes, as local servers load the model first

	Log   *slog.Logger      // nil = silent
	Retry Retry             // as for chat
	HTTP  http.RoundTripper // carries the requests; nil = one of its own
}

// LogValue keeps the key out of logs.
func (c EmbeddingConfig) LogValue() slog.Value { return slog.StringValue(c.Model) }

// Embedding turns texts into vectors. It is safe for concurrent use.
type Embedding struct {
	m   *model
	url string

	mu        sync.Mutex
	dimension int // of the vectors so far; 0 = there were none
}

// NewEmbedding checks the configuration and reports all its faults at once,
// joined. It connects to nothing.
func NewEmbedding(c EmbeddingConfig) (*Embedding, error) {
	mc := ModelConfig{Name: c.Model, BaseURL: strings.TrimRight(c.BaseURL, "/"), APIKey: strings.TrimSpace(c.APIKey),
		Model: c.Model, Timeout: c.Timeout}
	check := mc
	check.Name = cmp.Or(check.Name, "unnamed") // its fault would be told twice
	if err := errors.Join(checkModel("llm.embedding", check)...); err != nil {
		return nil, err
	}
	if mc.Timeout <= 0 {
		mc.Timeout = embedTimeout
	}
	cfg := withDefaults(Config{Log: c.Log, Retry: c.Retry, HTTP: c.HTTP})
	e := &Embedding{m: newModel(mc, cfg, newClient(cfg)), url: mc.BaseURL + "/embeddings"}
	if strings.HasSuffix(mc.BaseURL, "/api") {
		e.url = mc.BaseURL + "/embed"
	}
	return e, nil
}

// Name is the model's, as its server calls it.
func (e *Embedding) Name() string { return e.m.Model }

// Embed returns one vector for each text, in their order: of length 1, and all
// with as many numbers as every vector of this Embedding before. A blank text has
// none, nil. It asks in several requests if need be, again where that may help,
// and in case of a text that is too long for the model for its beginning. It fails as a whole: with
// ctx's error, or else with an *Error.
func (e *Embedding) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	var batch []int // indexes into texts
	size := 0
	flush := func() error {
		err := e.fill(ctx, texts, batch, out)
		batch, size = batch[:0], 0
		return err
	}
	for i, text := range texts {
		if strings.TrimSpace(text) == "" {
			continue
		}
		if len(batch) == maxBatch || len(batch) > 0 && size+len(text) > maxBatchBytes {
			if err := flush(); err != nil {
				return nil, err
			}
		}
		batch, size = append(batch, i), size+len(text)
	}
	if err := flush(); err != nil {
		return nil, err
	}
	return out, nil
}

// fill asks for the vectors of the texts at batch. What is too large together is
// halved, down to one text and then its beginning.
func (e *Embedding) fill(ctx context.Context, texts []string, batch []int, out [][]float32) error {
	if len(batch) == 0 {
		return nil
	}
	input := make([]string, len(batch))
	for i, at := range batch {
		input[i] = strings.ToValidUTF8(texts[at], "\uFFFD")
	}
	for {
		vectors, err := e.ask(ctx, input)
		var failed *Error
		switch n := utf8.RuneCountInString(input[0]); {
		case err == nil:
			for i, at := range batch {
				out[at] = vectors[i]
			}
			return nil
		case !errors.As(err, &failed) || failed.Kind != TooLarge:
			return err
		case len(batch) > 1:
			half := len(batch) / 2
			if err := e.fill(ctx, texts, batch[:half], out); err != nil {
				return err
			}
			return e.fill(ctx, texts, batch[half:], out)
		case n/2 < minCutRunes:
			return err
		default:
			input[0] = string([]rune(input[0])[:n/2])
		}
	}
}

// ask makes one request, again where that may help.
func (e *Embedding) ask(ctx context.Context, input []string) ([][]float32, error) {
	begin := time.Now()
	for try := 1; ; try++ {
		vectors, f := e.once(ctx, input)
		if f == nil {
			return vectors, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		loading := f.loading && time.Since(begin) < e.m.cfg.FirstToken
		if !loading && (!f.again || try >= e.m.attempts(f.kind)) {
			return nil, &Error{Kind: f.kind, Model: e.m.Name, Err: errors.New(e.m.clean(f.text))}
		}
		if err := e.m.cfg.Retry.Sleep(ctx, wait(try, f.after)); err != nil {
			return nil, err
		}
	}
}

var errEmbedTimeout = errors.New("no vectors came in time")

// sayLongInput is how llama.cpp and text-embeddings-inference say that a text, or
// all together, are too long.
var sayLongInput = []string{"too large to process", "must have less than", "maximum allowed batch size"}

// once makes one HTTP request. A nil failure means good vectors.
func (e *Embedding) once(ctx context.Context, input []string) ([][]float32, *failure) {
	ctx, cancel := context.WithTimeoutCause(ctx, e.m.Timeout, errEmbedTimeout)
	defer cancel()
	body, err := json.Marshal(map[string]any{"model": e.m.Model, "input": input})
	if err != nil {
		return nil, &failure{kind: Failed, text: err.Error()}
	}
	raw, err := e.m.fetch(ctx, http.MethodPost, e.url, body, maxVectors)
	var garbled *garbledError
	var server *serverError
	switch {
	case errors.As(err, &garbled):
		return nil, &failure{kind: Garbled, text: garbled.why}
	case errors.Is(context.Cause(ctx), errEmbedTimeout):
		return nil, &failure{kind: TimedOut, text: fmt.Sprintf("%v (%s)", errEmbedTimeout, e.m.Timeout), again: true}
	case errors.As(err, &server):
		f := sortServer(server)
		if says(strings.ToLower(server.text), sayLongInput) {
			f = &failure{kind: TooLarge, text: f.text}
		}
		return nil, f
	case err != nil:
		return nil, unreachable(e.m, err)
	}
	vectors, err := e.read(raw, len(input))
	if err != nil {
		return nil, &failure{kind: Garbled, text: err.Error(), again: true}
	}
	return vectors, nil
}

// read takes n vectors out of an answer of either protocol.
func (e *Embedding) read(raw []byte, n int) ([][]float32, error) {
	var answer struct {
		Data []struct {
			Index     *int            `json:"index"`
			Embedding json.RawMessage `json:"embedding"`
		} `json:"data"`
		Embeddings []json.RawMessage `json:"embeddings"`
		Error      json.RawMessage   `json:"error"` // some servers send it with status 200
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		if bytes.HasPrefix(bytes.TrimSpace(raw), []byte("<")) {
			return nil, errors.New("a web page came instead of vectors: check the address in llm.embedding.base_url")
		}
		if bytes.Contains(raw, []byte("NaN")) {
			return nil, errors.New("a vector holds something that is not a number (NaN): " +
				"the model on the server is damaged, or too large for its graphics card")
		}
		return nil, fmt.Errorf("the answer is no list of vectors: it begins with %s", excerpt(string(raw[:min(len(raw), 400)]), 80))
	}
	if len(answer.Error) > 0 && string(answer.Error) != "null" {
		text, _ := errorFields(answer.Error)
		return nil, fmt.Errorf("the server reported in its answer: %s", text)
	}
	list := answer.Embeddings
	if len(answer.Data) > 0 {
		list = make([]json.RawMessage, n)
		if len(answer.Data) != n {
			return nil, fmt.Errorf("%d vectors came for %d texts", len(answer.Data), n)
		}
		for i, d := range answer.Data {
			at := i
			if d.Index != nil {
				at = *d.Index
			}
			if at < 0 || at >= n || list[at] != nil {
				return nil, fmt.Errorf("the vectors are numbered wrongly: number %d of %d texts", at, n)
			}
			list[at] = d.Embedding
		}
	}
	if len(list) != n {
		return nil, fmt.Errorf("%d vectors came for %d texts", len(list), n)
	}
	vectors := make([][]float32, n)
	for i, raw := range list {
		v, err := readVector(raw)
		if err != nil {
			return nil, fmt.Errorf("the vector of text %d of %d %w", i+1, n, err)
		}
		vectors[i] = v
	}
	return vectors, e.agree(vectors)
}

// agree holds the model to the length of its first vector: of another length they
// cannot be compared, and a model that changes behind its name must be noticed.
func (e *Embedding) agree(vectors [][]float32) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	want := e.dimension
	for _, v := range vectors {
		if want == 0 {
			want = len(v)
		}
		if len(v) != want {
			return fmt.Errorf("a vector has %d numbers where others have %d: "+
				"if the model was exchanged on its server, start this program again, and everything is embedded anew", len(v), want)
		}
	}
	e.dimension = want
	return nil
}

// readVector reads one vector and gives it length 1. Its errors continue a
// sentence about it.
func readVector(raw json.RawMessage) ([]float32, error) {
	var v []float32
	switch err := json.Unmarshal(raw, &v); {
	case bytes.Contains(raw, []byte("null")):
		return nil, errors.New("holds something that is not a number (null)") // as which llama.cpp writes NaN
	case err != nil:
		return nil, fmt.Errorf("is no list of numbers: %s", excerpt(string(raw[:min(len(raw), 400)]), 60))
	case len(v) == 0:
		return nil, errors.New("is empty")
	case len(v) > maxDimension:
		return nil, fmt.Errorf("has %d numbers, more than the %d that are taken", len(v), maxDimension)
	}
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if sum == 0 {
		return nil, errors.New("is all zeros")
	}
	length := math.Sqrt(sum)
	for i := range v {
		v[i] = float32(float64(v[i]) / length)
	}
	return v, nil
}

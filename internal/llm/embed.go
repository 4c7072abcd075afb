package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"sort"
	"strings"
	"time"
)

const (
	minCutRunes  = 100       // a text that is refused at this length is not refused for its length
	maxVectors   = 128 << 20 // bytes of one answer
	embedTimeout = 2 * time.Minute
)

// Embedding turns texts into vectors. It is safe for concurrent use.
type Embedding struct {
	m   *model
	url string
}

// NewEmbedding returns the embedding by the model c. BaseURL ends in /v1 (OpenAI's protocol) or in
// /api (Ollama's own). Timeout is for one request; 0 = 2 minutes, because local servers load the
// model first. There is no failover: vectors of different models cannot be compared. It opens no
// connection.
func NewEmbedding(c ModelConfig, cfg Config) *Embedding {
	c.Name, c.Timeout = c.Model, cmp.Or(c.Timeout, embedTimeout)
	cfg = withDefaults(cfg)
	m := newModel(c, cfg, newClient(cfg))
	e := &Embedding{m: m, url: m.BaseURL + "/embeddings"}
	if strings.HasSuffix(m.BaseURL, "/api") {
		e.url = m.BaseURL + "/embed"
	}
	return e
}

// Name returns the model's name on its server.
func (e *Embedding) Name() string { return e.m.Model }

// Embed returns one vector of length 1 for each text, in order. It returns nil for a blank text. It
// retries, splits a batch that is too large, and embeds only the beginning of a text that is too
// long. It fails as a whole: with ctx's error, or else with an *Error.
func (e *Embedding) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	var asked []string
	var places []int
	for i, text := range texts {
		if strings.TrimSpace(text) != "" {
			asked, places = append(asked, strings.ToValidUTF8(text, "\uFFFD")), append(places, i)
		}
	}
	if len(asked) == 0 {
		return out, nil
	}
	vectors, err := e.vectors(ctx, asked)
	if err != nil {
		return nil, err
	}
	for i, v := range vectors {
		out[places[i]] = v
	}
	return out, nil
}

// vectors requests the vectors of texts. A batch that is too large is halved; a single text is cut
// in half.
func (e *Embedding) vectors(ctx context.Context, texts []string) ([][]float32, error) {
	vectors, err := e.requestWithRetries(ctx, texts)
	var failed *Error
	if !errors.As(err, &failed) || failed.Kind != TooLarge {
		return vectors, err
	}
	if half := len(texts) / 2; half > 0 {
		first, err := e.vectors(ctx, texts[:half])
		if err != nil {
			return nil, err
		}
		second, err := e.vectors(ctx, texts[half:])
		return append(first, second...), err
	}
	begin := []rune(texts[0])
	if begin = begin[:len(begin)/2]; len(begin) < minCutRunes {
		return nil, err
	}
	return e.vectors(ctx, []string{string(begin)})
}

// requestWithRetries makes one request, with retries.
func (e *Embedding) requestWithRetries(ctx context.Context, input []string) ([][]float32, error) {
	begin := time.Now()
	for try := 1; ; try++ {
		vectors, f := e.attempt(ctx, input)
		if f == nil {
			return vectors, nil
		}
		if !e.m.retry(ctx, begin, try, f) {
			return nil, cmp.Or(ctx.Err(), error(e.m.failed(f)))
		}
	}
}

// sayLongInput is how llama.cpp and text-embeddings-inference report an input that is too long.
var sayLongInput = []string{"too large to process", "must have less than", "maximum allowed batch size"}

// attempt makes one HTTP request. A nil failure means success.
func (e *Embedding) attempt(ctx context.Context, input []string) ([][]float32, *failure) {
	ctx, cancel := context.WithTimeoutCause(ctx, e.m.Timeout, errTimeout)
	defer cancel()
	var vectors [][]float32
	body, err := json.Marshal(map[string]any{"model": e.m.Model, "input": input})
	if err == nil {
		body, err = e.m.fetch(ctx, http.MethodPost, e.url, body, maxVectors)
	}
	if err == nil {
		vectors, err = e.parseVectors(body, len(input))
	}
	if err == nil {
		return vectors, nil
	}
	f := e.m.judge(ctx, err)
	if containsAny(strings.ToLower(f.text), sayLongInput) {
		f = &failure{kind: TooLarge, text: f.text}
	}
	f.retryable = f.retryable || f.kind == TimedOut // a slow server may have loaded the model by now
	return nil, f
}

// parseVectors parses n vectors from an answer of either protocol.
func (e *Embedding) parseVectors(raw []byte, n int) ([][]float32, error) {
	var answer struct {
		Data []struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
		Embeddings [][]float32     `json:"embeddings"`
		Error      json.RawMessage `json:"error"` // some servers send it with status 200
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return nil, garbled("the answer is no list of vectors (%v): it begins with %s; check llm.embedding.base_url",
			err, excerpt(raw))
	}
	if len(answer.Error) > 0 && string(answer.Error) != "null" {
		text, _ := errorFields(answer.Error)
		return nil, garbled("the server reported in its answer: %s", text)
	}
	vectors := answer.Embeddings
	sort.SliceStable(answer.Data, func(i, j int) bool { return answer.Data[i].Index < answer.Data[j].Index })
	for _, d := range answer.Data {
		vectors = append(vectors, d.Embedding)
	}
	if len(vectors) != n {
		return nil, garbled("%d vectors came for %d texts", len(vectors), n)
	}
	for i, v := range vectors {
		if !normalize(v) {
			return nil, garbled("vector %d of %d has no length: its %d numbers are zero, or none", i+1, n, len(v))
		}
	}
	return vectors, nil
}

// normalize scales v to length 1. It returns false if v has no length.
func normalize(v []float32) bool {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	length := math.Sqrt(sum)
	for i := range v {
		v[i] = float32(float64(v[i]) / length)
	}
	return sum > 0
}

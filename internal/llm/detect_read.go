package llm

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A window outside of these is a mistake or a joke.
const (
	leastTokens = 512
	mostTokens  = 16 << 20
)

// count is a number of tokens in a server's description. What is no number, or
// none that a window can have, reads as 0: not said.
type count int

// UnmarshalJSON takes any JSON value.
func (c *count) UnmarshalJSON(b []byte) error {
	*c = count(tokens(string(b)))
	return nil
}

// tokens reads a number of tokens; 0 = it is none that a window can have.
func tokens(s string) int {
	n, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err == nil && n >= leastTokens && n <= mostTokens && n == float64(int(n)) {
		return int(n)
	}
	return 0
}

// amount is a number of bytes; what is no number leaves it as it was.
type amount float64

// UnmarshalJSON takes any JSON value.
func (a *amount) UnmarshalJSON(b []byte) error {
	if n, err := strconv.ParseFloat(strings.TrimSpace(string(b)), 64); err == nil {
		*a = amount(n)
	}
	return nil
}

var errOther = errors.New("the answer is something else")

// object reads a JSON object into v.
func object(raw []byte, v any) error {
	if err := json.Unmarshal(raw, v); err != nil {
		return errOther
	}
	return nil
}

// readProps reads llama.cpp's /props. Its n_ctx is that of one slot, which is
// what one conversation gets.
func readProps(raw []byte, _ string) (said, error) {
	var o struct {
		Settings *struct {
			Context count `json:"n_ctx"`
		} `json:"default_generation_settings"`
		Build      string `json:"build_info"`
		File       string `json:"model_path"`
		Modalities *struct {
			Vision bool `json:"vision"`
		} `json:"modalities"`
	}
	if err := object(raw, &o); err != nil {
		return said{}, err
	}
	a := said{server: llamaCPP, text: "no model is loaded, or it does not say with how many tokens"}
	if o.File != "" {
		a.files = []string{o.File}
	}
	switch {
	case o.Settings == nil && o.Build == "":
		return said{}, errOther
	case o.Settings == nil || o.Settings.Context == 0:
		return a, nil
	}
	a.limit = Limit{Tokens: int(o.Settings.Context), Label: Enforced}
	a.text = fmt.Sprintf("n_ctx %d for each conversation", a.limit.Tokens)
	if o.Modalities != nil {
		a.sees = new(o.Modalities.Vision)
	}
	return a, nil
}

// readLMStudio reads LM Studio's own list of models.
func readLMStudio(raw []byte, model string) (said, error) {
	var o struct {
		Data []json.RawMessage `json:"data"`
	}
	if err := object(raw, &o); err != nil || o.Data == nil {
		return said{}, errOther
	}
	a := said{server: lmStudio, text: "has no such model"}
	for _, r := range o.Data {
		var e struct {
			ID     string `json:"id"`
			State  string `json:"state"`
			Type   string `json:"type"` // llm, vlm, embeddings
			Loaded count  `json:"loaded_context_length"`
			Max    count  `json:"max_context_length"`
		}
		if object(r, &e) != nil || e.ID != model {
			continue
		}
		a.trained = int(e.Max)
		if e.Type != "" {
			a.sees = new(e.Type == "vlm")
		}
		if e.State == "loaded" && e.Loaded > 0 {
			a.limit = Limit{Tokens: int(e.Loaded), Label: Enforced}
			a.text = fmt.Sprintf("loaded with %d, at most %d", e.Loaded, e.Max)
		} else {
			a.text = fmt.Sprintf("not loaded; at most %d", e.Max)
		}
		return a, nil
	}
	return a, nil
}

// sameModel compares names as Ollama does.
func sameModel(theirs, ours string) bool {
	return theirs != "" && (theirs == ours || theirs == ours+":latest" || theirs+":latest" == ours)
}

// readPS reads Ollama's list of loaded models.
func readPS(raw []byte, model string) (said, error) {
	var o struct {
		Models []json.RawMessage `json:"models"`
	}
	if err := object(raw, &o); err != nil || o.Models == nil {
		return said{}, errOther
	}
	a := said{server: ollama, text: "not loaded now"}
	for _, r := range o.Models {
		var e struct {
			Name    string `json:"name"`
			Model   string `json:"model"`
			Context count  `json:"context_length"`
			Size    amount `json:"size"`
			OnGPU   amount `json:"size_vram"`
		}
		e.OnGPU = -1 // not said
		if object(r, &e) != nil || !sameModel(e.Name, model) && !sameModel(e.Model, model) {
			continue
		}
		if e.Context == 0 {
			a.text = "loaded, but does not say with how many tokens"
			return a, nil
		}
		a.limit = Limit{Tokens: int(e.Context), Label: Enforced}
		a.held = uint64(max(e.OnGPU, 0))
		a.text = fmt.Sprintf("loaded with %d", e.Context)
		if e.OnGPU >= 0 && e.OnGPU < e.Size {
			a.outside = max(1, int(math.Round(float64(100*(1-e.OnGPU/e.Size)))))
			a.text += fmt.Sprintf(", %d %% of it not on the GPU", a.outside)
		}
		return a, nil
	}
	return a, nil
}

// readShow reads Ollama's description of a model: what it was trained for, which
// Ollama does not load by itself, and what its Modelfile asks for, which it does.
func readShow(raw []byte, _ string) (said, error) {
	var o struct {
		Info       map[string]json.RawMessage `json:"model_info"`
		Parameters string                     `json:"parameters"`
		Modelfile  string                     `json:"modelfile"`
		Remote     string                     `json:"remote_host"`
		Can        []string                   `json:"capabilities"`
	}
	if err := object(raw, &o); err != nil || o.Info == nil && o.Parameters == "" {
		return said{}, errOther
	}
	var architecture string
	var a said
	if o.Can != nil {
		a.sees = new(slices.Contains(o.Can, "vision"))
	}
	if json.Unmarshal(o.Info["general.architecture"], &architecture) == nil {
		var n count
		if json.Unmarshal(o.Info[architecture+".context_length"], &n) == nil {
			a.trained = int(n)
		}
	}
	for _, m := range ollamaFile.FindAllStringSubmatch(o.Modelfile, -1) {
		a.files = append(a.files, m[1])
	}
	for line := range strings.Lines(o.Parameters) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "num_ctx" {
			if n := tokens(f[1]); n > 0 {
				a.limit = Limit{Tokens: n, Label: Estimated}
			}
		}
	}
	a.text = fmt.Sprintf("the model reads at most %d, which is not what is loaded", a.trained)
	switch {
	case o.Remote != "" && a.trained > 0:
		a.limit = Limit{Tokens: a.trained, Label: Max}
		a.text = fmt.Sprintf("runs elsewhere, with %d", a.trained)
	case a.limit.Tokens > 0:
		a.text = fmt.Sprintf("num_ctx %d is set for it; at most %d", a.limit.Tokens, a.trained)
	}
	return a, nil
}

// ollamaFile finds in a Modelfile the files that are loaded: the model first, then what sees pictures, and adapters.
var ollamaFile = regexp.MustCompile(`(?m)^(?:FROM|ADAPTER) "?((?:/|[A-Za-z]:\\).*sha256-[0-9a-f]{64})"?\s*$`)

// listed is an entry of a list of models: everybody's fields.
type listed struct {
	ID      string `json:"id"`
	Parent  string `json:"parent"`
	Owner   string `json:"owned_by"`
	Len     count  `json:"max_model_len"`      // vLLM, SGLang: what it was started with
	Context count  `json:"context_length"`     // OpenRouter, Together
	Window  count  `json:"context_window"`     // Groq
	MaxLen  count  `json:"max_context_length"` // Mistral
	Top     *struct {
		Context count `json:"context_length"`
	} `json:"top_provider"`
	Meta *struct {
		Trained count `json:"n_ctx_train"`
	} `json:"meta"` // llama.cpp
	Architecture *struct {
		Input []string `json:"input_modalities"`
	} `json:"architecture"` // OpenRouter
}

// readList reads the list of models that every server has, for what some add.
func readList(raw []byte, model string) (said, error) {
	var o struct {
		Data []json.RawMessage `json:"data"`
	}
	if err := object(raw, &o); err != nil || o.Data == nil {
		return said{}, errOther
	}
	entries := map[string]listed{}
	var only listed
	for _, r := range o.Data {
		var e listed
		if object(r, &e) == nil && e.ID != "" {
			entries[e.ID], only = e, e
		}
	}
	e, ok := entries[model]
	if !ok && len(entries) == 1 && only.Owner == "llamacpp" { // it serves its one model under any name
		e, ok = only, true
	}
	if e.Len == 0 && e.Parent != "" { // an adapter has its base model's
		e.Len = entries[e.Parent].Len
	}
	a := said{text: "says nothing about windows"}
	if e.Owner == "llamacpp" {
		a.server = llamaCPP
	}
	if !ok {
		a.text = "does not list the model"
		return a, nil
	}
	if arch := e.Architecture; arch != nil && arch.Input != nil {
		a.sees = new(slices.Contains(arch.Input, "image"))
	}
	most := int(max(e.Context, e.Window, e.MaxLen))
	if t := e.Top; t != nil && t.Context > 0 && (most == 0 || int(t.Context) < most) {
		most = int(t.Context)
	}
	switch {
	case e.Len > 0:
		a.limit = Limit{Tokens: int(e.Len), Label: Enforced}
		a.text = fmt.Sprintf("max_model_len %d", e.Len)
	case most > 0:
		a.limit = Limit{Tokens: most, Label: Max}
		a.text = fmt.Sprintf("at most %d", most)
	case e.Meta != nil && e.Meta.Trained > 0:
		a.trained = int(e.Meta.Trained)
		a.text = fmt.Sprintf("the model reads at most %d, which is not what is loaded", a.trained)
	}
	return a, nil
}

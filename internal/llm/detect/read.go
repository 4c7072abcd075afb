package detect

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"reverie/internal/lazyregexp"
)

// Windows outside these bounds are errors of the server.
const (
	minTokens = 512
	maxTokens = 16 << 20
)

// count is a number of tokens in a server's description. Any other value, or an impossible window,
// is 0.
type count int

// UnmarshalJSON accepts any JSON value.
func (c *count) UnmarshalJSON(b []byte) error {
	*c = count(parseTokens(string(b)))
	return nil
}

// parseTokens parses a number of tokens; 0 = no possible window.
func parseTokens(s string) int {
	n, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err == nil && n >= minTokens && n <= maxTokens && n == float64(int(n)) {
		return int(n)
	}
	return 0
}

var errUnknownFormat = errors.New("the answer has an unknown format")

// readProps parses llama.cpp's /props. Its n_ctx is per slot, so it is the window of one
// conversation.
func readProps(raw []byte, _ string) (found Found, text string, err error) {
	var o struct {
		Settings *struct {
			Context count `json:"n_ctx"`
		} `json:"default_generation_settings"`
		Build      string `json:"build_info"`
		Modalities *struct {
			Vision bool `json:"vision"`
		} `json:"modalities"`
	}
	if json.Unmarshal(raw, &o) != nil || o.Settings == nil && o.Build == "" {
		return found, "", errUnknownFormat
	}
	found.Server = llamaCPP
	if o.Settings == nil || o.Settings.Context == 0 {
		return found, "no model is loaded, or it does not say with how many tokens", nil
	}
	if o.Modalities != nil {
		found.Vision = &o.Modalities.Vision
	}
	found.Limit = Limit{Tokens: int(o.Settings.Context), Label: Enforced}
	return found, fmt.Sprintf("n_ctx %d for each conversation", o.Settings.Context), nil
}

// readLMStudio parses LM Studio's own list of models.
func readLMStudio(raw []byte, model string) (found Found, text string, err error) {
	var o struct {
		Data []struct {
			ID     string `json:"id"`
			State  string `json:"state"`
			Type   string `json:"type"` // llm, vlm, embeddings
			Loaded count  `json:"loaded_context_length"`
			Max    count  `json:"max_context_length"`
		} `json:"data"`
	}
	if json.Unmarshal(raw, &o) != nil || o.Data == nil {
		return found, "", errUnknownFormat
	}
	found.Server = lmStudio
	for _, e := range o.Data {
		if e.ID != model {
			continue
		}
		found.Trained = int(e.Max)
		if e.Type != "" {
			found.Vision = new(e.Type == "vlm")
		}
		if e.State == "loaded" && e.Loaded > 0 {
			found.Limit = Limit{Tokens: int(e.Loaded), Label: Enforced}
			return found, fmt.Sprintf("loaded with %d, at most %d", e.Loaded, e.Max), nil
		}
		return found, fmt.Sprintf("not loaded; at most %d", e.Max), nil
	}
	return found, "has no such model", nil
}

// sameModel compares names by Ollama's rules.
func sameModel(theirs, ours string) bool {
	return theirs != "" && (theirs == ours || theirs == ours+":latest" || theirs+":latest" == ours)
}

// readPS parses Ollama's list of loaded models.
func readPS(raw []byte, model string) (found Found, text string, err error) {
	var o struct {
		Models []struct {
			Name    string   `json:"name"`
			Model   string   `json:"model"`
			Context count    `json:"context_length"`
			Size    float64  `json:"size"`
			OnGPU   *float64 `json:"size_vram"`
		} `json:"models"`
	}
	if json.Unmarshal(raw, &o) != nil || o.Models == nil {
		return found, "", errUnknownFormat
	}
	found.Server = Ollama
	for _, e := range o.Models {
		if !sameModel(e.Name, model) && !sameModel(e.Model, model) {
			continue
		}
		if e.Context == 0 {
			return found, "loaded, but does not say with how many tokens", nil
		}
		found.Limit = Limit{Tokens: int(e.Context), Label: Enforced}
		text = fmt.Sprintf("loaded with %d", e.Context)
		if e.OnGPU != nil && *e.OnGPU < e.Size {
			found.OffGPU = max(1, int(math.Round(100*(1-*e.OnGPU/e.Size))))
			text += fmt.Sprintf(", %d %% of it not on the GPU", found.OffGPU)
		}
		return found, text, nil
	}
	return found, "not loaded now", nil
}

// readShow parses Ollama's description of a model. Ollama loads the window of the Modelfile, but
// not the trained one.
func readShow(raw []byte, _ string) (found Found, text string, err error) {
	var o struct {
		Info       map[string]json.RawMessage `json:"model_info"`
		Parameters string                     `json:"parameters"`
		Remote     string                     `json:"remote_host"`
		Can        []string                   `json:"capabilities"`
	}
	if json.Unmarshal(raw, &o) != nil || o.Info == nil && o.Parameters == "" {
		return found, "", errUnknownFormat
	}
	if o.Can != nil {
		found.Vision = new(slices.Contains(o.Can, "vision"))
	}
	var architecture string
	if json.Unmarshal(o.Info["general.architecture"], &architecture) == nil {
		found.Trained = parseTokens(string(o.Info[architecture+".context_length"]))
	}
	for line := range strings.Lines(o.Parameters) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "num_ctx" && parseTokens(f[1]) > 0 {
			found.Limit = Limit{Tokens: parseTokens(f[1]), Label: Estimated}
		}
	}
	switch {
	case o.Remote != "" && found.Trained > 0:
		found.Limit = Limit{Tokens: found.Trained, Label: Max}
		return found, fmt.Sprintf("runs elsewhere, with %d", found.Trained), nil
	case found.Limit.Tokens > 0:
		return found, fmt.Sprintf("num_ctx %d is set for it; at most %d", found.Limit.Tokens, found.Trained), nil
	}
	return found, fmt.Sprintf("the model reads at most %d, which is not what is loaded", found.Trained), nil
}

// modelEntry is an entry of a list of models, with the fields of all servers.
type modelEntry struct {
	ID      string `json:"id"`
	Owner   string `json:"owned_by"`
	Len     count  `json:"max_model_len"`      // vLLM, SGLang: the configured window
	Context count  `json:"context_length"`     // OpenRouter, Together
	Window  count  `json:"context_window"`     // Groq
	MaxLen  count  `json:"max_context_length"` // Mistral
	Top     struct {
		Context count `json:"context_length"`
	} `json:"top_provider"`
	Meta struct {
		Trained count `json:"n_ctx_train"`
	} `json:"meta"` // llama.cpp
	Architecture struct {
		Input []string `json:"input_modalities"`
	} `json:"architecture"` // OpenRouter
}

// readList parses the list of models, to which some servers add windows.
func readList(raw []byte, model string) (found Found, text string, err error) {
	var o struct {
		Data []modelEntry `json:"data"`
	}
	if json.Unmarshal(raw, &o) != nil || o.Data == nil {
		return found, "", errUnknownFormat
	}
	at := slices.IndexFunc(o.Data, func(e modelEntry) bool { return e.ID == model })
	if at < 0 && len(o.Data) == 1 && o.Data[0].Owner == "llamacpp" { // it serves its one model under any name
		at = 0
	}
	if at < 0 {
		return found, "does not list the model", nil
	}
	e := o.Data[at]
	if e.Owner == "llamacpp" {
		found.Server = llamaCPP
	}
	if e.Architecture.Input != nil {
		found.Vision = new(slices.Contains(e.Architecture.Input, "image"))
	}
	most := int(max(e.Context, e.Window, e.MaxLen))
	if top := int(e.Top.Context); top > 0 && (most == 0 || top < most) {
		most = top
	}
	switch {
	case e.Len > 0:
		found.Limit = Limit{Tokens: int(e.Len), Label: Enforced}
		return found, fmt.Sprintf("max_model_len %d", e.Len), nil
	case most > 0:
		found.Limit = Limit{Tokens: most, Label: Max}
		return found, fmt.Sprintf("at most %d", most), nil
	case e.Meta.Trained > 0:
		found.Trained = int(e.Meta.Trained)
		return found, fmt.Sprintf("the model reads at most %d, which is not what is loaded", found.Trained), nil
	}
	return found, "says nothing about windows", nil
}

// limitPhrases match the window in servers' refusals, in lower case.
var limitPhrases = []func() *regexp.Regexp{
	lazyregexp.New(`"n_ctx"\s*:\s*(\d+)`),                                                    // llama.cpp
	lazyregexp.New(`available context size \((\d+)`),                                         // llama.cpp
	lazyregexp.New(`maximum (?:context|model|prompt|input) length (?:is|of) ([\d,]+)`),       // OpenAI, vLLM, OpenRouter, xAI
	lazyregexp.New(`context (?:length|window|size) (?:is|of)(?: only| at most)? ([\d,]+)`),   // LM Studio and others
	lazyregexp.New(`> ([\d,]+) maximum`),                                                     // Anthropic
	lazyregexp.New(`exceeds? the maximum number of (?:input )?tokens allowed[:( ]+([\d,]+)`), // Google
}

// LimitInError extracts the window from an error; 0 = it names none.
func LimitInError(text string) int {
	text = strings.ToLower(text)
	for _, phrase := range limitPhrases {
		if m := phrase().FindStringSubmatch(text); m != nil {
			if n := parseTokens(strings.ReplaceAll(m[1], ",", "")); n > 0 {
				return n
			}
		}
	}
	return 0
}

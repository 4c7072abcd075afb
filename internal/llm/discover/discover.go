// Package discover finds a language model on this machine, for the first start.
package discover

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// Rehearsal is the address of the rehearsal model, which the bot serves itself.
const Rehearsal = "rehearsal:"

// Server is a language model that answered.
type Server struct {
	Name  string // for people
	URL   string // OpenAI-compatible, ends in /v1
	Key   string
	Model string
}

// localServers are the default addresses of model servers. They are tried in this order.
var localServers = []Server{
	{Name: "Ollama", URL: "http://127.0.0.1:11434/v1"},
	{Name: "llama.cpp", URL: "http://127.0.0.1:8080/v1"},
	{Name: "LM Studio", URL: "http://127.0.0.1:1234/v1"},
}

// Detect returns the first language model that answers. REVERIE_LLM_URL comes first and must answer
// or be accompanied by a model's name; then the local servers; then the rehearsal model.
func Detect(ctx context.Context, getenv func(string) string) (Server, error) {
	rehearsal := Server{Name: "the rehearsal model", URL: Rehearsal, Model: "rehearsal"}
	named := Server{
		Name: "REVERIE_LLM_URL", URL: strings.TrimRight(getenv("REVERIE_LLM_URL"), "/"),
		Key: getenv("REVERIE_LLM_KEY"), Model: getenv("REVERIE_LLM_MODEL"),
	}
	switch named.URL {
	case Rehearsal:
		return rehearsal, nil
	case "":
		for _, s := range localServers {
			if s.chooseModel(ctx, time.Second) == nil && s.Model != "" {
				return s, nil
			}
		}
		return rehearsal, nil
	}
	if err := named.chooseModel(ctx, 10*time.Second); err != nil && named.Model == "" {
		return Server{}, fmt.Errorf("REVERIE_LLM_URL: %w; check that it is an OpenAI-compatible address "+
			"ending in /v1, or name the model in REVERIE_LLM_MODEL", err)
	}
	return named, nil
}

// chooseModel lists the models, and chooses the first that can chat unless one is named.
func (s *Server) chooseModel(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/models", nil)
	if err != nil {
		return err
	}
	if s.Key != "" {
		req.Header.Set("Authorization", "Bearer "+s.Key)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s/models answered %s", s.URL, res.Status)
	}
	var list struct{ Data []struct{ ID string } }
	if err := json.NewDecoder(io.LimitReader(res.Body, 4<<20)).Decode(&list); err != nil {
		return fmt.Errorf("%s/models did not answer with a list of models", s.URL)
	}
	for _, m := range list.Data {
		if s.Model == "" && !strings.Contains(strings.ToLower(m.ID), "embed") {
			s.Model = m.ID
		}
	}
	return nil
}

// IsLocal reports whether host is this machine.
func IsLocal(host string) bool {
	addr, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && (addr.Unmap().IsLoopback() || addr.Unmap().IsUnspecified())
}

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var quotedMemory = regexp.MustCompile(`<memory [a-z0-9]+>(.*?)</memory [a-z0-9]+>`)

// numberedMessage is a line of a request to harvest.
var numberedMessage = regexp.MustCompile(`(?m)^\[(\d+)\] \S+ \S+ \S+: (.*)$`)

// lastAsked is the newest message of a request to a model.
func lastAsked(body []byte) (text string, stream bool) {
	var request struct {
		Stream   bool
		Messages []struct{ Content string }
	}
	if json.Unmarshal(body, &request) != nil || len(request.Messages) == 0 {
		return "", false
	}
	return request.Messages[len(request.Messages)-1].Content, request.Stream
}

// reply is the whole answer of a model.
func reply(w http.ResponseWriter, stream bool, text string) {
	content, _ := json.Marshal(text)
	if !stream {
		fmt.Fprintf(w, `{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":%s}}]}`, content)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%s},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", content)
}

// judge answers like a model that knows who moved, and who plays what, and takes each
// sentence that somebody says of Jana for a fact.
func judge(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	prompt, stream := lastAsked(body)
	if prompt == "" {
		http.NotFound(w, r)
		return
	}
	reply(w, stream, judgement(prompt))
}

func judgement(prompt string) string {
	var said []string
	for _, m := range numberedMessage.FindAllStringSubmatch(prompt, -1) {
		for _, fact := range regexp.MustCompile(`Jana [^.]+`).FindAllString(m[2], -1) {
			said = append(said, fmt.Sprintf(`{"message": %s, "quote": %q, "fact": %q, "subject": "Jana", "kind": "fact"}`, m[1], fact, fact))
		}
	}
	texts := quotedMemory.FindAllStringSubmatch(prompt, -1)
	texts = texts[len(texts)%2:]
	for i := 0; i+1 < len(texts); i += 2 {
		a, b, verdict := texts[i][1], texts[i+1][1], "neither"
		switch {
		case strings.Contains(a, "lives in") && strings.Contains(b, "moved to") && a[:3] == b[:3]:
			verdict = "keep_second"
		case strings.Contains(a, "tennis") && strings.Contains(b, "tennis"):
			verdict = "merge"
		}
		said = append(said, fmt.Sprintf(`{"pair": %d, "verdict": %q}`, i/2+1, verdict))
	}
	return "[" + strings.Join(said, ",") + "]"
}

// TestDreaming runs the binary beside that model.
func TestDreaming(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(judge))
	t.Cleanup(server.Close)
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "dreaming"), RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("JUDGE", server.URL+"/v1")
			return nil
		},
	})
}

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
	"testing/synctest"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"reverie/internal/matrix/peer"
	"reverie/internal/memory"
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

// TestTheLastTalkOfADay: what is said ten minutes before a dream is read by it, and holds in the
// morning in the place of what was said before; the owner is told. !dream reads what was said just now, too.
func TestTheLastTalkOfADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDayWith(t, http.HandlerFunc(judge), func(c *Config) {
			c.LLM.Models = []ModelConfig{{Name: "judge", BaseURL: "http://model.test/v1", Model: "judge"}}
			c.Harvest.Calls = 500
			c.Dreaming = DreamingConfig{Schedule: "30 3 * * *", Notice: true}
		})
		began := time.Now()
		ann := d.person("ann")
		room := d.room(ann, peer.Room{Name: "Ann", Direct: true, Encrypted: true, Invite: []string{d.bot}})
		say := func(after time.Duration, text string) {
			sleepUntil(t.Context(), began.Add(after))
			_, err := ann.Say(t.Context(), room, text)
			must(d.t, err)
		}
		known := func(states ...memory.State) string {
			t.Helper()
			all, err := d.parts.memory.List(t.Context(), memory.Access{All: true}, memory.Filter{States: states})
			must(d.t, err)
			var texts []string
			for _, e := range all {
				texts = append(texts, e.Text)
			}
			return strings.Join(texts, ", ")
		}
		say(at(1, 0), "Jana lives in Berlin. Jana likes green tea. Jana plays tennis.")
		say(at(3, 20), "Jana moved to Hamburg.")
		sleepUntil(t.Context(), began.Add(at(3, 29)))
		if got := known(memory.Active); strings.Contains(got, "Hamburg") || !strings.Contains(got, "Berlin") {
			t.Fatalf("known before the dream: %s", got)
		}
		sleepUntil(t.Context(), began.Add(at(3, 34))) // a minute before it would be read by itself
		if got := known(memory.Active); !strings.Contains(got, "Jana moved to Hamburg") || strings.Contains(got, "Berlin") {
			t.Errorf("known in the morning: %s", got)
		}
		if got := known(memory.Superseded); got != "Jana lives in Berlin" {
			t.Errorf("superseded: %s", got)
		}
		say(at(5, 0), "Jana plays chess.")
		say(at(5, 1), "!dream")
		sleepUntil(t.Context(), began.Add(at(5, 5)))
		if got := known(memory.Active); !strings.Contains(got, "chess") {
			t.Errorf("known after !dream: %s", got)
		}
		if !ann.told("messages: 1, new facts: 1") || !ann.told("1 superseded") {
			t.Errorf("the owner heard %q", ann.notices)
		}
	})
}

package session

import (
	"testing"

	"reverie/internal/llm"
	"reverie/internal/tool"
)

// searched is what the model finds with search_memory in the owner's own chat.
func (w *world) searched(t *testing.T, query string) string {
	t.Helper()
	s := w.sessionOf("!dm")
	scope := tool.Scope{Room: "!dm", User: owner, Private: true, Memory: s.scopes(Inbound{Room: "!dm", Sender: owner, Private: true})}
	return w.cfg.Tools.Run(t.Context(), scope, llm.ToolCall{ID: "1", Name: "search_memory", Arguments: `{"query":"` + query + `","k":10}`}).Content
}

// TestForgottenIsNotFound: what is forgotten cannot be searched any more, however soon
// after it was said, also in other words, in the answer, and after a new conversation.
func TestForgottenIsNotFound(t *testing.T) {
	for name, forget := range map[string]func(t *testing.T, w *world){
		"said to remember": func(t *testing.T, w *world) {
			w.say(t, "$1", "!remember my boat is 4711 Canary")
			w.say(t, "$2", "!forget my boat is 4711 Canary")
		},
		"noted by the model": func(t *testing.T, w *world) {
			w.script.answers = append(w.script.answers, `{"entry":"My boat is 4711 Canary"}`, "I noted that your boat is 4711 Canary.")
			w.say(t, "$1", "My boat is 4711 Canary")
			w.say(t, "$2", "!forget my boat is 4711 Canary")
		},
		"said in other words": func(t *testing.T, w *world) {
			w.script.answers = append(w.script.answers, "4711 Canary, I see.", "fine")
			w.say(t, "$0", "By the way, the boat of mine is still 4711 Canary!")
			w.say(t, "$1", "!remember my boat is 4711 Canary")
			w.say(t, "$2", "!forget my boat is 4711 Canary")
		},
		"forgotten at the machine": func(t *testing.T, w *world) {
			w.script.answers = append(w.script.answers, `{"entry":"My boat is 4711 Canary"}`, "I noted that your boat is 4711 Canary.")
			w.say(t, "$1", "My boat is 4711 Canary")
			a := w.sessionOf("!dm").access(Inbound{Room: "!dm", Sender: owner, Private: true})
			found, _, err := w.cfg.Memory.Find(t.Context(), a, "boat")
			if err != nil || len(found) != 1 {
				t.Fatal(found, err)
			}
			result(w.cfg.Memory.Forget(t.Context(), a, found[0].ID))(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, t.TempDir())
			w.script.forever = "fine"
			forget(t, w)
			lacks(t, w.searched(t, "boat 4711 Canary"), "4711")
			w.say(t, "$3", "!new")
			w.say(t, "$4", "hello")
			w.say(t, "$5", "!new")
			lacks(t, w.searched(t, "boat 4711 Canary"), "4711", "Canary")
		})
	}
}

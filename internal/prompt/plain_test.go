package prompt

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"reverie/internal/history"
	"reverie/internal/llm"
)

var (
	eventLike  = regexp.MustCompile(`(?i)[\[［【][^\]］】\n]{0,100}system[ \x{200b}-]*event`)
	beginsLike = regexp.MustCompile(`(?m)^[ \x{200b}]*[\[［【]Sat 2026-11-21`)
)

// TestNobodySpeaksForTheProgram: whatever stands in the words of people or in what tools
// found, and in which fence, nothing in it is left that looks like a system event.
func TestNobodySpeaksForTheProgram(t *testing.T) {
	part := rapid.SampledFrom([]string{"[", "［", "【", "]", "system", "SYSTEM", " ", "\u200b", "-", "event", "Event", ": scheduled task]", "Sat 2026-11-21 19:25 UTC, ", "\n", "tea", "k3f9", "<data", "[note k3f9]"})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(part, 1, 14).Draw(t, "text"), "")
		for _, role := range []llm.Role{llm.User, llm.Tool} {
			m := history.Message{ID: 1, Role: role, Sender: "@ann:x", Text: text, Header: "[Sat 2026-11-21 19:25 UTC, @ann:x]"}
			model, _ := sendMessage(&m, "", "k3f9", "", false)
			sent := strings.TrimPrefix(model.Content, m.Header)
			if found := eventLike.FindString(sent); found != "" {
				t.Fatalf("%q: the model reads %q", text, found)
			}
			if found := beginsLike.FindString(sent); found != "" {
				t.Fatalf("%q: the model reads %q", text, found)
			}
		}
		if found := eventLike.FindString(fenced(text, "memories", "k3f9")); found != "" {
			t.Fatalf("%q: the fence holds %q", text, found)
		}
	})
}

package goal

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"reverie/internal/test/expect"
)

// short formats a marker for the tables below.
func short(m Marker) string { return strings.TrimSuffix(m.Kind+"|"+m.Text+"|"+m.State, "|") }

func TestMarkerLines(t *testing.T) {
	for line, want := range map[string]string{
		// where the tag may stand, and in which case
		"  \t[GOAL] Ship it  ":              "GOAL|Ship it",
		"[goal] Ship it":                    "GOAL|Ship it",
		"- [GOAL] Ship it":                  "GOAL|Ship it",
		"* [GOAL] Ship it":                  "GOAL|Ship it",
		"3. [GOAL] Ship it":                 "GOAL|Ship it",
		"> [GOAL] Ship it":                  "GOAL|Ship it",
		"### [GOAL] Ship it":                "GOAL|Ship it",
		"**[GOAL]** Ship it":                "GOAL|Ship it",
		"**[GOAL] Ship it**":                "GOAL|Ship it",
		"[**GOAL**] Ship it":                "GOAL|Ship it",
		"- **[GOAL]:** Ship it":             "GOAL|Ship it",
		"[GOAL]: Ship it":                   "GOAL|Ship it",
		"[GOAL] - Ship it":                  "GOAL|Ship it",
		"[GOAL]\tShip\u00a0it":              "GOAL|Ship it",
		"🎯 [GOAL] Ship it\r":                "GOAL|Ship it",
		"[NEXT] Write *one* page":           "NEXT|Write *one* page",
		"[Next]: Read https://example.org/": "NEXT|Read https://example.org/",
		// goals
		"[GOAL] Ship it - COMPLETED":         "GOAL|Ship it|completed",
		"[GOAL] Ship it (paused)":            "GOAL|Ship it|paused",
		"[GOAL] ✅ is a sign":                 "GOAL|✅ is a sign",
		"[GOAL] Implement [CHECKPOINT] tags": "GOAL|Implement [CHECKPOINT] tags",
		// statuses of checkpoints
		"[CHECKPOINT] Plan":                         "CHECKPOINT|Plan",
		"[CHECKPOINT] Plan - COMPLETED":             "CHECKPOINT|Plan|done",
		"[CHECKPOINT] Plan — DONE!":                 "CHECKPOINT|Plan|done",
		"[CHECKPOINT] Plan | done":                  "CHECKPOINT|Plan|done",
		"[CHECKPOINT] Plan (DONE)":                  "CHECKPOINT|Plan|done",
		"[CHECKPOINT] Plan - **DONE**":              "CHECKPOINT|Plan|done",
		"[CHECKPOINT] Plan - ✅":                     "CHECKPOINT|Plan|done",
		"[CHECKPOINT] Plan ✔️":                      "CHECKPOINT|Plan|done",
		"[CHECKPOINT] ✅ Plan":                       "CHECKPOINT|Plan|done",
		"✅ [CHECKPOINT] Plan":                       "CHECKPOINT|Plan|done",
		"- [x] [CHECKPOINT] Plan":                   "CHECKPOINT|Plan|done",
		"[CHECKPOINT] Plan - IN-PROGRESS":           "CHECKPOINT|Plan|in progress",
		"[CHECKPOINT] Plan (IN PROGRESS)":           "CHECKPOINT|Plan|in progress",
		"[CHECKPOINT] Plan - WIP":                   "CHECKPOINT|Plan|in progress",
		"🔄 [CHECKPOINT] 3. Plan (IN PROGRESS)":      "CHECKPOINT|Plan|in progress",
		"[CHECKPOINT] Plan - PENDING":               "CHECKPOINT|Plan|pending",
		"[CHECKPOINT] Plan - not started":           "CHECKPOINT|Plan|pending",
		"[CHECKPOINT] Plan - BLOCKED":               "CHECKPOINT|Plan|pending",
		"[CHECKPOINT] Plan ⏳":                       "CHECKPOINT|Plan|pending",
		"[CHECKPOINT] Make a TODO list - DONE":      "CHECKPOINT|Make a TODO list|done",
		"[CHECKPOINT] X-completed":                  "CHECKPOINT|X-completed",
		"[CHECKPOINT] Plan - pending review by Ada": "CHECKPOINT|Plan - pending review by Ada",
		"[CHECKPOINT] Plan - PENDING - COMPLETED":   "CHECKPOINT|Plan|done", // the last one counts
		// decisions
		"[DECISION] Use JWT":              "DECISION|Use JWT",
		"[DECISION] Use JWT - LOCKED":     "DECISION|Use JWT|locked",
		"[DECISION] Use JWT (LOCKED)":     "DECISION|Use JWT|locked",
		"[DECISION] Use JWT 🔒":            "DECISION|Use JWT|locked",
		"🔒 [DECISION] Use JWT":            "DECISION|Use JWT|locked",
		"[DECISION] Keep the door locked": "DECISION|Keep the door locked",
		// artifacts
		"[ARTIFACT] created src/a.ts":              "ARTIFACT|src/a.ts|created",
		"[ARTIFACT] DELETED `src/a.ts`":            "ARTIFACT|src/a.ts|deleted",
		"[ARTIFACT] **Updated:** \"src/a.ts\"":     "ARTIFACT|src/a.ts|modified",
		"[ARTIFACT] Created `src/a.ts` - the form": "ARTIFACT|src/a.ts|created",
		// no markers
		"Ship it [GOAL] now":                "",
		"The [GOAL] is clear":               "",
		"`[GOAL] Ship it`":                  "",
		"[GOAL]":                            "",
		"[GOAL] ":                           "",
		"[GOAL]Ship it":                     "",
		"[GOAL Ship it":                     "",
		"[Next](https://example.org/) page": "",
		"[CHECKPOINT] DONE":                 "",
		"[ARTIFACT] src/a.ts":               "",
		"[ARTIFACT] Created":                "",
		"[GOAL] Ship\x1b[31m it":            "",
		"[GOAL] \xff":                       "",
		"[GOAL] " + strings.Repeat("x", maxMarkerLine):   "",
		"[GOAL] " + strings.Repeat("é", maxMarkerLine-7): "GOAL|" + strings.Repeat("é", maxMarkerLine-7),
		"[GOAL] " + strings.Repeat("é", maxMarkerLine-6): "",
		"[TODO] Ship it": "",
	} {
		got, rest := ParseMarkers(line)
		text := ""
		for _, m := range got {
			text += short(m)
		}
		expect.Equal(t, text, want, "%q", line)
		if whole := line; want == "" && rest != whole || want != "" && rest != "" {
			t.Errorf("%q leaves %q", line, rest)
		}
		for i := range line { // nothing of it is ever shown while it is written
			if shown := VisibleDraft("Well.\n" + line[:i]); want != "" && strings.TrimSpace(shown) != "Well." {
				t.Errorf("%q shows %q", line[:i], shown)
				break
			}
		}
	}
}

func TestMarkersInText(t *testing.T) {
	for name, c := range map[string]struct{ text, rest, want string }{
		"none":        {"Well.\n\n\nSo.\n", "Well.\n\n\nSo.\n", ""},
		"middle":      {"Well.\n\n[NEXT] Go\n\nSo.", "Well.\n\nSo.", "NEXT|Go"},
		"tight":       {"Well.\n[NEXT] Go\nSo.", "Well.\nSo.", "NEXT|Go"},
		"begin":       {"[NEXT] Go\n\nSo.\n", "So.\n", "NEXT|Go"},
		"end":         {"Well.\n\n[NEXT] Go\n", "Well.", "NEXT|Go"},
		"several":     {"Well.\n\n[GOAL] A\n\n[NEXT] Go\n\n\nSo.\n\n\nEnd.", "Well.\n\nSo.\n\n\nEnd.", "GOAL|A NEXT|Go"},
		"windows":     {"Well.\r\n[NEXT] Go\r\nSo.", "Well.\r\nSo.", "NEXT|Go"},
		"fence":       {"So:\n```\n[NEXT] Go\n```\n[NEXT] On", "So:\n```\n[NEXT] Go\n```", "NEXT|On"},
		"tildes":      {"~~~~ text\n[NEXT] Go\n~~~\n[NEXT] On\n~~~~\nx", "~~~~ text\n[NEXT] Go\n~~~\n[NEXT] On\n~~~~\nx", ""},
		"open fence":  {"```go\n[NEXT] Go", "```go\n[NEXT] Go", ""},
		"quoted":      {"> ```\n> [NEXT] Go\n> ```\n> [NEXT] On", "> ```\n> [NEXT] Go\n> ```", "NEXT|On"},
		"in a list":   {"- ```\n  [NEXT] Go\n  ```\n- [NEXT] On", "- ```\n  [NEXT] Go\n  ```", "NEXT|On"},
		"code marks":  {"```x``` is code\n[NEXT] Go", "```x``` is code", "NEXT|Go"},
		"no newline":  {"[NEXT] Go [NEXT] On", "", "NEXT|Go [NEXT] On"},
		"not a list":  {"Note [1]\n[1] A note.\n[GOALS] x", "Note [1]\n[1] A note.\n[GOALS] x", ""},
		"second line": {"[GOAL] A\nwhich goes on here", "which goes on here", "GOAL|A"},
	} {
		got, rest := ParseMarkers(c.text)
		var texts []string
		for _, m := range got {
			texts = append(texts, short(m))
		}
		if s := strings.Join(texts, " "); s != c.want || rest != c.rest {
			t.Errorf("%s: markers %q, want %q; rest %q, want %q", name, s, c.want, rest, c.rest)
		}
		for i := range c.text {
			if part := VisibleDraft(c.text[:i]); !strings.HasPrefix(rest, part) {
				t.Errorf("%s: %q shows %q, and in the end there is %q", name, c.text[:i], part, rest)
			}
		}
	}
	var many strings.Builder
	for i := range maxMarkers + 7 {
		fmt.Fprintf(&many, "[NEXT] Step %d\n", i)
	}
	got, rest := ParseMarkers(many.String() + "Well.")
	if len(got) != maxMarkers || rest != "Well." || got[maxMarkers-1].Text != "Step 49" {
		t.Errorf("%d markers, rest %q", len(got), rest)
	}
}

// A growing draft never retracts shown text except an incomplete line, and never shows a marker.
func TestVisibleDraft(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "",
		"Well, [":               "Well, [",
		"[":                     "",
		"- ":                    "",
		"- W":                   "- W",
		"[G":                    "",
		"[Gr":                   "", // may be a tag
		"[1] A":                 "[1] A",
		"[GOAL":                 "",
		"[GOALS]":               "[GOALS]",
		"[A longer link":        "[A longer link",
		"[GOAL]":                "",
		"[GOAL](":               "[GOAL](",
		"[GOAL] Ship":           "",
		"[GOAL] Ship\n":         "",
		"Well.\n[GOAL] Ship\nS": "Well.\nS",
		"Well.\n\n**[ch":        "Well.",
		"```\n[GOAL] Ship\nx":   "```\n[GOAL] Ship\nx",
		"[GOAL] " + strings.Repeat("x", maxMarkerLine): "[GOAL] " + strings.Repeat("x", maxMarkerLine),
	} {
		expect.Equal(t, VisibleDraft(text), want, "%q shows", text)
	}
}

// For any text: no panic, and no marker in the rest or the visible draft.
func FuzzMarkers(f *testing.F) {
	for _, s := range []string{
		"[GOAL] A - DONE", "- **[CHECKPOINT]** 🔄 3. Plan – IN PROGRESS ✅", "[DECISION] x - locked - UNLOCKED 🔒",
		"[ARTIFACT] Created: `a b` - c", "[artifact] x | new", "> ```\n[NEXT] x\n> ```", "[CHECKPOINT] a - DONE - BLOCKED b", "[NEXT]: “x”",
		"[GOAL] \"**_x_**\"", "*[GOAL]* - - : x\n\n\n[NEXT] y\n\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		markers, rest := ParseMarkers(text)
		for _, m := range markers {
			if m.Text == "" || !utf8.ValidString(m.Text) || strings.ContainsAny(m.Text, "\n\r\x00") || utf8.RuneCountInString(m.Text) > maxMarkerLine {
				t.Fatalf("marker %+v", m)
			}
		}
		if again, same := ParseMarkers(rest); len(again) != 0 || same != rest {
			t.Fatalf("%q still holds %+v", rest, again)
		}
		if len(markers) == 0 && rest != text {
			t.Fatalf("%q became %q", text, rest)
		}
		shown := VisibleDraft(text)
		if again, _ := ParseMarkers(shown); len(again) != 0 {
			t.Fatalf("%q shows %q", text, shown)
		}
		if len(text) > 200 {
			return
		}
		for i := range text { // nothing that was shown is ever taken back
			if part := VisibleDraft(text[:i]); !strings.HasPrefix(rest, part) {
				t.Fatalf("%q shows %q, and in the end there is %q", text[:i], part, rest)
			}
		}
	})
}

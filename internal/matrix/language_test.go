package matrix

import (
	"context"
	"slices"
	"strings"
	"testing"

	"reverie/internal/session"
)

// inLanguage speaks a language in every room.
func inLanguage(language string) func(context.Context, string, string, ...string) string {
	return func(_ context.Context, _, key string, fill ...string) string {
		return (*session.Messages)(nil).In(language, key, fill...)
	}
}

// TestEmojiNames: emoji are called as clients call them in the language of the room; one that
// is not known keeps its English name.
func TestEmojiNames(t *testing.T) {
	names := []string{"Dog", "Thumbs Up", "Pin", "Light Bulb", "Comet"}
	for language, want := range map[string][]string{
		"en": names, "de": {"Hund", "Daumen hoch", "Stecknadel", "Glühbirne", "Comet"}, "ja": {"犬", "いいね", "ピン", "電球", "Comet"}, "pt": names,
	} {
		v := &verifier{c: &Client{cfg: Config{Text: inLanguage(language)}}}
		if got := v.emojiNames(t.Context(), "!r", names); !slices.Equal(got, want) {
			t.Errorf("%s: %q", language, got)
		}
	}
}

// TestUnsentInTheLanguage: why a file was not sent is told in the language of the room.
func TestUnsentInTheLanguage(t *testing.T) {
	c := &Client{cfg: Config{Text: inLanguage("de")}}
	row := outRow{id: "a", room: "!r", file: `{"name":"tee.pdf"}`}
	if got := c.unsent(t.Context(), row, errFileGone).text; got != "tee.pdf konnte nicht gesendet werden: die Datei ist hier nicht mehr aufgehoben." {
		t.Errorf("got %q", got)
	}
	if got := c.unsent(t.Context(), row, context.Canceled).text; !strings.HasSuffix(got, ": der Homeserver nimmt es nicht an.") {
		t.Errorf("got %q", got)
	}
}

package session

import (
	"strings"
	"testing"
	"time"
)

// TestEditedBesideAVoiceMessage: what is written beside a voice message is edited: it is
// answered anew, and what was said in it is still what the person said, also when the edit
// is delivered again.
// Holds M3.
func TestEditedBesideAVoiceMessage(t *testing.T) {
	w, files := newFiles(t, 16_000, false, true, "one", "two", "three")
	w.cfg.Settle = time.Millisecond
	w.bring(t, "$1", "for the zebra", files, VoiceFile, "voice.ogg", []byte("OggS\x00\x02 and so on"))
	for range 2 {
		w.change(t, Edited, "$edit", "$1", "for the lion", time.Now())
	}
	if got := w.words(t); got != "user for the lion\n"+voiceMark+" buy milk, please | assistant two" {
		t.Errorf("the conversation is %q", got)
	}
	if asked := w.script.asked(); len(asked) != 2 || !strings.Contains(asked[1], "for the lion\\n"+voiceMark+" buy milk, please") || strings.Contains(asked[1], "zebra") {
		t.Errorf("asked %d times, and in the end %s", len(asked), asked[len(asked)-1])
	}
}

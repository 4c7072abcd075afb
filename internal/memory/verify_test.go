package memory

import (
	"fmt"
	"testing"
)

// Verifying sees one state of the index while others write.
func TestVerifyBesideAWriter(t *testing.T) {
	f := openIndex(t)
	remember(t, f, `{"text":"apple","conversation":"c","seq":1}`, `{"text":"pear","conversation":"c","seq":3}`)
	done := make(chan error, 1)
	// go: it ends with its last message, and is waited for
	go func() {
		for i := range 40 {
			if err := f.Hear(t.Context(), Turn{Scope: Shared, Event: fmt.Sprint("$", i), Text: "hello", At: today, Conversation: "c", Seq: i}); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for ended := false; !ended; {
		if faults, err := f.Verify(t.Context()); err != nil || len(faults) > 0 {
			t.Errorf("%q, %v", faults, err)
		}
		select {
		case err := <-done:
			if ended = true; err != nil {
				t.Error(err)
			}
		default:
		}
	}
}

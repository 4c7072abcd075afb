package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"
)

func (s *speaker) waits(t *testing.T) string {
	t.Helper()
	select {
	case body := <-s.asked:
		return body
	case <-time.After(time.Minute):
		t.Fatal("the model was not asked")
		return ""
	}
}

// TestLiveStop: `!stop` ends the answer that a slow model makes.
func TestLiveStop(t *testing.T) {
	bot, model := startChat(t, 80)
	bot.typed("tell me a story\r")
	model.waits(t)
	bot.typed("!stop\r")
	bot.sees("I stopped working on this")
	bot.sees("Stopped.")
	bot.leaves()
}

// TestLiveTyping: what is typed while an answer grows stays as it is, and the answer is
// wrapped between words.
func TestLiveTyping(t *testing.T) {
	bot, model := startChat(t, 40)
	bot.typed("tell me\r")
	model.waits(t)
	bot.typed("half a li")
	bot.sees("half a li")
	model.words <- "The lighthouse keeper climbed every evening to the lamp "
	model.words <- "and looked at the sea,\nwhich was quiet.\n\nThen at last "
	bot.sees("which was quiet.")
	bot.sees("> half a li")
	bot.typed("ne")
	bot.sees("> half a line")
	model.says("he slept.")
	bot.sees("Then at last he slept.")
	bot.sees("> half a line")
	bot.sees("Reverie: The lighthouse keeper climbed\nevery evening to the lamp and looked at\nthe sea,\nwhich was quiet.\n\nThen at last he slept.\n")
	if screen := bot.look(); strings.Count(screen, "half a li") != 1 || strings.Count(screen, "keeper") != 1 {
		t.Errorf("not once:\n%s", screen)
	}
	bot.typed("\r")
	if body := model.waits(t); !strings.Contains(body, "half a line") {
		t.Errorf("the model was sent %s", body)
	}
	model.says("Yes.")
	bot.sees("Yes.")
	bot.leaves()
}

// TestLiveEnds: Ctrl-C, Ctrl-D and words that people try end it, at once where nothing is
// being answered, and leave the terminal as it was.
func TestLiveEnds(t *testing.T) {
	for _, keys := range []string{"\x03", "abc\x03", "\x04", "exit\r", "/quit\r"} {
		bot, model := startChat(t, 80)
		bot.typed(keys)
		bot.ends()
		if len(model.asked) != 0 {
			t.Errorf("%q: the model was asked", keys)
		}
	}
	bot, model := startChat(t, 80)
	bot.typed("hello\r")
	model.waits(t)
	bot.typed("\x04")
	time.Sleep(50 * time.Millisecond) // so that the end is typed before the answer
	model.says("Good bye.")
	bot.ends()
	if !strings.Contains(bot.look(), "Good bye.") {
		t.Errorf("the end of input cut the answer off:\n%s", bot.look())
	}
}

// TestLiveEndsLater: the end of input waits for the answer, and Ctrl-C does not.
func TestLiveEndsLater(t *testing.T) {
	for _, keys := range []string{"\x04", "exit\r"} {
		bot, model := startChat(t, 80)
		bot.typed("hello\r")
		model.waits(t)
		bot.typed(keys)
		bot.sees(endsLater)
		bot.typed("more\r\x03")
		time.Sleep(time.Second) // the first signal is taken before the second
		bot.typed("\x03")
		if err := bot.left(); err == nil || err.Error() != "signal: interrupt" {
			t.Errorf("%q: %v", keys, err)
		}
	}
}

// TestPipedStop: what is read from a pipe is answered line by line; only `!stop` does not wait.
func TestPipedStop(t *testing.T) {
	model, config := newSpeaker(t)
	var out, errs bytes.Buffer
	in, type_ := io.Pipe()
	code := make(chan int, 1)
	// go: waited for below
	go func() {
		code <- start(t.Context(), []string{"chat", "--config", config}, console{in: in, out: &out, err: &errs})
	}()
	_, _ = io.WriteString(type_, "tell me a story\n")
	model.waits(t)
	_, _ = io.WriteString(type_, "what is next\n\n!stop\nexit\n")
	_ = type_.Close()
	if body := model.waits(t); !strings.Contains(body, "what is next") || strings.Contains(body, "exit") {
		t.Errorf("after !stop the model was sent %s", body)
	}
	model.says("Next.")
	if body := model.waits(t); !strings.Contains(body, "exit") { // no command where nobody sits at a terminal
		t.Errorf("at the end the model was sent %s", body)
	}
	model.says("Then.")
	if got := <-code; got != 0 {
		t.Errorf("exit code %d", got)
	}
	if got, want := out.String(), "I stopped working on this, as asked. `!retry` answers it after all.\nStopped.\nNext.\nThen.\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if errs.Len() > 0 {
		t.Errorf("a log in the conversation:\n%s", &errs)
	}
}

// TestPipedLog: a conversation in pipes is logged only as far as the file asks for it.
func TestPipedLog(t *testing.T) {
	for level, logged := range map[string]bool{"": false, "info": false, "debug": true} {
		model, config := newSpeaker(t)
		text := readFile(t, config) + "web: {listen: \"127.0.0.1:0\"}\n"
		if level != "" {
			text += "log: {level: " + level + "}\n"
		}
		model.says("Hello.")
		var out, errs bytes.Buffer
		if code := start(t.Context(), []string{"chat", "--config", configFile(t, text)}, console{in: strings.NewReader("hello\n"), out: &out, err: &errs}); code != 0 {
			t.Errorf("level %q: exit code %d: %s", level, code, &errs)
		}
		if out.String() != "Hello.\n" || strings.Contains(errs.String(), "level=") != logged {
			t.Errorf("level %q: %q, log:\n%s", level, &out, &errs)
		}
	}
}

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"reverie/internal/llm/discover"
	"reverie/internal/matrix/homeserver/homeservertest"
	"reverie/internal/test/expect"
	"reverie/internal/tty"
)

// vt is as much of a VT100 as a line editor and a conversation need.
type vt struct {
	width, x, y int
	rows        [][]rune
	escape      []rune // a sequence that has not ended yet
}

func (v *vt) put(r rune) {
	for len(v.rows) <= v.y {
		v.rows = append(v.rows, nil)
	}
	switch {
	case len(v.escape) > 0:
		v.escape = append(v.escape, r)
		if len(v.escape) > 2 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
			v.command(string(v.escape[2:len(v.escape)-1]), r)
			v.escape = nil
		}
	case r == '\x1b':
		v.escape = []rune{r}
	case r == '\r':
		v.x = 0
	case r == '\n':
		v.y++
	case r == '\b':
		v.x = max(0, v.x-1)
	case r >= ' ':
		if v.x == v.width { // the cursor waits behind the last column
			v.x, v.y = 0, v.y+1
			v.put(r)
			return
		}
		row := v.rows[v.y]
		for len(row) <= v.x {
			row = append(row, ' ')
		}
		row[v.x] = r
		v.rows[v.y] = row
		v.x++
	}
}

func (v *vt) command(number string, r rune) {
	n, err := strconv.Atoi(number)
	if err != nil {
		n = 1
	}
	switch r {
	case 'A':
		v.y = max(0, v.y-n)
	case 'B':
		v.y += n
	case 'C':
		v.x = min(v.width-1, v.x+n)
	case 'D':
		v.x = max(0, min(v.x, v.width-1)-n)
	case 'K':
		v.rows[v.y] = v.rows[v.y][:min(v.x, len(v.rows[v.y]))]
	}
}

func (v *vt) String() string {
	var out strings.Builder
	for _, row := range v.rows {
		out.WriteString(strings.TrimRight(string(row), " ") + "\n")
	}
	return out.String()
}

// live is a bot at a terminal, with a person who types and looks.
type live struct {
	t    *testing.T
	pty  *os.File
	cmd  *exec.Cmd
	mode syscall.Termios // as it was before
	read chan struct{}   // closed when everything that was written has been read

	mu     sync.Mutex
	raw    strings.Builder
	screen vt
}

// startChat runs `bot chat` at a terminal, with a model that says what the test wants.
func startChat(t *testing.T, width int) (*live, *speaker) {
	t.Helper()
	model, config := newSpeaker(t)
	bot := startLive(t, width, "chat", "--config", config)
	bot.sees("!help")
	return bot, model
}

func ioctl(t *testing.T, f *os.File, request uintptr, arg unsafe.Pointer) {
	t.Helper()
	c := expect.Must(f.SyscallConn())(t)
	var errno syscall.Errno
	if err := c.Control(func(fd uintptr) { _, _, errno = syscall.Syscall(syscall.SYS_IOCTL, fd, request, uintptr(arg)) }); err != nil || errno != 0 {
		t.Fatalf("ioctl %x: %v, %v", request, err, errno)
	}
}

func (l *live) termios() (m syscall.Termios) {
	l.t.Helper()
	ioctl(l.t, l.pty, syscall.TCGETS, unsafe.Pointer(&m))
	return m
}

func (l *live) resize(width int) {
	l.t.Helper()
	size := [4]uint16{24, uint16(width)}
	ioctl(l.t, l.pty, syscall.TIOCSWINSZ, unsafe.Pointer(&size))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.screen.width = width
}

// startLive runs `bot ARGS` at a terminal of its own.
func startLive(t *testing.T, width int, args ...string) *live {
	t.Helper()
	pty := expect.Must(os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0))(t)
	t.Cleanup(func() { _ = pty.Close() })
	l := &live{t: t, pty: pty, read: make(chan struct{})}
	var unlocked, number int32
	ioctl(t, pty, syscall.TIOCSPTLCK, unsafe.Pointer(&unlocked))
	ioctl(t, pty, syscall.TIOCGPTN, unsafe.Pointer(&number))
	l.resize(width)
	tty := expect.Must(os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0))(t)
	defer tty.Close()
	l.mode = l.termios()
	l.cmd = exec.Command("bot", args...)
	l.cmd.Env = append(os.Environ(), "TERM=xterm", "REVERIE_LLM_URL=rehearsal:", "NO_COLOR=")
	l.cmd.Stdin, l.cmd.Stdout, l.cmd.Stderr = tty, tty, tty
	l.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	expect.OK(t, l.cmd.Start())
	t.Cleanup(func() { _ = l.cmd.Process.Kill() })
	// go: ends with the terminal
	go func() {
		defer close(l.read)
		buf, part := make([]byte, 4096), ""
		for {
			n, err := pty.Read(buf)
			if err != nil {
				return
			}
			l.mu.Lock()
			l.raw.Write(buf[:n])
			text := part + string(buf[:n])
			whole := strings.ToValidUTF8(text, "") // the rest of a character comes with the next bytes
			part = strings.TrimPrefix(text, whole)
			for _, r := range whole {
				l.screen.put(r)
			}
			l.mu.Unlock()
		}
	}()
	return l
}

func (l *live) typed(text string) {
	l.t.Helper()
	expect.Must(l.pty.WriteString(text))(l.t)
}

func (l *live) look() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.screen.String()
}

// sees waits until want stands on the screen.
func (l *live) sees(want string) {
	l.t.Helper()
	defer func() {
		if l.t.Failed() {
			l.t.Log(l.look())
		}
	}()
	until(l.t, fmt.Sprintf("no %q on the screen", want), func() bool { return strings.Contains(l.look(), want) })
}

// leaves ends the conversation.
func (l *live) leaves() {
	l.t.Helper()
	l.typed("\x04")
	l.ends()
}

// ends waits until the bot has ended with success and left the terminal as it was.
func (l *live) ends() {
	l.t.Helper()
	if err := l.left(); err != nil {
		l.t.Errorf("the bot ended with %v:\n%s", err, l.look())
	}
}

// left waits until the bot has ended, left the terminal as it was, and all that it wrote stands
// on the screen.
func (l *live) left() (err error) {
	l.t.Helper()
	ended := make(chan error, 1)
	// go: waited for below, or killed at the end of the test
	go func() { ended <- l.cmd.Wait() }()
	select {
	case err = <-ended:
	case <-time.After(time.Minute):
		l.t.Fatalf("the bot does not end:\n%s", l.look())
	}
	if now := l.termios(); now.Lflag != l.mode.Lflag || now.Iflag != l.mode.Iflag || now.Oflag != l.mode.Oflag {
		l.t.Errorf("the terminal is left in another mode: %+v, it was %+v", now, l.mode)
	}
	select {
	case <-l.read: // the terminal has no writer any more
	case <-time.After(time.Minute):
		l.t.Fatalf("somebody keeps the terminal open:\n%s", l.look())
	}
	return err
}

// speaker is a model that says what the test puts into words, until it is closed.
type speaker struct {
	*httptest.Server
	asked chan string // the body of each request for an answer
	words chan string // what it says next; an empty text ends the answer
	one   sync.Mutex  // a request waits for the end of the one before
}

func newSpeaker(t *testing.T) (s *speaker, config string) {
	t.Helper()
	s = &speaker{asked: make(chan string, 100), words: make(chan string, 100)}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.CloseClientConnections)
	return s, configFile(t, "data: ./data\nharvest: {enabled: false}\ndreaming: {schedule: \"\"}\nllm:\n  models:\n    - {name: r, base_url: \""+s.URL+"/v1\", model: m}\n")
}

func (s *speaker) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet || !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	body, _ := io.ReadAll(r.Body)
	s.one.Lock()
	defer s.one.Unlock()
	s.asked <- string(body)
	w.Header().Set("Content-Type", "text/event-stream")
	for {
		select {
		case word := <-s.words:
			if word == "" {
				fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
				return
			}
			content, _ := json.Marshal(word)
			fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%s}}]}\n\n", content)
			w.(http.Flusher).Flush()
		case <-r.Context().Done():
			return
		}
	}
}

// says makes the whole of the next answer.
func (s *speaker) says(text string) { s.words <- text; s.words <- "" }

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
		expect.Equal(t, len(model.asked), 0, "%q: the model was asked", keys)
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
		bot.sees(tty.EndsAfterAnswer)
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
		code <- execute(t.Context(), []string{"chat", "--config", config}, console{in: in, out: &out, err: &errs})
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
	expect.Equal(t, <-code, 0, "exit code")
	if got, want := out.String(), "I stopped working on this, as you asked. `!retry` answers it after all.\nStopped.\nNext.\nThen.\n"; got != want {
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
		text := readFile(t, config)
		if level != "" {
			text += "log: {level: " + level + "}\n"
		}
		model.says("Hello.")
		var out, errs bytes.Buffer
		if code := execute(t.Context(), []string{"chat", "--config", configFile(t, text)}, console{in: strings.NewReader("hello\n"), out: &out, err: &errs}); code != 0 {
			t.Errorf("level %q: exit code %d: %s", level, code, &errs)
		}
		if out.String() != "Hello.\n" || strings.Contains(errs.String(), "level=") != logged {
			t.Errorf("level %q: %q, log:\n%s", level, &out, &errs)
		}
	}
}

// TestLiveInit: with what `bot init` writes the bot starts on a real homeserver, and the doctor
// finds nothing to fix.
func TestLiveInit(t *testing.T) {
	home := homeservertest.Start(t)
	expect.Must(home.Register(t.Context(), "reverie", "a long enough password"))(t)
	config := filepath.Join(t.TempDir(), "new", "config.yaml")
	bot := startLive(t, 200, "init", "--config", config)
	for _, l := range []struct{ sees, types string }{
		{"homeserver, such as", home.URL}, {"own account", "@reverie:" + home.Name}, {"You may do everything", "@me:" + home.Name},
		{"model server", discover.Rehearsal}, {"holds the key", ""}, {"The model, by its name", "rehearsal"}, {"The time zone", "Europe/Berlin"},
	} {
		bot.sees(l.sees)
		bot.typed(l.types + "\r")
	}
	bot.sees("Wrote " + config)
	bot.ends()
	t.Setenv("MATRIX_PASSWORD", "a long enough password")
	r := &running{t: t, args: []string{"run", "--config", config}}
	r.start()
	r.until("bot run does not start", func() bool { return r.wrote("msg=ready") })
	if code, text := runBot(t, "", "doctor", "--config", config); code != 0 || !strings.Contains(text, "is cross-signed") {
		t.Errorf("doctor: exit %d\n%s", code, text)
	}
}

// TestLiveInitInterrupted: Ctrl-C ends it at once, and nothing is written.
func TestLiveInitInterrupted(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config.yaml")
	bot := startLive(t, 200, "init", "--config", config)
	bot.sees("homeserver, such as")
	bot.typed("half of\x03")
	if err := bot.left(); err == nil {
		t.Error("it ended with success")
	}
	if screen := bot.look(); !strings.Contains(screen, "nothing was written") {
		t.Error(screen)
	}
	if _, err := os.Lstat(config); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is a file: %v", err)
	}
}

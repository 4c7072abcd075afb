package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"reverie/internal/matrix/homeserver"
	"reverie/internal/matrix/peer"
	"reverie/internal/tty"
)

type tryCommand struct {
	HomeserverBin filePath `arg:"--homeserver-bin" default:"bin/homeserver" help:"The folder with the homeserver's programs (make homeserver builds them)."`
	Message       string   `arg:"env:REVERIE_TRY_MESSAGE" help:"Send this one message, print the answer, clean up and exit."`
	Keep          bool     `help:"Keep the state for the next try."`
	State         filePath `default:".try" help:"Where --keep keeps it."`
}

// Run shows Reverie at work: a real homeserver on loopback, two accounts, an end-to-end encrypted
// room, the bot as `bot run` runs it, and the person's side of the room in this terminal. Progress
// goes to standard error, the conversation to standard output.
func (t tryCommand) Run(ctx context.Context, c console, _ filePath) error {
	try := &trial{tryCommand: t, console: c, screen: &tty.Screen{Out: c.out, Name: "Reverie"}}
	defer try.cleanUp()
	for _, step := range []func(context.Context) error{try.openState, try.setUp, try.startBot, try.enterRoom} {
		if err := step(ctx); err != nil {
			return fmt.Errorf("try: %w", err)
		}
	}
	in := &tty.Input{Waiting: []string{t.Message}, Ended: true}
	if t.Message == "" {
		in = try.screen.Open(c.in, c.out, os.Getenv("TERM"))
		defer in.Close()
	}
	return try.chat(ctx, in)
}

// trial is one try: what was started, and must be stopped again.
type trial struct {
	tryCommand
	console
	screen  *tty.Screen
	dir     string
	account peer.Config // the person's
	you     *peer.Peer
	room    string
	exited  chan struct{} // closed when the bot has ended
	undo    []func()
}

func (t *trial) step(name, format string, args ...any) {
	fmt.Fprintf(t.err, "  %-11s %s\n", name, fmt.Sprintf(format, args...))
}

func (t *trial) openState(context.Context) (err error) {
	if t.Keep {
		t.dir = string(t.State)
		return os.MkdirAll(t.dir, 0o700)
	}
	t.dir, err = os.MkdirTemp("", "reverie-try-")
	t.undo = append(t.undo, func() { _ = os.RemoveAll(t.dir) })
	return err
}

// file is the path of a file of the state.
func (t *trial) file(name string) string { return filepath.Join(t.dir, name) }

// setUp starts the homeserver and has the accounts, the room and the configuration made as docker-compose.yml has it done.
func (t *trial) setUp(ctx context.Context) error {
	home, err := homeserver.Start(ctx, homeserver.Config{BinDir: string(t.HomeserverBin), Dir: t.file("homeserver")})
	if err != nil {
		return err
	}
	t.undo = append(t.undo, func() { _ = home.Stop() })
	t.step("homeserver", "%s, in %s", home.URL, t.dir)
	model, err := detectModel(ctx, os.Getenv)
	if err != nil {
		return usageError{err}
	}
	if model.URL == rehearsalURL {
		t.step("model", "none found: the rehearsal model stands in. To connect one: "+
			"`ollama run qwen3:8b`, or llama.cpp, LM Studio or REVERIE_LLM_URL; then again")
	} else {
		t.step("model", "%s at %s: %s", model.Name, model.URL, model.Model)
	}
	f := firstRunCommand{Homeserver: home.URL, Address: home.URL, ServerName: home.Name, ModelURL: model.URL, Model: model.Model,
		SecretFile: filePath(t.file("homeserver/registration_secret"))}
	if model.Key != "" {
		f.keyVariable = "REVERIE_LLM_KEY"
	}
	t.account, t.room, err = f.setUp(ctx, t.file("config.yaml"), t.file(loginFile))
	return err
}

// startBot runs `bot run`, with its log in a file.
func (t *trial) startBot(ctx context.Context) error {
	log, err := os.OpenFile(t.file("bot.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	t.exited = make(chan struct{})
	// go: waited for by the cleanup below
	go func() {
		defer close(t.exited)
		exitCode(runCommand{}.Run(run, console{out: log, err: log}, filePath(t.file("config.yaml"))), log)
		log.Close()
	}()
	t.undo = append(t.undo, func() { stop(); <-t.exited })
	t.step("bot", "log in %s", log.Name())
	return nil
}

func (t *trial) enterRoom(ctx context.Context) (err error) {
	t.account.DB = t.file("me.db")
	if t.you, err = peer.Login(ctx, t.account); err != nil {
		return fmt.Errorf("log in as you: %w", err)
	}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	// go: waited for by the cleanup below
	go func() { defer close(ended); _ = t.you.Run(run) }()
	t.undo = append(t.undo, func() { stop(); <-ended; _ = t.you.Close() })

	wait, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	// go: ends with the bot
	go func() { <-t.exited; cancel() }()
	if err := t.you.WaitJoined(wait, t.room, "@reverie:"+strings.SplitN(t.account.User, ":", 2)[1]); err != nil {
		return fmt.Errorf("the bot did not join the room within a minute; %s", t.logTail())
	}
	t.step("room", "end-to-end encrypted: %s", t.room)
	t.step("files", editable, t.file("data"))
	if !t.Keep {
		t.step("", "all of this is thrown away at the end; `make try KEEP=1` keeps it")
	}
	t.step("you", "any Matrix client on this machine may join in: homeserver %s, user %s, password %s", t.account.Homeserver, t.account.User, t.account.Password)
	return nil
}

func (t *trial) logTail() string {
	b, err := os.ReadFile(t.file("bot.log"))
	if err != nil {
		return "its log cannot be read: " + err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(b), []byte("\n"))
	return "the end of its log:\n" + string(bytes.Join(lines[max(0, len(lines)-8):], []byte("\n")))
}

func (t *trial) cleanUp() {
	for i := len(t.undo) - 1; i >= 0; i-- {
		t.undo[i]()
	}
	if t.Keep {
		fmt.Fprintf(t.err, "Kept in %s; `make try KEEP=1` goes on there.\n", t.dir)
	}
}

// event shows one event of the room, and says whether it is a finished
// message of the bot.
func (t *trial) event(e peer.Event) (done bool, err error) {
	if e.Room != t.room || e.Sender == t.you.UserID() {
		return false, nil
	}
	switch e.Kind {
	case peer.Typing:
		t.screen.Writing(e.On)
	case peer.Undecryptable:
		return false, fmt.Errorf("try: a message of the bot could not be decrypted: %w", e.Err)
	case peer.Message, peer.Edit, peer.Asked, peer.Closed:
		if e.Poll != nil {
			for i, o := range e.Poll.Options {
				e.Body += fmt.Sprintf("\n%d. %s", i+1, o.Text)
			}
		}
		if !e.Encrypted {
			return false, errors.New("try: the bot sent plain text into the encrypted room")
		}
		if e.Live && e.Notice { // it only says what the answer waits for
			t.screen.Progress(e.Body)
			return false, nil
		}
		t.screen.Show(e.ID, e.Body, !e.Live)
		return !e.Live, nil
	}
	return false, nil
}

// chat sends what is typed and shows what comes, until all of it has been answered.
func (t *trial) chat(ctx context.Context, in *tty.Input) error {
	t.screen.Tell("\nWrite a message; !help lists commands; Ctrl-D or exit ends.\n")
	unanswered := 0
	for !in.Over(unanswered > 0) {
		if text, ok := in.Next(unanswered > 0); ok {
			if _, err := t.you.Say(ctx, t.room, text); err != nil {
				return fmt.Errorf("try: send: %w", err)
			}
			if unanswered++; in.Live { // several lines may have one answer
				unanswered = 1
			}
			continue
		}
		select {
		case l := <-in.More():
			if err := in.Add(l); err != nil {
				return err
			}
			if in.Ended && unanswered > 0 {
				t.screen.Tell(tty.EndsLater)
			}
		case e := <-t.you.Events():
			if done, err := t.event(e); err != nil {
				return err
			} else if done { // or a reminder
				unanswered = max(0, unanswered-1)
			}
		case <-t.exited:
			return fmt.Errorf("try: the bot has ended; %s", t.logTail())
		case <-ctx.Done():
			if t.Message != "" {
				return ctx.Err()
			}
			return nil
		}
	}
	return nil
}

// server is a language model that answered.
type server struct {
	Name  string // how to call it to a person
	URL   string // OpenAI-compatible, ends in /v1
	Key   string
	Model string
}

// localServers are the places where model servers listen by themselves, in the
// order in which they are asked.
var localServers = []server{
	{Name: "Ollama", URL: "http://127.0.0.1:11434/v1"},
	{Name: "llama.cpp", URL: "http://127.0.0.1:8080/v1"},
	{Name: "LM Studio", URL: "http://127.0.0.1:1234/v1"},
}

// detectModel returns the first language model that answers: the one the environment names, which
// must answer or say its model, then the local servers; with none at all the rehearsal model.
func detectModel(ctx context.Context, getenv func(string) string) (server, error) {
	rehearsal := server{Name: "the rehearsal model", URL: rehearsalURL, Model: "rehearsal"}
	named := server{"REVERIE_LLM_URL", strings.TrimRight(getenv("REVERIE_LLM_URL"), "/"), getenv("REVERIE_LLM_KEY"), getenv("REVERIE_LLM_MODEL")}
	switch named.URL {
	case rehearsalURL:
		return rehearsal, nil
	case "":
		for _, s := range localServers {
			if s.ask(ctx, time.Second) == nil && s.Model != "" {
				return s, nil
			}
		}
		return rehearsal, nil
	}
	if err := named.ask(ctx, 10*time.Second); err != nil && named.Model == "" {
		return server{}, fmt.Errorf("REVERIE_LLM_URL: %w; check that it is an OpenAI-compatible address ending in /v1, or name the model in REVERIE_LLM_MODEL", err)
	}
	return named, nil
}

// ask asks for the models, and chooses the first that can chat unless one is named already.
func (s *server) ask(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/models", nil)
	if err != nil {
		return err
	}
	if s.Key != "" {
		req.Header.Set("Authorization", "Bearer "+s.Key)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s/models answered %s", s.URL, res.Status)
	}
	var list struct{ Data []struct{ ID string } }
	if err := json.NewDecoder(io.LimitReader(res.Body, 4<<20)).Decode(&list); err != nil {
		return fmt.Errorf("%s/models answered something else than a list of models", s.URL)
	}
	for _, m := range list.Data {
		if s.Model == "" && !strings.Contains(strings.ToLower(m.ID), "embed") {
			s.Model = m.ID
		}
	}
	return nil
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"reverie/internal/matrix/homeserver"
	"reverie/internal/matrix/peer"
	"reverie/internal/store"
)

type tryCommand struct {
	HomeserverBin filePath `arg:"--homeserver-bin" default:"bin/homeserver" help:"The folder with the homeserver's programs (make homeserver builds them)."`
	Message       string   `arg:"env:REVERIE_TRY_MESSAGE" help:"Send this one message, print the answer, clean up and exit."`
	Keep          bool     `help:"Keep the state for the next try."`
	State         filePath `default:".try" help:"Where --keep keeps it."`
}

// Run shows Reverie at work: a real homeserver on loopback, two accounts, an
// end-to-end encrypted room, the bot as a process of its own, and the person's
// side of the room in this terminal. Progress goes to standard error, the
// conversation to standard output.
func (t tryCommand) Run(ctx context.Context, c console, _ filePath) error {
	try := &trial{tryCommand: t, console: c, screen: &screen{out: c.out, name: "Reverie"}}
	defer try.cleanUp()
	for _, step := range []func(context.Context) error{try.openState, try.startHomeserver, try.findModel, try.startBot, try.enterRoom} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	in := &typed{waiting: []string{t.Message}, ended: true}
	if t.Message == "" {
		in = try.screen.open(c)
		defer in.close()
	}
	return try.chat(ctx, in)
}

// trial is one try: what was started, and must be stopped again.
type trial struct {
	tryCommand
	console
	screen *screen
	dir    string
	model  server
	home   *homeserver.Server
	you    *peer.Peer
	room   string
	bot    *exec.Cmd
	// Passwords of the two accounts; a kept try goes on with them.
	botPassword, yourPassword string
	exited                    chan error // the bot's exit
	undo                      []func()
}

func (t *trial) step(name, format string, args ...any) {
	fmt.Fprintf(t.err, "  %-11s %s\n", name, fmt.Sprintf(format, args...))
}

func (t *trial) openState(context.Context) (err error) {
	if t.Keep {
		t.dir = string(t.State)
		err = os.MkdirAll(t.dir, 0o700)
	} else if t.dir, err = os.MkdirTemp("", "reverie-try-"); err == nil {
		t.undo = append(t.undo, func() { _ = os.RemoveAll(t.dir) })
	}
	if err != nil {
		return fmt.Errorf("try: state folder: %w", err)
	}
	if t.botPassword, err = keptPassword(t.file(passwordFile), wholeFile, onePassword); err == nil {
		t.yourPassword, err = keptPassword(t.file("your-password"), wholeFile, onePassword)
	}
	if err != nil {
		return fmt.Errorf("try: %w", err)
	}
	return nil
}

// file is the path of a file of the state.
func (t *trial) file(name string) string { return filepath.Join(t.dir, name) }

func (t *trial) startHomeserver(ctx context.Context) (err error) {
	t.home, err = homeserver.Start(ctx, homeserver.Config{BinDir: string(t.HomeserverBin), Dir: t.file("homeserver")})
	if err != nil {
		return fmt.Errorf("try: homeserver: %w", err)
	}
	t.undo = append(t.undo, func() { _ = t.home.Stop() })
	for user, password := range map[string]string{"you": t.yourPassword, "reverie": t.botPassword} {
		if _, err := t.home.Register(ctx, user, password); err != nil {
			return fmt.Errorf("try: account %s: %w", user, err)
		}
	}
	t.step("homeserver", "%s, in %s", t.home.URL, t.dir)
	return nil
}

func (t *trial) findModel(ctx context.Context) (err error) {
	if t.model, err = detectModel(ctx, os.Getenv); err != nil {
		return usageError{err}
	}
	if t.model.URL == rehearsalURL {
		t.step("model", "none found: the rehearsal model stands in. To connect one: "+
			"`ollama run qwen3:8b`, or llama.cpp, LM Studio or REVERIE_LLM_URL; then again")
		return nil
	}
	t.step("model", "%s at %s: %s", t.model.Name, t.model.URL, t.model.Model)
	return nil
}

// writeConfig writes the bot's configuration as a person would; secrets reach
// it by file and environment.
func (t *trial) writeConfig() (path string, err error) {
	a := answers{Timezone: "Local", Homeserver: t.home.URL, User: "@reverie:" + t.home.Name, Owner: "@you:" + t.home.Name,
		PasswordFile: true, ModelURL: t.model.URL, Model: t.model.Model}
	if t.model.Key != "" {
		a.KeyVariable = "REVERIE_LLM_KEY"
	}
	return t.file("config.yaml"), store.WriteFile(t.file("config.yaml"), renderConfig(a))
}

func (t *trial) logFile() string { return t.file("bot.log") }

// startBot starts `bot run` as a process of its own, as it runs in earnest.
func (t *trial) startBot(context.Context) error {
	config, err := t.writeConfig()
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("try: %w", err)
	}
	log, err := os.OpenFile(t.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("try: %w", err)
	}
	defer log.Close()
	t.bot = exec.Command(self, "run", "--config", config)
	t.bot.Stdout, t.bot.Stderr = log, log
	t.bot.SysProcAttr = childAttributes()
	if err := t.bot.Start(); err != nil {
		return fmt.Errorf("try: start the bot: %w", err)
	}
	t.exited = make(chan error, 1)
	// go: waited for by stopBot
	go func() { t.exited <- t.bot.Wait() }()
	t.undo = append(t.undo, t.stopBot)
	t.step("bot", "@reverie:%s, log in %s", t.home.Name, t.logFile())
	return nil
}

// stopBot asks the bot to end, and insists after a while.
func (t *trial) stopBot() {
	_ = t.bot.Process.Signal(syscall.SIGTERM)
	select {
	case <-t.exited:
	case <-time.After(15 * time.Second):
		_ = t.bot.Process.Kill()
		<-t.exited
	}
}

func (t *trial) enterRoom(ctx context.Context) (err error) {
	t.you, err = peer.Login(ctx, peer.Config{
		Homeserver: t.home.URL, User: "@you:" + t.home.Name, Password: t.yourPassword, DB: t.file("you.db"),
	})
	if err != nil {
		return fmt.Errorf("try: log in as you: %w", err)
	}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	// go: waited for by the cleanup below
	go func() { defer close(ended); _ = t.you.Run(run) }()
	t.undo = append(t.undo, func() { stop(); <-ended; _ = t.you.Close() })

	bot := "@reverie:" + t.home.Name
	kept, err := os.ReadFile(t.file("room"))
	if t.room = string(kept); errors.Is(err, fs.ErrNotExist) {
		if t.room, err = t.you.CreateRoom(ctx, peer.Room{Name: "Reverie", Direct: true, Encrypted: true, Invite: []string{bot}}); err == nil {
			err = store.WriteFile(t.file("room"), []byte(t.room))
		}
	}
	if err != nil {
		return fmt.Errorf("try: the room: %w", err)
	}
	wait, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	joined := make(chan error, 1)
	// go: ends with wait
	go func() { joined <- t.you.WaitJoined(wait, t.room, bot) }()
	select {
	case err = <-joined:
	case exit := <-t.exited:
		return t.botDied(exit)
	}
	if err != nil {
		return fmt.Errorf("try: the bot did not join the room within a minute; %s", t.logTail())
	}
	t.step("room", "end-to-end encrypted: %s", t.room)
	t.step("files", editable, t.file("data"))
	if !t.Keep {
		t.step("", "all of this is thrown away at the end; `make try KEEP=1` keeps it")
	}
	t.step("you", "any Matrix client on this machine may join in: homeserver %s, user %s, password %s", t.home.URL, t.you.UserID(), t.yourPassword)
	return nil
}

// botDied takes back exit, for which stopBot waits.
func (t *trial) botDied(exit error) error {
	t.exited <- exit
	return fmt.Errorf("try: the bot has ended; %s", t.logTail())
}

func (t *trial) logTail() string {
	b, err := os.ReadFile(t.logFile())
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
		t.screen.writing(e.On)
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
			t.screen.progress(e.Body)
			return false, nil
		}
		t.screen.show(message{e.ID, e.Body, !e.Live, e.Notice})
		return !e.Live, nil
	}
	return false, nil
}

// chat sends what is typed and shows what comes, until all of it has been answered.
func (t *trial) chat(ctx context.Context, in *typed) error {
	t.screen.say("\nWrite a message; !help lists commands; Ctrl-D or exit ends.\n")
	unanswered := 0
	for !in.over(unanswered > 0) {
		if text, ok := in.next(unanswered > 0); ok {
			if _, err := t.you.Say(ctx, t.room, text); err != nil {
				return fmt.Errorf("try: send: %w", err)
			}
			if unanswered++; in.live { // several lines may have one answer
				unanswered = 1
			}
			continue
		}
		select {
		case l := <-in.more():
			if err := in.add(l); err != nil {
				return err
			}
			if in.ended && unanswered > 0 {
				t.screen.say(endsLater)
			}
		case e := <-t.you.Events():
			if done, err := t.event(e); err != nil {
				return err
			} else if done { // or a reminder
				unanswered = max(0, unanswered-1)
			}
		case exit := <-t.exited:
			return t.botDied(exit)
		case <-ctx.Done():
			if t.Message != "" {
				return ctx.Err()
			}
			return nil
		}
	}
	return nil
}

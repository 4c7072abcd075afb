// Try demonstrates Reverie: it starts a homeserver on loopback, two accounts, an end-to-end
// encrypted room and `bot run`, and shows the person's side of the room in this terminal. Progress
// goes to standard error, the conversation to standard output.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"reverie/internal/llm/discover"
	"reverie/internal/matrix/homeserver"
	"reverie/internal/matrix/peer"
	"reverie/internal/matrix/setup"
	"reverie/internal/tty"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	bins string // folder of the homeserver's programs
	keep bool   // keep the state for the next run
}

// console holds the streams of the person.
type console struct {
	in       io.Reader
	out, err io.Writer
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	var o options
	flag.StringVar(&o.bins, "homeserver-bin", "bin/homeserver", "the folder with the homeserver's programs (make homeserver builds them)")
	flag.BoolVar(&o.keep, "keep", false, "keep the state, in .try, for the next try")
	flag.Parse()
	c := console{in: os.Stdin, out: tty.StripControls(os.Stdout), err: tty.StripControls(os.Stderr)}
	if message := os.Getenv("REVERIE_TRY_MESSAGE"); message != "" { // replaces typed input
		c.in = strings.NewReader(message)
	}
	err := runTrial(ctx, o, c)
	stop()
	if err != nil {
		fmt.Fprintln(c.err, err)
		os.Exit(1)
	}
}

func runTrial(ctx context.Context, o options, c console) error {
	ctx, end := context.WithCancelCause(ctx)
	t := &trial{options: o, console: c, screen: &tty.Screen{Out: c.out, Name: "Reverie"}, end: end}
	defer t.cleanUp()
	steps := []func(context.Context) error{t.findBotAndMakeStateDir, t.startHomeserverAndSetUpTrial, t.startBot, t.logInAndAwaitBot}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return fmt.Errorf("try: %w", err)
		}
	}
	in := t.screen.Open(c.in, c.out, os.Getenv("TERM"))
	defer in.Close()
	return t.chatInTerminal(ctx, in)
}

// trial is one run, with the processes to stop at its end.
type trial struct {
	options
	console
	screen  *tty.Screen
	bot     string // the program
	dir     string
	account setup.Account // the person's
	you     *peer.Peer
	room    string
	end     context.CancelCauseFunc
	undo    []func()
}

func (t *trial) printLabelled(name, format string, args ...any) {
	fmt.Fprintf(t.err, "  %-11s %s\n", name, fmt.Sprintf(format, args...))
}

func (t *trial) findBotAndMakeStateDir(context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	t.bot = filepath.Join(filepath.Dir(self), "bot")
	if t.keep {
		if t.dir, err = filepath.Abs(".try"); err != nil {
			return err
		}
		return os.MkdirAll(t.dir, 0o700)
	}
	t.dir, err = os.MkdirTemp("", "reverie-try-")
	t.undo = append(t.undo, func() { _ = os.RemoveAll(t.dir) })
	return err
}

// statePath returns a path in the state folder.
func (t *trial) statePath(name string) string { return filepath.Join(t.dir, name) }

// startHomeserverAndSetUpTrial starts the homeserver and creates accounts, room and configuration like
// docker-compose.yml.
func (t *trial) startHomeserverAndSetUpTrial(ctx context.Context) error {
	home, err := homeserver.Start(ctx, homeserver.Config{BinDir: t.bins, Dir: t.statePath("homeserver")})
	if err != nil {
		return err
	}
	t.undo = append(t.undo, func() { _ = home.Stop() })
	t.printLabelled("homeserver", "%s, in %s", home.URL, t.dir)
	model, err := discover.Detect(ctx, os.Getenv)
	if err != nil {
		return err
	}
	if model.URL == discover.Rehearsal {
		t.printLabelled("model", "none found: the rehearsal model stands in. To connect one: "+
			"`ollama run qwen3:8b`, or llama.cpp, LM Studio or REVERIE_LLM_URL; then again")
	} else {
		t.printLabelled("model", "%s at %s: %s", model.Name, model.URL, model.Model)
	}
	if err := t.runBotFirstRun(ctx, home, model); err != nil {
		return err
	}
	t.account = setup.Account{Homeserver: home.URL, User: "@me:" + home.Name}
	login, err := os.ReadFile(t.statePath("LOGIN.txt"))
	if err != nil {
		return err
	}
	if found := password.FindSubmatch(login); found != nil {
		t.account.Password = string(found[1])
	}
	t.room, err = setup.EnsureDirectRoom(ctx, t.account, "Reverie", "@reverie:"+home.Name)
	return err
}

// password matches the password in LOGIN.txt.
var password = regexp.MustCompile(`(?m)^ *password +(\S+)$`)

// runBotFirstRun runs `bot first-run` with this model.
func (t *trial) runBotFirstRun(ctx context.Context, home *homeserver.Server, model discover.Server) error {
	config := t.statePath("config.yaml")
	if err := os.Remove(config); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	args := []string{"first-run", "--config", config, "--homeserver", home.URL, "--address", home.URL, "--server-name", home.Name,
		"--secret-file", t.statePath("homeserver/registration_secret"), "--model-url", model.URL, "--model", model.Model}
	if model.Key != "" {
		args = append(args, "--key-variable", "REVERIE_LLM_KEY")
	}
	if out, err := exec.CommandContext(ctx, t.bot, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s first-run: %w\n%s", t.bot, err, bytes.TrimSpace(out))
	}
	return nil
}

var errBotEnded = errors.New("the bot has ended")

// startBot runs `bot run` and logs to a file.
func (t *trial) startBot(context.Context) error {
	log, err := os.OpenFile(t.statePath("bot.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	bot := exec.Command(t.bot, "run", "--config", t.statePath("config.yaml"))
	bot.Stdout, bot.Stderr = log, log
	bot.SysProcAttr = homeserver.OwnGroup()
	started := make(chan error, 1)
	exited := make(chan struct{})
	// go: waited for by the cleanup below
	go func() {
		runtime.LockOSThread() // the bot is killed when this thread ends
		defer runtime.UnlockOSThread()
		defer close(exited)
		defer log.Close()
		err := bot.Start()
		started <- err
		if err == nil {
			_ = bot.Wait()
			t.end(errBotEnded)
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	t.undo = append(t.undo, func() { _ = bot.Process.Signal(syscall.SIGTERM); <-exited })
	t.printLabelled("bot", "log in %s", log.Name())
	return nil
}

func (t *trial) logInAndAwaitBot(ctx context.Context) (err error) {
	a := t.account
	as := peer.Config{Homeserver: a.Homeserver, User: a.User, Password: a.Password, DB: t.statePath("me.db")}
	if t.you, err = peer.Login(ctx, as); err != nil {
		return fmt.Errorf("log in as you: %w", err)
	}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	// go: waited for by the cleanup below
	go func() { defer close(ended); _ = t.you.Run(run) }()
	t.undo = append(t.undo, func() { stop(); <-ended; _ = t.you.Close() })

	wait, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := t.you.WaitJoined(wait, t.room, "@reverie:"+strings.SplitN(a.User, ":", 2)[1]); err != nil {
		return fmt.Errorf("the bot did not join the room within a minute; %s", t.botLogTail())
	}
	t.printLabelled("room", "end-to-end encrypted: %s", t.room)
	t.printLabelled("files", "in %s, yours to edit: MEMORIES.txt, SOUL.md, skills/", t.statePath("data"))
	if !t.keep {
		t.printLabelled("", "all of this is thrown away at the end; `make try KEEP=1` keeps it")
	}
	t.printLabelled("you", "any Matrix client on this machine may join in: homeserver %s, user %s, password %s",
		a.Homeserver, a.User, a.Password)
	return nil
}

func (t *trial) botLogTail() string {
	b, err := os.ReadFile(t.statePath("bot.log"))
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
	if t.keep {
		fmt.Fprintf(t.err, "Kept in %s; `make try KEEP=1` goes on there.\n", t.dir)
	}
}

// checkAndShowEvent prints one event of the room. done reports whether it is a finished message of the bot.
func (t *trial) checkAndShowEvent(e peer.Event) (done bool, err error) {
	if e.Room != t.room || e.Sender == t.you.UserID() {
		return false, nil
	}
	switch e.Kind {
	case peer.Typing:
		t.screen.SetTyping(e.On)
	case peer.Undecryptable:
		return false, fmt.Errorf("try: a message of the bot could not be decrypted: %w", e.Err)
	case peer.Message, peer.Edit, peer.PollStarted, peer.PollEnded:
		if e.Poll != nil {
			for i, o := range e.Poll.Options {
				e.Body += fmt.Sprintf("\n%d. %s", i+1, o.Text)
			}
		}
		if !e.Encrypted {
			return false, errors.New("try: the bot sent plain text into the encrypted room")
		}
		if e.Live && e.Notice { // a progress notice
			t.screen.Progress(e.Body)
			return false, nil
		}
		t.screen.Show(e.ID, e.Body, !e.Live)
		return !e.Live, nil
	}
	return false, nil
}

// chatInTerminal sends typed lines and prints events until every line has been answered.
func (t *trial) chatInTerminal(ctx context.Context, in *tty.Input) error {
	t.screen.Tell("\nWrite a message; !help lists commands; Ctrl-D or exit ends.\n")
	unanswered := 0
	send := func(text string) error {
		if _, err := t.you.Say(ctx, t.room, text); err != nil {
			return fmt.Errorf("try: send: %w", err)
		}
		if unanswered++; in.Live { // one answer may cover several lines
			unanswered = 1
		}
		return nil
	}
	err := tty.Talk(ctx, in, func() bool { return unanswered > 0 }, send, t.you.Events(), func(e peer.Event) error {
		done, err := t.checkAndShowEvent(e)
		if done { // or a reminder
			unanswered = max(0, unanswered-1)
		}
		return err
	})
	if errors.Is(context.Cause(ctx), errBotEnded) {
		return fmt.Errorf("try: %w; %s", errBotEnded, t.botLogTail())
	}
	return err
}

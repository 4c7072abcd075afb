package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"reverie/internal/session"
)

// version is set by the build.
var version = "dev"

// commandLine is what bot can do, one line each.
type commandLine struct {
	Config string `short:"c" default:"config.yaml" env:"REVERIE_CONFIG" type:"path" help:"The configuration file."`

	Run     runCommand     `cmd:"" default:"1" help:"Answer in Matrix rooms (the default)."`
	Try     tryCommand     `cmd:"" help:"Chat in a real encrypted room on a throw-away homeserver."`
	Chat    chatCommand    `cmd:"" help:"Chat in this terminal, without Matrix. Reads lines from standard input."`
	Init    initCommand    `cmd:"" help:"Write a commented configuration file."`
	Doctor  doctorCommand  `cmd:"" help:"Check configuration, files, model, homeserver and encryption, and say what to do."`
	Tier    tierCommand    `cmd:"" help:"Show which prompt tier the model's window makes, and how that was decided."`
	Memory  memoryCommand  `cmd:"" help:"Look at what is remembered, and change it. The bot may run meanwhile."`
	Dream   dreamCommand   `cmd:"" help:"Put the memory in order, as it is done at night. Nothing is lost, and all of it can be taken back."`
	Task    taskCommand    `cmd:"" help:"Look at the tasks and what became of them, and change them. The bot may run meanwhile."`
	Prompt  promptCommand  `cmd:"" help:"Show what the model would be sent."`
	Verify  verifyCommand  `cmd:"" help:"Show the bot's device and fingerprint, and how to verify them."`
	Version versionCommand `cmd:"" help:"Print the version."`
	Help    helpCommand    `cmd:"" help:"Explain the commands, or one of them."`

	Completion completionCommand `cmd:"" help:"Print the script that completes this command line in a shell: source <(bot completion bash)."`
	Complete   completeCommand   `cmd:"" hidden:"" help:"List what may come next on the command line."`

	FirstRun firstRunCommand `cmd:"" name:"first-run" hidden:"" help:"Make accounts, a room and the configuration, as docker-compose.yml has it done."`

	ShowVersion kong.VersionFlag `name:"version" short:"v" help:"Print the version."`
}

// console is where a command talks to the person who started it.
type console struct {
	in       io.Reader
	out, err io.Writer
}

// Exit codes, part of the command line's contract.
const (
	exitFailed = 1 // it was tried and did not work
	exitUsage  = 2 // wrong usage or configuration
)

// usageError is an error that is the caller's to mend: flags, configuration.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	code := start(ctx, os.Args[1:], console{os.Stdin, os.Stdout, os.Stderr})
	stop()
	os.Exit(code)
}

// start runs one command and returns its exit code.
func start(ctx context.Context, args []string, c console) int {
	c.out, c.err = plain(c.out), plain(c.err)
	var line commandLine
	parser, err := kong.New(&line, kong.Name("bot"),
		kong.Description("Reverie: an assistant that lives in Matrix rooms and remembers."),
		kong.Vars{"version": "Reverie " + version}, kong.Writers(c.out, c.err), kong.UsageOnError(), kong.BindTo(ctx, (*context.Context)(nil)))
	if err != nil {
		fmt.Fprintln(c.err, "bot:", err)
		return exitFailed
	}
	if len(args) > 0 && args[0] == "help" {
		args = append(slices.Clone(args[1:]), "--help")
	}
	if err = knownCommand(parser.Model, args); err != nil {
		fmt.Fprintf(c.err, "bot: %v\nTry `bot help`.\n", err)
		return exitUsage
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		fmt.Fprintf(c.err, "bot: %v\nTry `bot --help`.\n", err)
		return exitUsage
	}
	return exitCode(parsed.Run(c, configPath(line.Config), parser), c.err)
}

// knownCommand refuses a first argument that is neither a flag nor a command.
func knownCommand(model *kong.Application, args []string) error {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return nil
	}
	var names []string
	for _, n := range model.Children {
		names = append(names, n.Name)
	}
	if slices.Contains(names, args[0]) {
		return nil
	}
	err := fmt.Errorf("unknown command %q", args[0])
	if near := session.Nearest(args[0], names); len(near) > 0 {
		err = fmt.Errorf("%w, did you mean %q?", err, near[0])
	}
	return err
}

// configPath is the path of the configuration file.
type configPath string

func exitCode(err error, w io.Writer) int {
	if err == nil {
		return 0
	}
	if !errors.Is(err, errSaid) {
		fmt.Fprintln(w, "bot:", err)
	}
	var usage usageError
	if errors.As(err, &usage) {
		return exitUsage
	}
	return exitFailed
}

// errSaid fails a command that has already told the person why.
var errSaid = errors.New("said")

// helpCommand stands in the list of commands; start makes --help of it.
type helpCommand struct {
	Command []string `arg:"" optional:"" help:"The command to explain."`
}

// Run does nothing.
func (helpCommand) Run() error { return nil }

type versionCommand struct {
	JSON bool `help:"Print JSON."`
}

func (v versionCommand) Run(c console) error {
	if v.JSON {
		return printJSON(c.out, map[string]string{"version": version})
	}
	_, err := fmt.Fprintln(c.out, "Reverie", version)
	return err
}

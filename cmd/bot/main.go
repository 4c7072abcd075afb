package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alexflint/go-arg"

	"reverie/cmd/bot/config"
	"reverie/internal/tty"
)

// version is set by the build.
var version = "dev"

// commandLine is what bot can do, one line each.
type commandLine struct {
	Config filePath `arg:"-c,env:REVERIE_CONFIG" default:"config.yaml" help:"The configuration file."`

	Run     *runCommand     `arg:"subcommand:run" help:"Answer in Matrix rooms (the default)."`
	Chat    *chatCommand    `arg:"subcommand:chat" help:"Chat in this terminal, without Matrix. Reads lines from standard input."`
	Init    *initCommand    `arg:"subcommand:init" help:"Write a commented configuration file."`
	Doctor  *doctorCommand  `arg:"subcommand:doctor" help:"Check configuration, files, models, homeserver and encryption; say what to do."`
	Tier    *tierCommand    `arg:"subcommand:tier" help:"Show the prompt tier for the model's context window, and how it was decided."`
	Memory  *memoryCommand  `arg:"subcommand:memory" help:"Show and change memories. The bot may keep running."`
	Dream   *dreamCommand   `arg:"subcommand:dream" help:"Tidy up the memory, as is done at night. All of it can be reverted."`
	Task    *taskCommand    `arg:"subcommand:task" help:"Show and change tasks and their runs. The bot may keep running."`
	Prompt  *promptCommand  `arg:"subcommand:prompt" help:"Show what the model would be sent."`
	Version *versionCommand `arg:"subcommand:version" help:"Print the version."`
	Help    *helpCommand    `arg:"subcommand:help" help:"Explain the commands, or one of them."`

	Try      *tryCommand      `arg:"subcommand:try,hidden" help:"Say how to try Reverie."`
	FirstRun *firstRunCommand `arg:"subcommand:first-run,hidden" help:"Make accounts, a room and a configuration for docker-compose.yml."`

	JSON        bool `help:"Print JSON."`
	ShowVersion bool `arg:"-v,--version" help:"Print the version."`
}

// Description heads the help.
func (*commandLine) Description() string {
	return "Reverie: an assistant that lives in Matrix rooms and remembers."
}

// subcommand is one that was parsed.
type subcommand interface {
	Run(ctx context.Context, c console, config filePath) error
}

// dataCommand is a subcommand that works on the data folder. The bot may run beside it.
type dataCommand interface {
	Run(ctx context.Context, c console, b *bot) error
}

// onData is a dataCommand as a subcommand.
type onData struct{ dataCommand }

// Run opens the data folder for the command.
func (d onData) Run(ctx context.Context, c console, path filePath) error {
	cfg, log, err := load(path, c.err, false)
	if err != nil {
		return err
	}
	b, err := openBot(ctx, cfg, log, false)
	if err != nil {
		return err
	}
	defer b.close()
	return d.dataCommand.Run(ctx, c, b)
}

// console is where a command talks to the person who started it.
type console struct {
	in       io.Reader
	out, err io.Writer
	json     bool // what a command reports is to be printed as JSON
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
	code := start(ctx, os.Args[1:], console{in: os.Stdin, out: os.Stdout, err: os.Stderr})
	stop()
	os.Exit(code)
}

// start runs one command and returns its exit code.
func start(ctx context.Context, args []string, c console) int {
	c.out, c.err = tty.Plain(c.out), tty.Plain(c.err)
	var line commandLine
	parser, err := arg.NewParser(arg.Config{Program: "bot", Out: c.out}, &line)
	if err != nil {
		fmt.Fprintln(c.err, "bot:", err)
		return exitFailed
	}
	err = parser.Parse(args)
	if len(args) > 0 && args[0] == "help" {
		if err = parser.WriteHelpForSubcommand(c.out, args[1:]...); err == nil {
			return 0
		}
	}
	if errors.Is(err, arg.ErrHelp) {
		parser.WriteHelp(c.out)
		return 0
	}
	if err != nil {
		words := strings.NewReplacer("error processing ", "", "invalid subcommand: ", "unknown command ", "unknown argument ",
			"unknown flag ")
		fmt.Fprintf(c.err, "bot: %s\nTry `bot help`.\n", words.Replace(err.Error()))
		return exitUsage
	}
	run := line.command(parser.Subcommand())
	if run == nil { // a command that only has others below it
		parser.WriteHelp(c.err)
		return exitUsage
	}
	c.json = line.JSON
	return exitCode(run.Run(ctx, c, line.Config), c.err)
}

// command returns what is to be run, of which parsed is the innermost command that was named.
func (line *commandLine) command(parsed any) subcommand {
	switch {
	case line.ShowVersion:
		return versionCommand{}
	case parsed == nil:
		return runCommand{}
	}
	if run, ok := parsed.(dataCommand); ok {
		return onData{run}
	}
	run, _ := parsed.(subcommand)
	return run
}

// filePath is the path of a file as a person writes it: absolute once it is read.
type filePath string

// UnmarshalText makes a path absolute. A ~ that the shell left alone is the home folder.
func (p *filePath) UnmarshalText(text []byte) error {
	here, err := os.Getwd()
	*p = filePath(config.Resolve(here, string(text)))
	return err
}

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

// helpCommand stands in the list of commands; start answers it.
type helpCommand struct {
	Command []string `arg:"positional" help:"The command to explain."`
}

// tryCommand stands for what the program of `make try` does.
type tryCommand struct{}

// Run says how to try Reverie.
func (tryCommand) Run(context.Context, console, filePath) error {
	return usageError{errors.New("`make try` in the source folder starts a throw-away homeserver and a chat with Reverie; " +
		"that is a program of its own, bin/try")}
}

type versionCommand struct{}

// Run prints the version.
func (v versionCommand) Run(_ context.Context, c console, _ filePath) error {
	if c.json {
		return printJSON(c.out, map[string]string{"version": version})
	}
	_, err := fmt.Fprintln(c.out, "Reverie", version)
	return err
}

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/alexflint/go-arg"

	"reverie/cmd/bot/config"
	"reverie/internal/tty"
)

// version is the release. CHANGELOG.md says what is in it.
const version = "0.1.0"

// commit is the source that the program was built from; the build sets it.
var commit = "unknown"

// commandLine declares the subcommands and global flags.
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
	MCP     *mcpCommand     `arg:"subcommand:mcp" help:"Connect programs by the Model Context Protocol."`
	Skill   *skillCommand   `arg:"subcommand:skill" help:"Show, check, add and remove skills. The bot may keep running."`
	Backup  *backupCommand  `arg:"subcommand:backup" help:"Write a backup of the data folder into one file. The bot may keep running."`
	Restore *restoreCommand `arg:"subcommand:restore" help:"Restore a backup into an empty data folder, or check that it can be."`
	Web     *webCommand     `arg:"subcommand:web" help:"Show in the browser what the assistant does and why. The bot may keep running."`
	Prompt  *promptCommand  `arg:"subcommand:prompt" help:"Show what the model would be sent."`
	Version *versionCommand `arg:"subcommand:version" help:"Print the version."`
	Help    *helpCommand    `arg:"subcommand:help" help:"Explain the commands, or one of them."`

	FirstRun *firstRunCommand `arg:"subcommand:first-run,hidden" help:"Make accounts, a room and a configuration for docker-compose.yml."`

	JSON        bool `help:"Print JSON."`
	ShowVersion bool `arg:"-v,--version" help:"Print the version."`
}

// Description implements arg.Described.
func (*commandLine) Description() string {
	return "Reverie: an assistant that lives in Matrix rooms and remembers."
}

// subcommand is a parsed subcommand.
type subcommand interface {
	Run(ctx context.Context, c console, config filePath) error
}

// dataCommand is a subcommand that works on the data folder. The bot may run at the same time.
type dataCommand interface {
	Run(ctx context.Context, c console, b *bot) error
}

// withBot adapts a dataCommand to a subcommand.
type withBot struct{ dataCommand }

// Run opens the data folder and runs the command.
func (d withBot) Run(ctx context.Context, c console, path filePath) error {
	cfg, log, err := loadConfig(path, c.err, false)
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

// console holds the streams of the person who runs a command.
type console struct {
	in       io.Reader
	out, err io.Writer
	json     bool   // print results as JSON
	program  string // the name by which it was started
}

// Exit codes, part of the command line's contract.
const (
	exitFailed = 1 // the command failed
	exitUsage  = 2 // wrong usage or configuration
)

// usageError is an error that the caller can fix: flags or configuration.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	code := execute(ctx, os.Args[1:], console{in: os.Stdin, out: os.Stdout, err: os.Stderr,
		program: filepath.Base(os.Args[0])})
	stop()
	os.Exit(code)
}

// execute runs one command and returns its exit code.
func execute(ctx context.Context, args []string, c console) int {
	c.program = cmp.Or(c.program, "bot")
	c.out, c.err = tty.StripControls(c.out), tty.RenamingWriter{W: tty.StripControls(c.err), Name: c.program}
	var line commandLine
	parser, err := arg.NewParser(arg.Config{Program: c.program, Out: c.out}, &line)
	if err != nil {
		fmt.Fprintln(c.err, c.program+":", err)
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
		fmt.Fprintf(c.err, "%s: %s\nTry `bot help`.\n", c.program, words.Replace(err.Error()))
		return exitUsage
	}
	run := line.selectCommand(parser.Subcommand())
	if run == nil { // only groups other commands
		parser.WriteHelp(c.err)
		return exitUsage
	}
	c.json = line.JSON
	err = run.Run(ctx, c, line.Config)
	if err != nil && !errors.Is(err, errReported) {
		fmt.Fprintln(c.err, c.program+":", err)
	}
	var usage usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage):
		return exitUsage
	}
	return exitFailed
}

// selectCommand returns the command to run. parsed is the innermost one named on the command line.
func (line *commandLine) selectCommand(parsed any) subcommand {
	switch {
	case line.ShowVersion:
		return versionCommand{}
	case parsed == nil:
		return runCommand{}
	}
	if run, ok := parsed.(dataCommand); ok {
		return withBot{run}
	}
	run, _ := parsed.(subcommand)
	return run
}

// filePath is a path from a flag; it is absolute after parsing.
type filePath string

// UnmarshalText resolves a path, also a ~ that the shell did not expand.
func (p *filePath) UnmarshalText(text []byte) error {
	dir, err := os.Getwd()
	*p = filePath(config.Resolve(dir, string(text)))
	return err
}

// errReported fails a command that has already printed the reason.
var errReported = errors.New("said")

// helpCommand lists "help" among the commands; execute handles it.
type helpCommand struct {
	Command []string `arg:"positional" help:"The command to explain."`
}

type versionCommand struct{}

func (v versionCommand) Run(_ context.Context, c console, _ filePath) error {
	return c.print(map[string]string{"version": version, "commit": commit}, "Reverie %s (%s)\n", version, commit)
}

package tool

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"reverie/internal/llm"
	"reverie/internal/sandbox"
	"reverie/internal/tool/workspace"
	"reverie/internal/trust"
)

// Shell is the name of the tool that runs commands.
const Shell = "shell"

// Commands says what may run on the machine. The zero value allows nothing.
type Commands struct {
	Code bool // run_code is offered

	Rooms      []string      // with the tool shell, by id; "*" is the direct chats of owners
	Owners     []string      // who may have commands run
	Network    bool          // commands may use it
	Time       time.Duration // of one command
	Background time.Duration // of one in the background
	Quota      int64         // bytes of a work folder
	Hidden     []string      // files and folders that no command may read

	Zone string // as in sandbox.Spec, also for code
}

type shellArgs struct {
	Command    string `json:"command" rule:"required" doc:"For /bin/sh -c."`
	Background *bool  `json:"background" doc:"true: it goes on meanwhile; see shell_status."`
}

func (a shellArgs) inBackground() bool { return a.Background != nil && *a.Background }

// shell runs a command that a person has approved. Its output is foreign: anybody may have written the
// files that it reads.
func shell(s *Set, ctx context.Context, scope Scope, a shellArgs) (string, error) {
	dir := workspace.Folder(s.cfg.Dir, scope.Place())
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make the work folder: %w", err)
	}
	c := s.cfg.Commands
	s.cfg.Log.Info("command", "room", scope.Room, "user", scope.User, "command", a.Command, "background", a.inBackground())
	spec := sandbox.Spec{Command: a.Command, Dir: dir, ReadOnly: readsOnly(scope), Network: c.Network, Time: c.Time, Quota: c.Quota,
		Zone: c.Zone, Hidden: c.Hidden}
	if a.inBackground() {
		return startInBackground(s, ctx, scope, spec)
	}
	scope.MarkShown(trust.Foreign)
	r, err := sandbox.Run(ctx, spec)
	if err != nil {
		return "", notConfined(s, ctx, scope, Shell, err)
	}
	end := howEnded(r, c.Time)
	switch {
	case end != done:
		return capText(r.Output, MaxResult-100) + "\n[" + end + "]", nil
	case r.Output == "":
		return "[done, without output]", nil
	}
	return r.Output, nil
}

const done = "done"

// howEnded says how a command ended that had the time limit.
func howEnded(r sandbox.Result, limit time.Duration) string {
	end := map[sandbox.Reason]string{
		sandbox.TimeUp: fmt.Sprintf("stopped after %v", limit), sandbox.QuotaFull: "stopped: the work folder is full",
		sandbox.MemoryFull: "stopped: it used too much memory", sandbox.TooMany: "stopped: it started too many processes",
	}[r.Ended]
	if end == "" && r.Code != 0 {
		end = fmt.Sprintf("exit status %d", r.Code)
	}
	return cmp.Or(end, done)
}

// readsOnly reports whether commands may not change the work folder: in modes that may not delete files.
func readsOnly(scope Scope) bool { return !scope.Policy.Allows("delete_file") }

// shellIn reports whether the room, whose readers are known, has the tool shell.
func (c Commands) shellIn(room string, readers trust.Readers) bool {
	return slices.Contains(c.Rooms, room) ||
		slices.Contains(c.Rooms, "*") && slices.Contains(c.Owners, readers.Person())
}

// Withheld lists the tools that are not offered in a room.
func (s *Set) Withheld(room string, readers trust.Readers) (names []string) {
	if !s.cfg.Commands.shellIn(room, readers) {
		names = append(names, Shell, ShellStatus)
	}
	if s.cfg.Advisors != nil && len(s.cfg.Advisors.List()) == 0 {
		names = append(names, askAdvisors)
	}
	return names
}

// mayLookAtCommands returns the refusal in a room without the tool shell.
func mayLookAtCommands(s *Set, scope Scope) error {
	if s.cfg.Commands.shellIn(scope.Room, scope.Place().Readers()) {
		return nil
	}
	return refusal("Not done: there are no commands in this room. The owner names rooms under tools.shell in the configuration.")
}

// mayUseShell returns the refusal where no person is asked about a command.
func mayUseShell(s *Set, scope Scope) error {
	none := mayLookAtCommands(s, scope)
	switch {
	case none != nil:
		return none
	case scope.System, scope.SubSession != "":
		return refusal("Not done: a command needs an owner who has just asked for it and can agree. " +
			"Say in your answer which command you would run.")
	case !slices.Contains(s.cfg.Commands.Owners, scope.User):
		return refusal("Not done: only an owner may have commands run, and the person who asks is none. Say so.")
	}
	return nil
}

// showCommand describes a call for the person who must approve it: the command line by line, where it
// runs, and the content of the files that it names.
func showCommand(s *Set, scope Scope, call llm.ToolCall) []string {
	var a shellArgs
	if json.Unmarshal([]byte(call.Arguments), &a) != nil {
		return []string{call.Arguments}
	}
	lines := []string{"command:"}
	for line := range strings.SplitSeq(a.Command, "\n") {
		lines = append(lines, "│ "+line)
	}
	where := "folder: work"
	if readsOnly(scope) {
		where += ", read-only"
	}
	if s.cfg.Commands.Network {
		where += ", with network"
	}
	if a.inBackground() {
		where += fmt.Sprintf(", in the background for up to %v", s.cfg.Commands.Background)
	}
	return append(append(lines, where), namedFiles(workspace.Folder(s.cfg.Dir, scope.Place()), a.Command)...)
}

const (
	maxNamed  = 20      // files in a question, each in a line of its own
	maxWalked = 5000    // entries of a work folder
	maxHashed = 4 << 20 // bytes of a file
)

// namedFiles lists the files below dir whose names are among the words of a command, with hashes of
// their contents. Folders of words do not count, because the command may change into them.
func namedFiles(dir, command string) (lines []string) {
	words := strings.FieldsFunc(command, func(r rune) bool { return strings.ContainsRune(" \t\r\n\"'`;|&<>(){}$=:,\\", r) })
	named := func(name string) bool {
		return slices.ContainsFunc(words, func(word string) bool {
			fits, err := path.Match(path.Base(word), name)
			return path.Base(word) == name || err == nil && fits
		})
	}
	root, err := os.OpenRoot(dir)
	if err != nil { // it does not exist yet
		return nil
	}
	defer root.Close()
	more, walked := sha256.New(), 0
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if walked++; walked > maxWalked {
			return errors.New("there are too many files in the work folder")
		}
		if err != nil || !d.Type().IsRegular() || !named(d.Name()) {
			return nil //nolint:nilerr // a folder that cannot be read has no files for the command
		}
		line := "file: " + name + ", SHA-256 " + hashOf(root, name)
		if len(lines) < maxNamed {
			lines = append(lines, line)
		} else {
			fmt.Fprintln(more, line)
		}
		return nil
	})
	if err != nil {
		return append(lines, err.Error())
	}
	if len(lines) == maxNamed {
		lines = append(lines, fmt.Sprintf("more files: SHA-256 %.16x", more.Sum(nil)))
	}
	return lines
}

// hashOf returns the begin of the hash of a file, or why it is missing.
func hashOf(root *os.Root, name string) string {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // does not wait for a pipe
	if err != nil {
		return "unreadable"
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return "unreadable"
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(f, maxHashed)); err != nil {
		return "unreadable"
	}
	if info.Size() > maxHashed {
		return fmt.Sprintf("%.16x of the first %d bytes of %d at %d", h.Sum(nil), maxHashed, info.Size(), info.ModTime().UnixNano())
	}
	return fmt.Sprintf("%.16x", h.Sum(nil))
}

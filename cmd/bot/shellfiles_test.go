package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"reverie/internal/test/expect"
)

var updateShellFiles = flag.Bool("update", false, "rewrite the manual page and the completions in deploy")

// shellCommand is a command as the manual page and the completions show it.
type shellCommand struct {
	name, help string // name: with those that it is below, such as "memory list"; "" = the program
	words      string // what follows on the command line, such as "[WORDS...]"
	options    []shellOption
	below      []shellCommand
}

type shellOption struct {
	names []string // the long one first
	value string   // "" = a switch
	help  string
}

// readCommands reads a command from its struct by the rules of go-arg.
func readCommands(name, help string, of reflect.Type) shellCommand {
	c := shellCommand{name: name, help: help}
	for f := range of.Fields() {
		if f.Anonymous {
			inner := readCommands(name, help, f.Type)
			c.options, c.below = append(c.options, inner.options...), append(c.below, inner.below...)
			c.words += inner.words
			continue
		}
		tag, help := strings.Split(f.Tag.Get("arg"), ","), f.Tag.Get("help")
		value := f.Tag.Get("placeholder")
		if value == "" {
			value = strings.ToUpper(f.Name)
		}
		sub, isSub := strings.CutPrefix(tag[0], "subcommand:")
		switch {
		case slices.Contains(tag, "hidden"):
		case isSub:
			c.below = append(c.below, readCommands(strings.TrimSpace(name+" "+sub), help, f.Type.Elem()))
		case tag[0] == "positional":
			if f.Type.Kind() == reflect.Slice {
				value += " ..."
			}
			if !slices.Contains(tag, "required") {
				value = "[" + value + "]"
			}
			c.words += " " + value
		default:
			o := shellOption{names: []string{"--" + strings.ToLower(f.Name)}, value: value, help: help}
			for _, t := range tag {
				switch {
				case strings.HasPrefix(t, "--"):
					o.names[0] = t
				case strings.HasPrefix(t, "-"):
					o.names = append(o.names, t)
				}
			}
			if f.Type.Kind() == reflect.Bool {
				o.value = ""
			}
			c.options = append(c.options, o)
		}
	}
	return c
}

func allCommands() shellCommand { return readCommands("", "", reflect.TypeFor[commandLine]()) }

// TestShellFilesAreCurrent: the manual page and the completions that packages install say what the program
// understands.
func TestShellFilesAreCurrent(t *testing.T) {
	all := allCommands()
	for file, want := range map[string]string{
		"reverie.1": manualPage(all), "completion/reverie.bash": completeBash(all), "completion/_reverie": completeZsh(all),
		"completion/reverie.fish": completeFish(all),
	} {
		path := filepath.Join("..", "..", "deploy", file)
		if *updateShellFiles {
			expect.OK(t, os.WriteFile(path, []byte(want), 0o644))
		}
		if have := string(expect.Must(os.ReadFile(path))(t)); have != want {
			t.Errorf("%s is not what the commands are now: go test ./cmd/bot -run TestShellFilesAreCurrent -update", path)
		}
	}
}

// TestShellCommandsAreThose: the names read from the structs are those of the parser's own help.
func TestShellCommandsAreThose(t *testing.T) {
	line := regexp.MustCompile(`(?m)^  (-[^ ]*|[a-z][a-z-]*)(?: |$)`)
	var check func(c shellCommand)
	check = func(c shellCommand) {
		var out bytes.Buffer
		if code := execute(t.Context(), append([]string{"help"}, strings.Fields(c.name)...), console{out: &out, err: io.Discard}); code != 0 {
			t.Fatalf("help %s: exit code %d", c.name, code)
		}
		have := map[string]bool{}
		own, global, _ := strings.Cut(out.String(), "\nGlobal options:\n")
		_, below, _ := strings.Cut(global, "\nCommands:\n")
		for _, m := range line.FindAllStringSubmatch(own+"\n"+below, -1) {
			if name := strings.TrimSuffix(m[1], ","); name != "--help" {
				have[name] = true
			}
		}
		want := map[string]bool{}
		for _, o := range c.options {
			want[o.names[0]] = true
		}
		for _, b := range c.below {
			want[b.name[strings.LastIndex(b.name, " ")+1:]] = true
			check(b)
		}
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("names of %q: -ours +the parser's:\n%s", c.name, diff)
		}
	}
	check(allCommands())
}

// visit calls f for each command below c, in order.
func (c shellCommand) visit(f func(shellCommand)) {
	for _, b := range c.below {
		f(b)
		b.visit(f)
	}
}

func roff(s string) string {
	return strings.NewReplacer(`\`, `\e`, `-`, `\-`, "`", `\(ga`).Replace(s)
}

func manualPage(all shellCommand) string {
	var b strings.Builder
	option := func(o shellOption) {
		names := slices.Clone(o.names)
		slices.Reverse(names)
		fmt.Fprintf(&b, ".TP\n\\fB%s\\fR", roff(strings.Join(names, ", ")))
		if o.value != "" {
			fmt.Fprintf(&b, " \\fI%s\\fR", roff(o.value))
		}
		fmt.Fprintf(&b, "\n%s\n", roff(o.help))
	}
	b.WriteString(`.TH REVERIE 1 "" "Reverie ` + version + `" "User Commands"
.SH NAME
reverie \- an assistant that lives in Matrix rooms and remembers
.SH SYNOPSIS
\fBreverie\fR [\fIOPTION\fR]... [\fICOMMAND\fR] [\fIARGUMENT\fR]...
.SH DESCRIPTION
Reverie answers in Matrix rooms, also in encrypted ones, by a language model of your own, and remembers what it is told.
.PP
Started by root, \fBreverie\fR works with the configuration and the data of the service, as the user reverie.
Started by anybody else, it works with config.yaml in the current folder. The manual calls the program \fBbot\fR.
.SH OPTIONS
`)
	for _, o := range all.options {
		option(o)
	}
	b.WriteString(".SH COMMANDS\n")
	all.visit(func(c shellCommand) {
		if len(c.below) > 0 && len(c.options) == 0 && c.words == "" {
			return
		}
		fmt.Fprintf(&b, ".TP\n\\fB%s\\fR%s\n%s\n", roff(c.name), roff(c.words), roff(c.help))
		if len(c.options) > 0 {
			b.WriteString(".RS\n")
			for _, o := range c.options {
				option(o)
			}
			b.WriteString(".RE\n")
		}
	})
	b.WriteString(`.SH EXIT STATUS
0 success, 1 failure, 2 wrong usage or configuration.
.SH FILES
.TP
/etc/reverie/config.yaml
The configuration of the service; \fBreverie init\fR writes it.
.TP
/etc/reverie/environment
Passwords and keys of the service, one NAME=value a line.
.TP
/var/lib/reverie
All that it keeps: memories, skills, prompts, database, keys.
.SH ENVIRONMENT
.TP
REVERIE_CONFIG
The configuration file.
.SH SEE ALSO
/usr/share/doc/reverie/manual.md, systemctl(1)
`)
	return b.String()
}

// optionWords are the names of the options of c.
func (c shellCommand) optionWords() (words []string) {
	for _, o := range c.options {
		words = append(words, o.names...)
	}
	return words
}

// candidates are the words that may follow c: its commands, then its options.
func (c shellCommand) candidates() string {
	var words []string
	for _, b := range c.below {
		words = append(words, b.name[strings.LastIndex(b.name, " ")+1:])
	}
	return strings.Join(append(words, c.optionWords()...), " ")
}

func completeBash(all shellCommand) string {
	var b strings.Builder
	b.WriteString(`# Completion of reverie for bash. Made by a test of cmd/bot; do not edit.
_reverie() {
	local word=${COMP_WORDS[COMP_CWORD]} command='' words='' i
	for ((i = 1; i < COMP_CWORD; i++)); do
		case "$command ${COMP_WORDS[i]}" in
`)
	var names []string
	all.visit(func(c shellCommand) { names = append(names, `" `+c.name+`"`) })
	fmt.Fprintf(&b, "\t\t%s) command=\"$command ${COMP_WORDS[i]}\" ;;\n\t\tesac\n\tdone\n\tcase $command in\n", strings.Join(names, " | "))
	fmt.Fprintf(&b, "\t'') words='%s' ;;\n", all.candidates())
	all.visit(func(c shellCommand) {
		words := strings.TrimSpace(c.candidates() + " " + strings.Join(all.optionWords(), " "))
		fmt.Fprintf(&b, "\t' %s') words='%s' ;;\n", c.name, words)
	})
	b.WriteString("\tesac\n\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n}\ncomplete -o default -F _reverie reverie\n")
	return b.String()
}

// quoteShell puts s into single quotes.
func quoteShell(s, quote string) string { return "'" + strings.ReplaceAll(s, "'", quote) + "'" }

func completeZsh(all shellCommand) string {
	var b strings.Builder
	b.WriteString(`#compdef reverie
# Completion of reverie for zsh. Made by a test of cmd/bot; do not edit.
local command='' word
local -a offers
for word in ${words[2,CURRENT-1]}; do
	case "$command $word" in
`)
	var names []string
	all.visit(func(c shellCommand) { names = append(names, `" `+c.name+`"`) })
	fmt.Fprintf(&b, "\t%s) command=\"$command $word\" ;;\n\tesac\ndone\ncase $command in\n", strings.Join(names, "|"))
	offers := func(c shellCommand, more []shellOption) {
		fmt.Fprintf(&b, "%s)\n\toffers=(\n", quoteShell(strings.TrimRight(" "+c.name, " "), ""))
		offer := func(word, help string) {
			fmt.Fprintf(&b, "\t\t%s\n", quoteShell(strings.ReplaceAll(word, ":", `\:`)+":"+help, `'\''`))
		}
		for _, sub := range c.below {
			offer(sub.name[strings.LastIndex(sub.name, " ")+1:], sub.help)
		}
		for _, o := range append(slices.Clone(c.options), more...) {
			for _, name := range o.names {
				offer(name, o.help)
			}
		}
		b.WriteString("\t)\n\t;;\n")
	}
	offers(all, nil)
	all.visit(func(c shellCommand) { offers(c, all.options) })
	b.WriteString("esac\n_describe reverie offers\n_files\n")
	return b.String()
}

func completeFish(all shellCommand) string {
	var b strings.Builder
	b.WriteString("# Completion of reverie for fish. Made by a test of cmd/bot; do not edit.\n")
	option := func(when string, o shellOption) {
		b.WriteString("complete -c reverie" + when)
		for _, name := range o.names {
			if long, ok := strings.CutPrefix(name, "--"); ok {
				b.WriteString(" -l " + long)
			} else {
				b.WriteString(" -s " + strings.TrimPrefix(name, "-"))
			}
		}
		if o.value != "" {
			b.WriteString(" -r")
		}
		fmt.Fprintf(&b, " -d %s\n", quoteShell(o.help, `\'`))
	}
	for _, o := range all.options {
		option("", o)
	}
	all.visit(func(c shellCommand) {
		parent, own := "", c.name
		if i := strings.LastIndex(c.name, " "); i >= 0 {
			parent, own = c.name[:i], c.name[i+1:]
		}
		when := " -n __fish_use_subcommand"
		if parent != "" {
			when = " -n '__fish_seen_subcommand_from " + parent + "'"
		}
		fmt.Fprintf(&b, "complete -c reverie%s -a %s -d %s\n", when, own, quoteShell(c.help, `\'`))
		seen := strings.ReplaceAll(c.name, " ", "; and __fish_seen_subcommand_from ")
		for _, o := range c.options {
			option(" -n '__fish_seen_subcommand_from "+seen+"'", o)
		}
	})
	return b.String()
}

// TestCompletionsWork asks the shells themselves, and groff whether the manual page is well formed.
func TestCompletionsWork(t *testing.T) {
	deploy := expect.Must(filepath.Abs("../../deploy"))(t)
	for name, c := range map[string]struct {
		program string
		args    []string
		want    string // a word of the output; "" = none at all
	}{
		"bash": {"bash", []string{"-c", `. ` + deploy + `/completion/reverie.bash; COMP_WORDS=(reverie memory for); COMP_CWORD=2; _reverie; echo "${COMPREPLY[@]}"`},
			"forget"},
		"bash options": {"bash", []string{"-c", `. ` + deploy + `/completion/reverie.bash; COMP_WORDS=(reverie --json dream --d); COMP_CWORD=3; _reverie; echo "${COMPREPLY[@]}"`},
			"--dry-run"},
		"zsh":          {"zsh", []string{"-fc", `words=(reverie memory for); CURRENT=3; _describe() { print -l $offers }; _files() {}; . ` + deploy + `/completion/_reverie`}, "forget:"},
		"fish":         {"fish", []string{"--no-config", "-c", `source ` + deploy + `/completion/reverie.fish; complete -C"reverie memory for"`}, "forget"},
		"fish options": {"fish", []string{"--no-config", "-c", `source ` + deploy + `/completion/reverie.fish; complete -C"reverie dream --d"`}, "--dry-run"},
		"manual page":  {"groff", []string{"-man", "-ww", "-z", deploy + "/reverie.1"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(c.program); err != nil {
				t.Skipf("%s is not installed", c.program)
			}
			cmd := exec.CommandContext(t.Context(), c.program, c.args...)
			cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
			out, err := cmd.CombinedOutput()
			if err != nil || c.want == "" && len(out) > 0 || !strings.Contains(string(out), c.want) {
				t.Errorf("%s: %v\n%s", c.program, err, out)
			}
		})
	}
}

package main

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// completionCommand prints what a shell needs to complete the command line of bot.
type completionCommand struct {
	Shell string `arg:"positional,required" choice:"bash,zsh,fish" help:"The shell: bash, zsh or fish."`
}

// completionScripts ask `bot complete` for the words that may come next.
var completionScripts = map[string]string{
	"bash": `_bot() { COMPREPLY=($(bot complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)); }
complete -o default -F _bot bot
`,
	"zsh": `_bot() { local -a found; found=(${(f)"$(bot complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)"}); compadd -a found || _files; }
compdef _bot bot
`,
	"fish": `complete -c bot -a '(bot complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
`,
}

// Run prints the script.
func (s completionCommand) Run(_ context.Context, c console, _ filePath) error {
	script, ok := completionScripts[s.Shell]
	if !ok {
		return usageError{fmt.Errorf("there is a script for bash, zsh and fish, none for %q", s.Shell)}
	}
	_, err := fmt.Fprint(c.out, script)
	return err
}

// completeCommand lists the words that may stand in the place of the last of Words, a line each.
type completeCommand struct {
	Words []string `arg:"positional"`
}

// Run prints nothing where a file name or a free text is wanted: the shell completes that.
func (w completeCommand) Run(_ context.Context, c console, _ filePath) error {
	before, last := w.Words, ""
	if n := len(before); n > 0 {
		before, last = before[:n-1], before[n-1]
	}
	for _, word := range wordsAfter(before) {
		if strings.HasPrefix(word, last) && strings.HasPrefix(word, "-") == strings.HasPrefix(last, "-") {
			if _, err := fmt.Fprintln(c.out, word); err != nil {
				return err
			}
		}
	}
	return nil
}

// wordsAfter lists the commands and flags that may follow these words of a command line.
func wordsAfter(before []string) []string {
	at := reflect.TypeFor[commandLine]()
	commands, words := wordsOf(at)
	for _, word := range before {
		if below, ok := commands[word]; ok {
			var flags []string
			commands, flags = wordsOf(below)
			words = append(slices.DeleteFunc(words, func(w string) bool { return !strings.HasPrefix(w, "-") }), flags...)
		}
	}
	return words
}

// wordsOf returns the commands of a struct of the command line, by name, and all words that it
// has: its commands, flags and the values of a positional argument with a choice.
func wordsOf(t reflect.Type) (commands map[string]reflect.Type, words []string) {
	commands = map[string]reflect.Type{}
	for i := range t.NumField() {
		field := t.Field(i)
		if field.Anonymous {
			inner, more := wordsOf(field.Type)
			maps.Copy(commands, inner)
			words = append(words, more...)
			continue
		}
		tag := field.Tag.Get("arg")
		name, isCommand := strings.CutPrefix(tag, "subcommand:")
		name, isHidden := strings.CutSuffix(name, ",hidden")
		switch {
		case isCommand:
			commands[name] = field.Type.Elem()
			if !isHidden {
				words = append(words, name)
			}
		case strings.HasPrefix(tag, "positional"):
			words = append(words, strings.FieldsFunc(field.Tag.Get("choice"), func(r rune) bool { return r == ',' })...)
		default:
			words = append(words, longFlag(field.Name, tag))
		}
	}
	return commands, words
}

// longFlag is the name of a flag: in its tag, or that of its field.
func longFlag(field, tag string) string {
	for part := range strings.SplitSeq(tag, ",") {
		if strings.HasPrefix(part, "--") {
			return part
		}
	}
	return "--" + strings.ToLower(field)
}

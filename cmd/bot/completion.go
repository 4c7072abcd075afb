package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// completionCommand prints what a shell needs to complete the command line of bot.
type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"The shell: ${enum}."`
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
func (s completionCommand) Run(c console) error {
	_, err := fmt.Fprint(c.out, completionScripts[s.Shell])
	return err
}

// completeCommand lists the words that may stand in the place of the last of Words, a line each.
type completeCommand struct {
	Words []string `arg:"" optional:"" passthrough:""`
}

// Run prints nothing where a file name or a free text is wanted: the shell completes that.
func (w completeCommand) Run(c console, parser *kong.Kong) error {
	words := w.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if len(words) == 0 {
		words = []string{""}
	}
	node, last := parser.Model.Node, words[len(words)-1]
	flags := slices.Clone(node.Flags)
	for _, word := range words[:len(words)-1] {
		i := slices.IndexFunc(node.Children, func(n *kong.Node) bool { return n.Name == word })
		if i >= 0 && !strings.HasPrefix(word, "-") {
			node = node.Children[i]
			flags = append(flags, node.Flags...)
		}
	}
	if node.DefaultCmd != nil {
		flags = append(flags, node.DefaultCmd.Flags...)
	}
	var found []string
	for _, n := range node.Children {
		if !n.Hidden {
			found = append(found, n.Name)
		}
	}
	if node.Argument == nil && len(node.Positional) > 0 {
		found = append(found, node.Positional[0].EnumSlice()...)
	}
	for _, f := range flags {
		if !f.Hidden {
			found = append(found, "--"+f.Name)
		}
	}
	for _, f := range found {
		if strings.HasPrefix(f, last) && strings.HasPrefix(f, "-") == strings.HasPrefix(last, "-") {
			if _, err := fmt.Fprintln(c.out, f); err != nil {
				return err
			}
		}
	}
	return nil
}

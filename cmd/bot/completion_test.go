package main

import (
	"os/exec"
	"strings"
	"testing"
)

// TestComplete: commands, their own commands, flags and fixed values are completed.
func TestComplete(t *testing.T) {
	for typed, want := range map[string]string{
		"do": "doctor", "memory for": "forget", "memory list --js": "--json", "completion z": "zsh", "task add x --wh": "--when", "dream --ph": "--phase",
		"--conf": "--config", "first": "", "memory forget te": "", "nonsense x": "",
	} {
		code, got := runBot(t, "", append([]string{"complete", "--"}, strings.Fields(typed)...)...)
		if code != 0 || strings.TrimSpace(got) != want {
			t.Errorf("%q: exit %d, %q, want %q", typed, code, got, want)
		}
	}
}

// TestCompletionInBash: the script for bash is one, and asks `bot complete`.
func TestCompletionInBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	script := `bot() { echo "asked: $*"; }` + "\n" + completionScripts["bash"] + "\nCOMP_WORDS=(bot memory for) COMP_CWORD=2 IFS=$'\\n'\n_bot\necho \"${COMPREPLY[@]}\"; complete -p bot"
	out, err := exec.CommandContext(t.Context(), bash, "-c", script).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "asked: complete -- memory for") || !strings.Contains(string(out), "-F _bot bot") {
		t.Errorf("%v: %s", err, out)
	}
}

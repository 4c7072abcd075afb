package main

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	reverie "reverie"
	"reverie/internal/store"
)

func TestUnknownPlaceholders(t *testing.T) {
	for _, c := range []struct{ file, text, want string }{
		{"BASE_PROMPT.txt", "a\nYou are {agentname}.", "2 {agentname}, did you mean {agent_name}?"},
		{"BASE_PROMPT.txt", "You are {Agent Name}.", "1 {Agent Name}, did you mean {agent_name}?"},
		{"BASE_PROMPT.txt", "Speak to {user}.\nAnd {user} again.", "1 {user}, there is {agent_name}"},
		{"BASE_PROMPT.txt", "You are {agent_name}.", ""},
		{"prompts/SEED_de.txt", "Du bist {agent_nmae}.", "1 {agent_nmae}, did you mean {agent_name}?"},
		{"prompts/developer/tier3.txt", "{content}", "1 {content}, there is {agent_name}"},
		{"prompts/steering/en.txt", "{goal}", "1 {goal}, there is {agent_name}"},
		{"COMPACTION_PROMPT.txt", "{history} {words}\n\n{converstion}", "3 {converstion}, did you mean {conversation}?"},
		{"COMPACTION_PROMPT.txt", "{history} {conversation} {goal} {previous} {words} {agent_name}", ""},
		{"MEMORY_HARVEST_PROMPT.txt", "{transcript} {count}", "1 {count}, there is {transcript}"},
		{"DREAM_TASK_PROMPT.txt", "{content} {nonce} {counts}", "1 {counts}, did you mean {count}?"},
		{"DREAM_TASK_PROMPT.txt", "{content} {entry_1}", "1 {entry_1}, there are {content}, {count}, {nonce}"},
		{"DREAM_CONTRADICTION_PROMPT.txt", "{pair} {entry_1} {entry_2} {entry_3}", "1 {entry_3}, did you mean {entry_1}?"},
		{"DREAM_DEDUP_PROMPT.txt", "<!-- {mine}\n-->\n{yours} {content}", "3 {yours}, there are {content}, {entry_1}, {entry_2}, {pair}, {count}, {nonce}"},
		// Braces that are no placeholders: JSON, code, addresses, sets, other programs' templates.
		{"DREAM_TASK_PROMPT.txt", `{content} such as {"task": "x", "to": {"a": {}}} or [{"pair": 1}] or {a: 1} or {1} or {}`, ""},
		{"BASE_PROMPT.txt", "Write `{word}`, ${home}, {{name}}, https://example.org/{id}/x, {A}, {x, y}, {One of these}, f{n}, {}", ""},
		{"BASE_PROMPT.txt", "```\nfunc main() {return}\n{word}\n```\n", ""},
		// The owner's own prose: only what is nearly a placeholder.
		{"COMMANDS.md", "deploy {service}", ""},
		{"prompts/tools/task.txt", "Say {id}.", ""},
		{"SOUL.md", "You are {agent-name}.", "1 {agent-name}, did you mean {agent_name}?"},
		{"notes.txt", "{agentname}", ""},
	} {
		var got []string
		for _, u := range unknownPlaceholders(c.file, c.text) {
			got = append(got, fmt.Sprintf("%d %s, %s", u.line, u.name, u.instead))
		}
		if s := strings.Join(got, "; "); s != c.want {
			t.Errorf("%s %q:\ngot  %s\nwant %s", c.file, c.text, s, c.want)
		}
	}
}

// TestShippedPlaceholdersAreKnown: no file that ships has a placeholder that nothing fills in.
func TestShippedPlaceholdersAreKnown(t *testing.T) {
	err := fs.WalkDir(reverie.Data, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(name, "messages/") {
			return err
		}
		text, err := fs.ReadFile(reverie.Data, name)
		if found := unknownPlaceholders(name, string(text)); len(found) > 0 {
			t.Errorf("%s: %+v", name, found)
		}
		return err
	})
	must(t, err)
}

// TestDoctorNamesUnknownPlaceholders: with the file, the line, and what to write; a template that cannot be used is told, too.
func TestDoctorNamesUnknownPlaceholders(t *testing.T) {
	data := t.TempDir()
	for name, text := range map[string]string{
		"BASE_PROMPT.txt":            "A.\nYou are {agent_nam}.\n",
		"prompts/mine/tier1.txt":     "{mode}",
		"DREAM_TASK_PROMPT.txt":      "What is done?\n{tasks}\n",
		"prompts/steering/.en.txt.1": "{hidden}",
		"DREAM_SKILL_PROMPT.txt":     "of an earlier release: {skills}",
	} {
		must(t, store.WriteFile(filepath.Join(data, name), []byte(text)))
	}
	_, report := doctorSays(t, data, "")
	for _, want := range []string{
		"BASE_PROMPT.txt:2: {agent_nam} is no placeholder, so the model reads it as it stands", "→ did you mean {agent_name}?",
		"prompts/mine/tier1.txt:1: {mode} is no placeholder", "→ there is {agent_name}",
		"DREAM_TASK_PROMPT.txt:2: {tasks} is no placeholder", "→ there are {content}, {count}, {nonce}",
		"the text that came with the program is used in the place of DREAM_TASK_PROMPT.txt", "DREAM_TASK_PROMPT.txt, line 2: {tasks} is no placeholder there; write {content}",
		"nothing reads DREAM_SKILL_PROMPT.txt", "→ delete it",
	} {
		if !strings.Contains(report, want) {
			t.Errorf("doctor does not say %q:\n%s", want, report)
		}
	}
	if strings.Contains(report, "{hidden}") || strings.Contains(report, "{skills}") {
		t.Errorf("a file that nothing reads is read:\n%s", report)
	}
}

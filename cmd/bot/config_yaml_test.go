package main

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// TestConfigYAML: what is no configuration at all gets one fault that helps.
func TestConfigYAML(t *testing.T) {
	bomb := "a: &a [x, x, x, x, x, x, x, x, x]\n"
	for i, c := range "bcdefghij" {
		bomb += fmt.Sprintf("%c: &%c [*%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c]\n", c, c, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i)
	}
	for name, c := range map[string]struct{ text, want string }{
		"empty":           {"", "the file is empty"},
		"only comments":   {"# name: x\n", "the file is empty"},
		"null":            {"~\n", "the file is empty"},
		"a word":          {"hello\n", "config.yaml:1: this is not a list of keys"},
		"a list":          {"- name: x\n", "config.yaml:1: this is not a list of keys"},
		"bare at":         {"name: x\nmatrix:\n  user: @reverie:example.org\n", "must stand in quotes"},
		"bare star":       {small + "matrix:\n  password: *hunter2\n", "config.yaml: not valid YAML: unknown anchor; a value that begins with @, *, ` or % or"},
		"tab":             {"llm:\n\tmodels: []\n", "config.yaml:2: not valid YAML"},
		"colon":           {"name: a: b\n", "config.yaml:1: not valid YAML"},
		"open bracket":    {"matrix: {user: x\nname: y\n", "every quote and bracket is closed"},
		"two documents":   {small + "---\nname: x\n", "config.yaml:4: a second document begins here"},
		"alias":           {"name: &hunter2 x\ndata: *hunter2\n", "config.yaml:2: data: YAML aliases are not used here"},
		"merge":           {"<<: {name: x}\n", "config.yaml:1: <<: YAML merge keys are not used here"},
		"bomb":            {bomb, "config.yaml:1: a: unknown key"},
		"tag":             {"name: !hunter2 x\n", "config.yaml:1: name: YAML tags are not used here"},
		"complex key":     {"? [a]\n: b\n", "config.yaml:1: a key must be a single word"},
		"not text":        {"name: \xc3\x28", "not valid YAML"},
		"bool for text":   {small + "name: true\n", "config.yaml:4: name: expected text"},
		"section as text": {"llm: x\n", "config.yaml:1: llm: expected keys below it, such as `models: …`"},
		"roles as list":   {small + "  roles: [a]\n", "config.yaml:4: llm.roles: expected one line for each role"},
		"line break":      {small + "name: \"a\\nb\"\n", "config.yaml:4: name: contains a line break"},
		"deep":            {strings.Repeat("[", 20000), "not valid YAML"},
		"CRLF":            {"name: x\r\nweb: {listn: x}\r\n", "config.yaml:2: web.listn: unknown key; did you mean `listen`?"},
		"BOM":             {"\ufeffname: x\nlog: [x]\n", "config.yaml:2: log: expected keys below it"},
		"tabs":            {"llm:\n  roles:\n\t\tchat: [x]\n", "lines are indented with spaces, not tabs"},
		"fraction":        {small + "context: {vram_mib: 2.7}\n", "config.yaml:4: context.vram_mib: write a whole number"},
		"secret with !":   {small + "matrix:\n  password: !hunter2\n", "config.yaml:5: matrix.password: YAML tags are not used here; put a value that begins with ! in quotes"},
		"keys in a list":  {"llm: {models: [x]}\n", "config.yaml:1: llm.models[0]: expected keys below it, such as `name: …`"},
		"no keys, 1 MB":   {strings.Repeat("\x00hunter\xff", 1<<17), "not valid YAML"},
		"brackets, 1 MB":  {strings.Repeat("hunter: [[", 1<<17), "not valid YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(t, "/x", c.text)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter") {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
	// Nothing of the Go program or of YAML's type names is in a fault, whatever stands where.
	for _, value := range []string{"x", "[x]", "[[x]]", "{x: y}", "5", "2.5", "true", "2001-01-01", "\"\""} {
		var text strings.Builder
		for _, f := range configFields(reflect.TypeFor[Config]()) {
			fmt.Fprintf(&text, "%s: %s\n", f.Tag.Get("yaml"), value)
		}
		if _, err := parse(t, "/x", text.String()); err == nil || regexp.MustCompile(`main\.|!!|unmarshal|string\b|\bint\b|float|\bstruct\b`).MatchString(err.Error()) {
			t.Errorf("%s: %v", value, err)
		}
	}
}

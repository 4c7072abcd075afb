package prompt

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
)

const baseFile = "prompts/BASE_PROMPT.txt"

// coreCache holds the parts of BASE_PROMPT.txt, and the last choice of them.
type coreCache struct {
	text     *text
	sections []baseSection
	problems []Problem
	tools    string
	content  *content
}

// gatherCore gathers the sections of BASE_PROMPT.txt whose tools are there.
func gatherCore(_ context.Context, r *request) (*content, error) {
	a := r.a
	t := a.files.read(baseFile)
	a.mu.Lock()
	defer a.mu.Unlock()
	c := &a.core
	if c.text != t {
		*c = coreCache{text: t}
		c.sections, c.problems = baseOf(t, a.cfg.KnownTools)
	}
	for _, p := range c.problems {
		r.problem(p.File, p.Line, p.Text)
	}
	if tools := strings.Join(r.turn.Tools, "\n"); c.content == nil || c.tools != tools {
		c.tools, c.content = tools, coreContent(c.sections, r.turn.Tools, a.cfg.Name)
	}
	return c.content, nil
}

// baseOf parses a base prompt, with all that is wrong with its file.
func baseOf(t *text, known []string) ([]baseSection, []Problem) {
	sections, problems := parseBase(t.text, known)
	if t.problem != "" {
		problems = append([]Problem{{Text: t.problem}}, problems...)
	} else if strings.TrimSpace(t.text) == "" {
		problems = append(problems, Problem{Text: "is empty: the model gets no instructions"})
	}
	for i := range problems {
		problems[i].File = baseFile
	}
	return sections, problems
}

func coreContent(sections []baseSection, tools []string, name string) *content {
	var on []string
	for _, s := range sections {
		if s.text != "" && s.on(tools) {
			on = append(on, s.text)
		}
	}
	c := content{source: "core"}
	if len(on) > 0 {
		c.lines = []string{strings.ReplaceAll(strings.Join(on, "\n\n"), "{agent_name}", name)}
	}
	return newContent(c)
}

// Check reads the prompt files in the data folder dir and returns what their
// owner should look at. tools are the names that may stand in BASE_PROMPT.txt.
func Check(dir string, defaults fs.FS, language string, tools []string) []Problem {
	f := newFiles(dir, defaults)
	_, problems := baseOf(f.read(baseFile), tools)
	if language == "" {
		language = "en"
	}
	_, name, problem := readSeed(f, language)
	if problem != "" {
		problems = append(problems, Problem{File: name, Text: problem})
	}
	return problems
}

func seedFile(language string) string { return fmt.Sprintf("prompts/SEED_%s.txt", language) }

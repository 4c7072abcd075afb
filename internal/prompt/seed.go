package prompt

import (
	"context"
	"strings"

	"reverie/internal/llm"
)

// gatherSeed gathers the program's note for the start of a conversation.
func gatherSeed(_ context.Context, r *request) (*content, error) {
	for i := range r.turn.History {
		if r.turn.History[i].Role == llm.Assistant {
			return nil, nil
		}
	}
	text, file, problem := readSeed(r.a.files, r.a.cfg.SeedLanguage)
	if problem != "" {
		r.problem(file, 0, problem)
	}
	if text == "" {
		return nil, nil
	}
	text = strings.ReplaceAll(text, "{agent_name}", r.a.cfg.Name)
	return newContent(content{source: "seed", lines: []string{text}}), nil
}

// readSeed reads the seed of a language; English stands in for one that has none.
func readSeed(f *files, language string) (text, file, problem string) {
	file = seedFile(language)
	t := f.read(file)
	problem = t.problem
	if !t.exists && language != "en" {
		problem = "is missing; SEED_en.txt is used"
		t = f.read(seedFile("en"))
	}
	return strings.TrimSpace(t.text), file, problem
}

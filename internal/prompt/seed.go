package prompt

import (
	"context"
	"strings"

	"reverie/internal/llm"
)

// gatherSeed gathers the program's note for the start of a conversation.
func gatherSeed(_ context.Context, q *question) (*content, error) {
	for i := range q.turn.History {
		if q.turn.History[i].Role == llm.Assistant {
			return nil, nil
		}
	}
	text, file, problem := readSeed(q.a.files, q.a.cfg.SeedLanguage)
	if problem != "" {
		q.problem(file, 0, problem)
	}
	if text == "" {
		return nil, nil
	}
	text = strings.ReplaceAll(text, "{agent_name}", q.a.cfg.Name)
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

package prompt

import (
	"context"
	"strings"

	"reverie/internal/llm"
)

// gatherSeed gathers the program's note for the start of a conversation.
func gatherSeed(_ context.Context, q *question) (*content, error) {
	if !q.turn.opens() {
		return nil, nil
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

// opens reports whether the turn answers the first message of a person in a conversation
// that goes on from nothing. What the program says, and what answers that, does not count.
func (t *Turn) opens() bool {
	byPerson := len(t.History) == 0 // a preview
	for i := range t.History {
		switch m := &t.History[i]; {
		case m.Role == llm.User:
			byPerson = m.Sender != ""
		case m.Role == llm.Assistant && byPerson:
			return false
		}
	}
	return byPerson && t.Summary == ""
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

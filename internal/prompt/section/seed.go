package section

import (
	"context"
	"strings"
)

// gatherSeed gathers the program's note for the start of a conversation.
func gatherSeed(_ context.Context, q *Question) (*Content, error) {
	if !q.turn.opens() {
		return nil, nil
	}
	text, file, problem := readSeed(q.files, q.sources.SeedLanguage)
	if problem != "" {
		q.Problem(file, 0, problem)
	}
	return q.said("seed", q.fill(text))
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

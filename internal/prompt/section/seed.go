package section

import "context"

// gatherSeed gathers the program's note for the start of a conversation. It is English if the
// language has none.
func gatherSeed(_ context.Context, q *Question) (*Content, error) {
	if !q.turn.opensConversation() {
		return nil, nil
	}
	file := func(language string) string { return "prompts/SEED_" + language + ".txt" }
	name := file(q.sources.SeedLanguage)
	t := q.files.read(name)
	if !t.exists && q.sources.SeedLanguage != "en" {
		t = q.files.read(file("en"))
		t.problem = "is missing; SEED_en.txt is used"
	}
	if t.problem != "" {
		q.Problem(name, 0, t.problem)
	}
	return q.textContent("seed", q.fill(t.text))
}

package prompt

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"reverie/internal/history"
	"reverie/internal/store"
)

// Compacted says that a summary takes the place of the older part of a room's
// conversation. It is called before the messages go, with past as it is until then:
// what happened in it stays counted, and the model is told once to be careful with
// what it only has in the summary's words.
func (a *Assembler) Compacted(ctx context.Context, room history.Talk, past []history.Message) error {
	rm := a.room(room)
	rm.mu.Lock()
	defer rm.mu.Unlock()
	if err := rm.load(ctx, a.cfg.DB, room); err != nil {
		return err
	}
	next := rm.course.clone()
	next.count(past)
	next.Compactions++
	if err := saveCounters(ctx, a.cfg.DB, room, next); err != nil {
		return err
	}
	rm.course = next
	return nil
}

// Move gives the room to what was counted in the room from, unless it has counters
// of its own. It can be repeated.
func (a *Assembler) Move(ctx context.Context, from, to history.Talk) error {
	rm := a.room(to)
	rm.mu.Lock()
	defer rm.mu.Unlock()
	_, err := a.cfg.DB.ExecContext(ctx, `INSERT INTO steering (room, state) SELECT ?, state FROM steering WHERE room = ?
		ON CONFLICT (room) DO NOTHING`, to, from)
	if err != nil {
		return fmt.Errorf("prompt: move room: %w", err)
	}
	rm.loaded = false
	return nil
}

// loadCounters reads what was counted in a room; nil if that is nothing.
func loadCounters(ctx context.Context, db *sql.DB, room history.Talk) (*counters, error) {
	var state string
	err := db.QueryRowContext(ctx, `SELECT state FROM steering WHERE room = ?`, room).Scan(&state)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("prompt: read counters: %w", err)
	}
	var c counters
	if json.Unmarshal([]byte(state), &c) != nil {
		return nil, nil // the conversation is counted anew
	}
	return &c, nil
}

// saveCounters writes what was counted in a room.
func saveCounters(ctx context.Context, db store.DBTX, room history.Talk, c *counters) error {
	state, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("prompt: save counters: %w", err)
	}
	if _, err := db.ExecContext(ctx, `INSERT OR REPLACE INTO steering (room, state) VALUES (?, ?)`, room, string(state)); err != nil {
		return fmt.Errorf("prompt: save counters: %w", err)
	}
	return nil
}

func steeringFile(language string) string {
	return fmt.Sprintf("prompts/steering/%s.txt", language)
}

// maxWords is how many characters of a rule's words the model reads.
const maxWords = 300

// steeringWords returns what the rules say to a model of this tier when these tools are there, by rule; none
// for a rule that says nothing.
func (q *question) steeringWords() map[string]string {
	t, file := readSteering(q.a.files, q.a.cfg.SeedLanguage)
	sections, problems := steeringOf(t, file, q.a.cfg.KnownTools)
	for _, p := range problems {
		q.problem(p.File, p.Line, p.Text)
	}
	words := map[string]string{}
	for _, s := range sections {
		if s.on(q.turn.Tools) && s.inTier(q.turn.tier()) {
			words[s.name] = oneLine(strings.ReplaceAll(s.text, "{agent_name}", q.a.cfg.Name), maxWords)
		}
	}
	return words
}

// readSteering reads the rules' words in a language; English stands in for one that
// has none.
func readSteering(f *files, language string) (t *text, file string) {
	file = steeringFile(language)
	t = f.read(file)
	if !t.exists {
		file = steeringFile("en")
		t = f.read(file)
	}
	return t, file
}

// steeringOf parses the rules' words, with all that is wrong with their file.
func steeringOf(t *text, file string, known []string) ([]baseSection, []Problem) {
	var sections []baseSection
	all, problems := parseBase(t.text, known)
	for _, s := range all {
		switch {
		case s.line == 0: // what stands above the first one is for the reader
		case rank(s.name) < 0:
			problems = append(problems, Problem{Line: s.line, Text: fmt.Sprintf("there is no steering rule %q; its text is never used", s.name)})
		default:
			sections = append(sections, s)
		}
	}
	if t.problem != "" && !strings.HasPrefix(t.problem, missing) { // what is built in is as good
		problems = append([]Problem{{Text: t.problem}}, problems...)
	}
	for i := range problems {
		problems[i].File = file
	}
	return sections, problems
}

// checkSteering returns what is wrong with the rules' words.
func checkSteering(f *files, language string, tools []string) []Problem {
	t, file := readSteering(f, language)
	_, problems := steeringOf(t, file, tools)
	return problems
}

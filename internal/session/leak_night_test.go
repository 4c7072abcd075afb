package session

// The nights of a random history: conversations are read and the memory is put in order, with a
// model that mixes all that it is shown. See TestNothingLeaks.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	reverie "reverie"
	"reverie/internal/dream"
	"reverie/internal/memory"
	"reverie/internal/trust"
)

// openNightly makes the one who dreams.
func (h *leakHistory) openNightly() {
	c := h.w.cfg
	harvester, err := dream.OpenHarvester(dream.HarvestConfig{
		DB: c.DB, Store: c.Memory, Level: func(sender string) trust.Integrity { return h.w.level(Inbound{Sender: sender}) },
		Ask:    func(_ context.Context, _, prompt string) (string, error) { return h.harvests(prompt), nil },
		Window: func(string) (int, int) { return 8_192, 512 }, Prompts: os.DirFS(h.w.dir),
	})
	if err != nil {
		h.t.Fatal(err)
	}
	h.nightly, err = dream.Open(dream.Config{
		DB: c.DB, Store: c.Memory, Tasks: c.Tasks, Skills: c.Skills, Dir: h.w.dir, Prompts: os.DirFS(h.w.dir), Default: reverie.Data,
		Trusted: c.Allowed, Harvester: harvester, Now: func() time.Time { return time.Now().AddDate(0, 0, 100) },
		Ask: func(_ context.Context, _, prompt string) (string, error) { return h.tidies(prompt), nil },
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// nights is a dream, of which the owner is told; sometimes it is taken back. Before it, there is
// something to do for it.
func (h *leakHistory) nights() {
	if r, who := h.speaker(); r != nil {
		c := h.fresh(r)
		h.calls = []string{`append_memory {"entry":"Anna lives in ` + c + `."}`, `append_memory {"entry":"Anna resides in ` + c + `"}`,
			fmt.Sprintf(`add_skill {"skill_name":"s%d","summary":"when %s%s","documentation":"Say %s."}`,
				h.random.IntN(4), c, strings.Repeat(" or the weather is fine", 8), c)}
		h.says(r, who, "please, for the night, "+c, nil)
	}
	h.count("nights", 1)
	h.note("a night")
	r, err := h.nightly.Dream(h.t.Context(), dream.Options{Now: true})
	if err != nil {
		h.t.Fatalf("%v after\n%s", err, strings.Join(h.log, "\n"))
	}
	own := trust.Readers("private:" + owner)
	told := r.Digest(h.w.cfg.Messages.For(h.t.Context(), "!r1"), func(s memory.Scope) bool { return s == memory.Shared || s == own })
	h.mu.Lock()
	h.check("said", "told of a night", told, own)
	if r.Harvested != nil {
		h.counts["harvested"] += r.Harvested.Added
		h.counts["harvested, refused"] += r.Harvested.Refused["words"]
	}
	h.counts["merged"] += len(r.Merged) + len(r.Grouped)
	h.counts["tasks tidied"] += len(r.Tasks)
	h.mu.Unlock()
	h.checkFiles()
	if h.chance(4) {
		h.note("the night is taken back")
		switch _, err := h.nightly.Undo(h.t.Context(), r.Run); {
		case err == nil:
			h.count("night undone", 1)
		case !errors.Is(err, dream.ErrNothing):
			h.t.Fatal(err)
		}
	}
}

// together notes canaries that nobody may read all of; the lock is held.
func (h *leakHistory) together(where, text string) {
	var common map[trust.Readers]bool
	for _, c := range canary.FindAllString(text, -1) {
		of := h.readers[c]
		if of["shared"] {
			continue
		}
		if common == nil {
			common = of
		}
		rest := map[trust.Readers]bool{}
		for r := range common {
			if of[r] {
				rest[r] = true
			}
		}
		if common = rest; len(rest) == 0 {
			h.found = append(h.found, fmt.Sprintf("%s: %s beside what others read\n    %s", where, c, text[max(0, len(text)-3_000):]))
			return
		}
	}
}

var harvestLine = regexp.MustCompile(`(?m)^\[(\d+)\] \S+ \S+ \S+: ((?:.*\n?)(?:    .*\n?)*)`)

// harvests answers a request for what was said: each message says all that is in the request.
func (h *leakHistory) harvests(prompt string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts["harvest requests"]++
	h.together("a request for what was said", prompt)
	all := strings.Join(canary.FindAllString(prompt, -1), " and ")
	var facts []string
	for _, line := range harvestLine.FindAllStringSubmatch(prompt, -1) {
		for _, quote := range []string{"My word is", "by the way", "Anna", "The word is", "I keep", "I mean", "Yes"} {
			if i := strings.Index(line[2], quote); i >= 0 {
				quote, _, _ = strings.Cut(line[2][i:], " and what")
				quote, _, _ = strings.Cut(quote, "\n")
				quote = strings.TrimRight(quote, ". ")
				facts = append(facts, fmt.Sprintf(`{"message":%s,"quote":%q,"fact":%q,"subject":"I","kind":"fact"}`, line[1], quote, quote),
					fmt.Sprintf(`{"message":%s,"quote":%q,"fact":%q,"subject":"I","kind":"fact"}`, line[1], quote, quote+" and "+all))
			}
		}
	}
	return "[" + strings.Join(facts, ",") + "]"
}

var (
	pairLine = regexp.MustCompile(`(?m)^Pair (\d+)\n((?:.*\n?){2})`)
	taskLine = regexp.MustCompile(`(?m)^(task_\w+) \(`)
	saidLine = regexp.MustCompile(`(?m)^\[(\d+)\] \S+ \S+ \S+ <data \S+>(.*)$`)
)

// tidies answers what a dream asks about memories and tasks.
func (h *leakHistory) tidies(prompt string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := strings.Join(canary.FindAllString(prompt, -1), " and ")
	var items []string
	item := func(form string, args ...any) { items = append(items, fmt.Sprintf(form, args...)) }
	switch {
	case strings.Contains(prompt, "memory of an assistant"), strings.Contains(prompt, "memory file of an assistant"):
		for i, pair := range pairLine.FindAllStringSubmatch(prompt, -1) {
			h.counts["pairs"]++
			h.together("a pair of memories", pair[2])
			item(`{"pair":%s,"verdict":%q}`, pair[1], []string{"duplicate", "keep_second", "unsure", "merge", "keep_first"}[(i+h.number)%5])
		}
	case strings.Contains(prompt, "task list of an assistant"):
		h.counts["task requests"]++
		h.together("a request about tasks", prompt)
		ids := taskLine.FindAllStringSubmatch(prompt, -1)
		said := saidLine.FindAllStringSubmatch(prompt, -1)
		for i, id := range ids {
			for _, s := range said {
				if word := canary.FindString(s[2]); word != "" && strings.Contains(prompt[:strings.Index(prompt, "Said since")], word) {
					item(`{"task":%q,"action":"complete","message":%s,"quote":%q}`, id[1], s[1], word)
				}
			}
			item(`{"task":%q,"action":"rephrase","content":"see %s"}`, id[1], all)
			if into := ids[(i+1)%len(ids)][1]; into != id[1] {
				item(`{"task":%q,"action":"merge","into":%q}`, id[1], into)
			}
		}
	default:
		h.found = append(h.found, "a dream asks something unknown: "+prompt)
	}
	answer := "[" + strings.Join(items, ",") + "]"
	if !json.Valid([]byte(answer)) {
		h.found = append(h.found, "not JSON: "+answer)
	}
	return answer
}

// countCompactions notes how many compactions nobody asked for.
func (h *leakHistory) countCompactions() {
	h.count("compacted when full", value[int](h.t, h.w, `SELECT count(*) FROM compaction WHERE reason IN (?, ?)`, becauseFull, becauseOver))
}

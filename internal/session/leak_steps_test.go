package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	reverie "reverie"
	"reverie/internal/approval"
	"reverie/internal/chat"
	"reverie/internal/compaction"
	"reverie/internal/dream"
	"reverie/internal/harvest"
	"reverie/internal/memory"
	"reverie/internal/skill"
	"reverie/internal/test/expect"
	"reverie/internal/trust"
)

func (h *leakHistory) talks() {
	if r, who := h.speaker(); r != nil {
		text := "by the way, " + h.fresh(r) + " and what do you know of the canary?"
		switch h.random.IntN(6) {
		case 0:
			text = "Yes. My word is " + h.fresh(r) + "."
		case 1, 2:
			text = h.ofAnna(h.fresh(r))
		}
		h.says(r, who, text, func(in *chat.Message) chat.Inbound {
			switch h.random.IntN(5) {
			case 0:
				in.Files = []chat.File{{Name: h.fresh(r) + ".txt", Note: "too large", Type: "text/plain"}}
			case 1:
				in.Files = []chat.File{h.file(r)}
			}
			return nil
		})
	}
}

// floods makes a conversation overflow the window.
func (h *leakHistory) floods() {
	r, who := h.speaker()
	if r == nil {
		return
	}
	for range 4 {
		h.says(r, who, "hear "+h.fresh(r)+strings.Repeat("\nI go on about the weather, which is fine today.", 400), nil)
	}
}

// ofAnna says where Anna lives, each time another place.
func (h *leakHistory) ofAnna(c string) string {
	return one(h, []string{"Anna lives in ", "Anna has moved to ", "Anna resides in "}) + one(h, []string{"Oslo", "Rome"}) + one(h, []string{", says " + c + ".", ".", " now."})
}

// file is a file with a canary in it.
func (h *leakHistory) file(r *leakRoom) chat.File {
	k := expect.Must(h.w.cfg.Media.Save(strings.NewReader("The file says "+h.fresh(r)+".\n"), 1_000))(h.t)
	return chat.File{Name: "a.txt", Type: k.Type, Size: k.Size, Path: k.Path}
}

// wants makes the model call something for a person.
func (h *leakHistory) wants() {
	r, who := h.speaker()
	if r == nil {
		return
	}
	c := h.fresh(r)
	var calls []string
	switch h.random.IntN(15) {
	case 0, 1, 8:
		calls = []string{`append_memory {"entry":"` + h.ofAnna(c) + `"}`}
	case 2:
		calls = []string{`task {"action":"add","content":"see ` + one(h, []string{c, c, "the doctor", "doctor"}) + `","ai_prompt":"do ` + c +
			`","schedule_type":"daily","at":"09:00"}`}
	case 3:
		calls = []string{`goal {"action":"create","text":"reach ` + c + `"}`,
			`goal {"action":"decision","text":"we take ` + c + `","reason":"so"}`}
	case 4:
		calls = []string{fmt.Sprintf(`add_skill {"skill_name":"s%d","summary":"when %s%s","documentation":"Say %s."}`,
			h.random.IntN(4), c, strings.Repeat(" or the weather is fine", h.random.IntN(2)*8), c)}
	case 5, 6:
		if calls = h.looks(); h.hold == nil {
			calls = h.spawns(r, c)
		}
	case 7:
		calls = []string{"[GOAL] find " + c + "\n[CHECKPOINT] look at " + c + " - DONE\n[DECISION] use " + c + "\nWell."}
	case 10, 11:
		path := one(h, []string{"work/a.txt", "work/d/a.txt", "work/d/b.txt"})
		calls = []string{fmt.Sprintf(`write_file {"path":%q,"content":"We wrote %s.\n"}`, path, c), one(h, []string{`list_files {}`,
			`find_in_files {"text":"canary"}`, `edit_file {"path":"work/a.txt","old":"We","new":"They"}`, `send_file {"path":"work/d/a.txt"}`})}
	case 9:
		calls = []string{fmt.Sprintf(`send_file {"path":%q}`, h.w.cfg.Memory.File(r.readers()))} // before anything is read
		for _, path := range h.paths(2) {
			calls = append(calls, fmt.Sprintf(`%s {"path":%q}`, one(h, []string{"read_file", "send_file"}), path))
		}
	default:
		calls = h.looks()
	}
	h.calls = calls
	h.says(r, who, "please, about "+c, nil)
	if h.chance(2) {
		h.votesIn(r, who)
	}
}

// spawns starts a sub-session, which may be held.
func (h *leakHistory) spawns(r *leakRoom, c string) []string {
	h.number++
	word := fmt.Sprintf("job%dj", h.number)
	defer holding(&h.mu)()
	h.jobs[word] = r.readers()
	if h.chance(2) {
		h.hold = make(chan struct{})
		h.note("sub-sessions are held from here on")
	}
	return []string{fmt.Sprintf(`spawn_sub_session {"objective":"%s find %s","context":"it is %s","mode":%q}`,
		word, c, c, one(h, []string{"minimal", "full", "base_only"}))}
}

// looks makes the model search for everything that it can find.
func (h *leakHistory) looks() []string {
	all := []string{`search_memory {"query":"the word","k":10}`, `search_memory {"query":"by the way","k":10}`,
		`search_memory {"query":"I keep","k":10}`, `task {"action":"list","status":"all"}`, `goal {"action":"list"}`,
		`spawn_sub_session {"action":"status"}`, `find_in_files {"text":"canary"}`, `list_files {}`}
	for _, path := range h.paths(4) {
		all = append(all, fmt.Sprintf(`%s {"path":%q}`, one(h, []string{"read_file", "read_file", "send_file"}), path))
	}
	for _, q := range []struct{ table, call string }{{"sub_session", `spawn_sub_session {"action":"status","id":%q}`},

		{"task", `task {"action":"update","task_id":%q,"priority":2}`},
		{"task", `task {"action":"complete","task_id":%q,"reason":"it is over"}`}} {
		if id := h.row(q.table); id != "" && h.chance(2) {
			all = append(all, fmt.Sprintf(q.call, id))
		}
	}
	h.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:2]
}

// paths are some files and folders of the bot.
func (h *leakHistory) paths(most int) []string {
	all := []string{"work", "work/a.txt", "work/d/a.txt", "work/d/b.txt", "work/received/a.txt"}
	for _, folder := range []string{"skills", "memories", "media", "dreams", "work"} {
		_ = filepath.WalkDir(filepath.Join(h.w.dir, folder), func(path string, d fs.DirEntry, err error) error {
			if rel, e := filepath.Rel(h.w.dir, path); err == nil && e == nil {
				all = append(all, one(h, []string{"data/", ""})+filepath.ToSlash(rel))
			}
			return nil
		})
	}
	h.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(most, len(all))]
}

// row returns the id of a row of a table; "" = the table is empty.
func (h *leakHistory) row(table string) (id string) {
	q := `SELECT id FROM ` + table + ` ORDER BY rowid LIMIT 1 OFFSET ? % (SELECT max(1, count(*)) FROM ` + table + `)`
	_ = h.w.cfg.DB.QueryRow(q, h.random.IntN(60)).Scan(&id)
	return id
}

func (h *leakHistory) commands() {
	r, who := h.speaker()
	if r == nil {
		return
	}
	text := one(h, []string{"!tasks", "!goal", "!goal history", "!memory", "!memory canary", "!memory timeline canary", "!skills",
		"!summary", "!status", "!helpers", "!prompt", "!whoami", "!remember", "!remember", "!goal new", "!goal done",
		"!compact", "!compact", "!new", "!retry", "!retry", "!undo", "!memory keep", "!forget keep", "!stop", "!mode", "!profile", "!profile goals", "!profile goals"})
	if text == "!remember" || text == "!goal new" || text == "!profile goals" {
		text += " I keep " + h.fresh(r)
	}
	h.says(r, who, text, nil)
}

func (h *leakHistory) enters() {
	r := one(h, h.rooms)
	who := one(h, []string{owner, friend, bob, stranger})
	h.mu.Lock()
	r.come(who)
	h.mu.Unlock()
	h.note("%s enters %s: %v", who, r.id, r.members)
}

func (h *leakHistory) leaves() {
	r := one(h, h.rooms)
	if len(r.members) < 2 {
		return
	}
	i := h.random.IntN(len(r.members))
	h.note("%s leaves %s", r.members[i], r.id)
	h.mu.Lock()
	r.members = slices.Delete(slices.Clone(r.members), i, i+1)
	h.mu.Unlock()
}

// changes edits or redacts a message, or has it answered again.
func (h *leakHistory) changes() {
	r, who := h.speaker()
	if r == nil || len(r.said) == 0 {
		return
	}
	m := one(h, r.said)
	change := one(h, []string{editing, editing, redacting, retrying, retrying})
	target, text := cmp.Or(m.in.ID, m.outgoing), ""
	if change != retrying && m.in.Sender != who { // only one's own
		return
	}
	if change == editing {
		c := h.fresh(r)
		h.grant(c, trust.Readers("private:"+who)) // a message that was said in private stays its sender's own
		text = "I mean " + c
		if h.chance(4) {
			text = "!remember " + text
		}
	}
	if change == redacting {
		h.w.room.mu.Lock()
		if h.w.room.gone == nil {
			h.w.room.gone = map[string]bool{}
		}
		h.w.room.gone[target] = true
		h.w.room.mu.Unlock()
		r.said = slices.DeleteFunc(slices.Clone(r.said), func(o leakMessage) bool { return o.in.ID == target })
	}
	h.says(r, who, text, func(in *chat.Message) chat.Inbound {
		in.Branch = m.in.Branch
		return changeOf(change, in.Head, target, text)
	})
}

// votes answers a question of the bot.
func (h *leakHistory) votes() {
	r, who := h.speaker()
	if r != nil {
		h.votesIn(r, who)
	}
}

func (h *leakHistory) votesIn(r *leakRoom, who string) {
	for _, m := range slices.Backward(r.said) {
		if approval.CodeOf(m.outgoing) == "" {
			continue
		}
		h.says(r, who, one(h, []string{approval.Once, approval.Once, approval.No}), func(in *chat.Message) chat.Inbound {
			in.Branch = m.in.Branch
			return changeOf(voting, in.Head, m.outgoing, in.Text)
		})
		waitUntil(h.t, "what was approved is done", func() (done bool) {
			return h.w.cfg.DB.QueryRow(`SELECT NOT EXISTS (SELECT 1 FROM approval WHERE state = 'approved')`).Scan(&done) == nil && done
		})
		h.count("votes", 1)
		h.settles()
		return
	}
}

// replies quotes any earlier message of the room, whoever its readers were.
func (h *leakHistory) replies() {
	r, who := h.speaker()
	if r == nil || len(r.said) == 0 {
		return
	}
	m := one(h, r.said)
	h.says(r, who, "what is that? "+h.fresh(r), func(in *chat.Message) chat.Inbound {
		in.ReplyTo = cmp.Or(m.in.ID, "$out-"+m.outgoing)
		in.Quotes = append(in.Quotes, m.quote(chat.QuoteReply))
		return nil
	})
}

// hears sends a message that is not addressed to the bot, in a group.
func (h *leakHistory) hears() {
	r := one(h, h.rooms)
	if len(r.members) < 2 {
		return
	}
	h.number++
	q := chat.Quote{ID: fmt.Sprintf("$h%d", h.number), Sender: one(h, r.members), Text: "I think " + h.fresh(r), At: time.Now(), Why: chat.QuoteContext}
	r.heard = append(r.heard, q)
	h.note("%s says to the others in %s: %s", q.Sender, r.id, q.Text)
}

// upgrades replaces a room; some of its people come along.
func (h *leakHistory) upgrades() {
	old := one(h, h.rooms)
	h.release()
	h.number++
	r := &leakRoom{id: fmt.Sprintf("!r%d", 10+h.number)}
	if h.chance(2) {
		r.direct = old.direct
	}
	for _, user := range old.members {
		if len(r.members) == 0 || h.chance(2) {
			r.come(user)
		}
	}
	h.mu.Lock()
	h.rooms = append(h.rooms, r)
	for _, of := range h.readers {
		if of[trust.Readers("room:"+old.id)] {
			of[trust.Readers("room:"+r.id)], of[r.readers()] = true, true // who came along was in the old room
		}
	}
	h.mu.Unlock()
	h.note("%s is replaced by %s (%s), with %v", old.id, r.id, r.readers(), r.members)
	expect.OK(h.t, h.w.RoomReplaced(h.t.Context(), old.id, r.id))
}

func (h *leakHistory) restarts() {
	h.release()
	h.note("the bot is restarted")
	h.w.restart(h.t)
}

// rests waits until the messages are indexed.
func (h *leakHistory) rests() { time.Sleep(3 * time.Millisecond) }

// release resumes the held sub-sessions, and waits for them.
func (h *leakHistory) release() {
	h.mu.Lock()
	held := h.hold
	h.hold = nil
	h.mu.Unlock()
	if held == nil {
		return
	}
	h.checkRequests()
	rooms := h.w.column(h.t, `SELECT DISTINCT room FROM sub_session WHERE reported_at = 0`)
	h.note("the sub-sessions go on: %v", rooms)
	if len(rooms) > 1 { // a message was answered again: nobody can tell for which room a request is
		close(held)
		h.settles()
		h.seen = len(h.w.script.asked())
		return
	}
	h.mu.Lock()
	for _, r := range rooms {
		h.place = h.room(r).readers()
	}
	h.mu.Unlock()
	close(held)
	h.settles()
}

// fallsDue runs a task as if it were due.
func (h *leakHistory) fallsDue() {
	id := h.row("task")
	if id == "" {
		return
	}
	it, err := h.w.cfg.Tasks.Find(h.t.Context(), id)
	if err != nil && strings.Contains(err.Error(), "no such task") { // deleted
		return
	}
	if err != nil {
		h.t.Fatal(err)
	}
	room := expect.Must(h.w.TaskRoom(h.t.Context(), it))(h.t)
	h.number++
	run := fmt.Sprintf("run%d", h.number)
	h.note("the task %s of %s (%s) is due, in %q", id, it.Room, it.Label.Readers, room)
	if room == "" {
		return
	}
	r := h.room(room)
	h.mu.Lock()
	h.place = r.readers()
	h.mu.Unlock()
	in := chat.Event{Head: chat.Head{ID: run, Room: room, Sender: cmp.Or(it.Label.Readers.Person(), it.User), At: time.Now()}, Label: it.Label, Text: "Task: " + it.Content + ": " + it.Prompt, Kind: chat.ScheduledTask, Verbatim: h.chance(3)}
	expect.OK(h.t, h.w.Deliver(h.t.Context(), in))
	select {
	case got := <-h.done:
		_, answer, _ := strings.Cut(got, " ")
		const ran = `INSERT INTO job_run (task, due, state, claimed, ended, result) VALUES (?, ?, 'done', 1, 1, ?)`
		h.w.exec(h.t, ran, id, h.number, answer)
	case <-time.After(testTimeout):
		h.t.Fatalf("%s is not done after\n%s", run, strings.Join(h.log, "\n"))
	}
	h.settles()
}

// shares tries to share a memory or a skill with everybody.
func (h *leakHistory) shares() {
	r, who := h.speaker()
	if r == nil {
		return
	}
	shared := func(text string) {
		for _, c := range canary.FindAllString(text, -1) {
			h.grant(c, "shared")
		}
	}
	if who == owner && h.chance(2) {
		name := fmt.Sprintf("s%d", h.random.IntN(4))
		own := filepath.Join(h.w.dir, "skills", filepath.FromSlash(skill.Folder(r.readers())), name+".md")
		if text, err := os.ReadFile(own); err == nil {
			shared(string(text))
		}
		h.says(r, who, "!skills share "+name, nil)
		return
	}
	all := expect.Must(h.w.cfg.Memory.List(h.t.Context(), memory.Access{All: true}, memory.Filter{}))(h.t)
	if len(all) == 0 {
		return
	}
	e := one(h, all)
	if e.Scope == r.readers() && r.with() == who {
		shared(e.Text)
	}
	h.says(r, who, "!memory share "+e.ID, nil)
}

// openNightly opens the dreamer.
func (h *leakHistory) openNightly() {
	c := h.w.cfg
	harvester := harvest.Open(harvest.Config{
		LastMessageAt: func(context.Context, string) (time.Time, error) { return time.Time{}, nil },
		WaitIdle:      func(ctx context.Context) (context.Context, func(), error) { return ctx, func() {}, ctx.Err() },
		Messages:      20, CallsPerDay: 500, Idle: 15 * time.Minute, Profiles: h.w.cfg.Profiles, Log: slog.New(slog.DiscardHandler),
		Now: time.Now,
		DB:  c.DB, Store: c.Memory, Level: func(sender string) trust.Integrity { return h.w.senderIntegrity(chat.Head{Sender: sender}) },
		Ask:    func(_ context.Context, _, prompt string) (string, error) { return h.harvests(prompt), nil },
		Window: func(string) (int, int) { return 8_192, 512 }, Prompts: os.DirFS(h.w.dir),
	})
	h.nightly = dream.Open(dream.Config{
		DB: c.DB, Store: c.Memory, Tasks: c.Tasks, Dir: h.w.dir, Prompts: os.DirFS(h.w.dir), Default: reverie.Data,
		Trusted: c.Rooms.Allowed, Harvester: harvester, Now: func() time.Time { return time.Now().AddDate(0, 0, 100) },
		Ask: func(_ context.Context, _, prompt string) (string, error) { return h.tidies(prompt), nil },
	})
}

// nights runs a dream with work to do, reports it to the owner, and sometimes undoes it.
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
	if h.chance(4) || len(r.Merged)+len(r.Grouped) > 0 && h.chance(2) { // most nights leave nothing to take back
		h.note("the night is taken back")
		switch _, err := h.nightly.Undo(h.t.Context(), r.Run); {
		case err == nil:
			h.count("night undone", 1)
		case !errors.Is(err, dream.ErrNothing):
			h.t.Fatal(err)
		}
	}
}

// together records canaries of a text that no person may read together; the lock is held.
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

// harvests answers a harvest request: each fact holds everything in the request.
func (h *leakHistory) harvests(prompt string) string {
	defer holding(&h.mu)()
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

// tidies answers a dream's requests about memories and tasks.
func (h *leakHistory) tidies(prompt string) string {
	defer holding(&h.mu)()
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

// countCompactions counts automatic compactions.
func (h *leakHistory) countCompactions() {
	h.count("compacted when full", value[int](h.t, h.w, `SELECT count(*) FROM compaction WHERE reason IN (?, ?)`, compaction.Full, compaction.TooLarge))
}

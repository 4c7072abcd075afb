package session

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	reverie "reverie"
	"reverie/internal/agent"
	"reverie/internal/attachment"
	"reverie/internal/chat"
	"reverie/internal/command"
	"reverie/internal/goal"
	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/llm"
	"reverie/internal/memory"
	"reverie/internal/questions"
	"reverie/internal/settings"
	"reverie/internal/subsession"
	"reverie/internal/task"
	"reverie/internal/test/expect"
)

var (
	placePattern = regexp.MustCompile(`\{[a-z_]+\}`)
	fenced       = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	anyNames     = regexp.MustCompile(`\S*[@/#_<>\[\]|]\S*`)
	inRow        = regexp.MustCompile(`[A-Za-z']{2,}( [A-Za-z']{2,}){2,}`)
	// onlyEnglish are small words that no other language here has.
	onlyEnglish = regexp.MustCompile(`(?i)\b(the|with|you|your|this|that|which|have|were|been|nothing|could|would|cannot|is|its|of|from|by|for|because|what|when|and|left|out|until|ago|shown)\b`)
)

// pieces are the parts of English texts between placeholders, of three words or more, with a key each.
var pieces = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	for key, text := range i18n.Source() {
		for _, piece := range placePattern.Split(text, -1) {
			if piece = strings.TrimSpace(fenced.ReplaceAllString(piece, "")); len(strings.Fields(piece)) > 2 {
				all[piece] = key
			}
		}
	}
	return all
})

// escaped finds English in a text of another language: parts of en.txt, small English words, and for other alphabets three Latin words.
func escaped(language, text string) (found []string) {
	plain := anyNames.ReplaceAllString(fenced.ReplaceAllString(text, " "), " ")
	for piece, key := range pieces() {
		if strings.Contains(plain, piece) {
			found = append(found, key+": "+piece)
		}
	}
	found = append(found, onlyEnglish.FindAllString(plain, -1)...)
	if language == "ja" || language == "zh" {
		found = append(found, inRow.FindAllString(plain, -1)...)
	}
	return found
}

// TestNoEnglishInOtherLanguages: every text that no model writes is in the room's language.
// Holds M69.
func TestNoEnglishInOtherLanguages(t *testing.T) {
	if got := escaped("ja", "作業 No open tasks in this room. です"); len(got) < 2 {
		t.Fatalf("found %q", got)
	}
	for _, language := range slices.DeleteFunc(settings.Languages(), func(l string) bool { return l == "en" }) {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			for key, text := range builtinTexts(t, language) {
				english := escaped(language, placePattern.ReplaceAllString(text, "…"))
				expect.False(t, len(english) > 0, "%s: in English: %q\n%s", key, english, text)
			}
			everythingSaid(t, language)
		})
	}
}

// builtinTexts returns the embedded texts of a language.
func builtinTexts(t *testing.T, language string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for line := range strings.Lines(string(expect.Must(fs.ReadFile(reverie.Data, "messages/"+language+".txt"))(t))) {
		if key, text, ok := i18n.ParseLine(strings.TrimSpace(line)); ok {
			all[key] = text
		}
	}
	return all
}

func everythingSaid(t *testing.T, language string) {
	w := newWorld(t, t.TempDir())
	w.cfg.Messages, w.who.self = settings.OpenMessages(w.dir, w.cfg.DB, "en"), "@bot:example.org"
	expect.OK(t, (settings.Store{DB: w.cfg.DB}).Put(t.Context(), "!dm", settings.Language, language, owner, time.Now()))
	said, n := map[string]bool{}, 0
	say := func(texts ...string) {
		t.Helper()
		for _, text := range texts {
			n++
			got := w.say(t, fmt.Sprintf("$%d", n), text)
			expect.False(t, strings.HasPrefix(text, "!") && text != "!retry" && (!got.Notice || strings.TrimSpace(got.Text) == ""), "%s: %+v", text, got)
		}
		for id, m := range w.room.final {
			if !said[id+m.Text] && (m.Notice || id != "re:"+strings.TrimPrefix(id, "re:")) {
				said[id+m.Text] = true
				english := escaped(language, m.Text)
				expect.False(t, len(english) > 0, "in English: %q\n%s", english, m.Text)
			}
		}
	}
	exec := func(query string, args ...any) {
		t.Helper()
		w.exec(t, query, args...)
	}
	for _, name := range command.Names() {
		say("!" + name)
	}
	say("!goal history", "!goal new", "!goal zz", "!goal pause", "!goal resume", "!compact", "!new zz", "!forget zz", "!remember "+strings.Repeat("z", 3000), "!dream status",
		"!think low", "!think zz", "!think default", "!mode zz", "!mode assistant", "!model zz", "!model local", "!config threads", "!config zz", "!config threads zz", "!config threads off",
		"!zz", "!tasx")
	say("Tee", "!status", "!prompt", "!summary")
	for i := range 8 {
		say(strings.Repeat(fmt.Sprintf("Tee%d ", i), 300))
	}
	say("!compact", "!compact", "!summary", "!status")
	talksOfGoals(t, w, say)
	talksOfMemory(t, w, say)
	talksOfTasks(t, w, say, exec)
	talksOfFiles(t, w, say)
	w.cfg.Dreams = &command.Dreams{Wake: func() {}, Status: func(_ context.Context, say i18n.Say) (string, error) {
		return say("dream.failed", "why", say("why.dream_cut_off")), nil
	}, Undo: func(_ context.Context, say i18n.Say) (string, error) {
		return i18n.JoinWithCommas(say, []i18n.Text{i18n.New("why.dream_undone", "count", 1), i18n.New("why.task_stays", "id", "t")}), nil
	}}
	w.deliver(t, chat.Message{Head: chat.Head{ID: "$dream", Room: "!dm", Sender: "@zz:example.org", Private: true, At: time.Now()}, Text: "!dream"})
	say("!dream", "!dream status", "!dream undo", "!dream zz")
	w.withSubSessions(t)
	say("!helpers")
	needed := func(why i18n.Text) i18n.Text { return i18n.New("why.needed_failed", "id", "sub_1", "why", why) }
	for i, reason := range []i18n.Text{i18n.New("why.helper_empty"), i18n.New("why.helper_time", "time", i18n.Span(5*time.Minute), "count", 4), needed(i18n.New("why.helper_cancelled")),
		i18n.New("why.helper_stop"), i18n.New("why.needed_cancelled", "id", "sub_1", "why", i18n.New("why.helper_cancelled")), (&llm.Error{Kind: llm.Unreachable, Model: "my model"}).ForPeople(),
		needed((&llm.Error{Kind: llm.Garbled, Model: "m"}).ForPeople()), i18n.New("why.room_left"), subsession.Redacted, "session: the disk is on fire"} {
		exec(`INSERT INTO sub_session (id, depth, room, private, objective, mode, tools, timeout, status, reason, rounds, created, ended, reported_at)
			VALUES (?, 1, '!dm', 1, 'Tee', 'minimal', '[]', 1000, ?, ?, 3, 1, 2, 3)`, fmt.Sprint("sub_", i), []string{subsession.Failed, subsession.Cancelled, subsession.Completed, subsession.Waiting, subsession.Pending}[i%5], reason)
	}
	say("!helpers", "!stop", "!mode planning")
	exec(`UPDATE message SET at = at - 86400000`)
	w.say(t, "$plan", "let's plan")
	say("!mode", "!config")
	expect.False(t, len(said) < 90, "only %d sentences were looked at", len(said))
}

func talksOfGoals(t *testing.T, w *world, say func(...string)) {
	t.Helper()
	say("!goal new Tee", "!goal pause", "!goal", "!goal resume", "!goal pause zz")
	markers, _ := goal.ParseMarkers("[CHECKPOINT] Kanne - IN-PROGRESS\n[CHECKPOINT] Tasse - COMPLETED\n[DECISION] Assam\n[ARTIFACT] created: tee.md\n[NEXT] Kochen")
	if len(markers) < 4 {
		t.Fatalf("%d markers", len(markers))
	}
	goals := w.Manager.goals
	expect.Must(goals.ApplyMarkers(t.Context(), inDM, "!dm", 1<<40, markers))(t)
	expect.Must(goals.Decide(t.Context(), inDM, "", goal.Decision{Description: "Darjeeling", Rationale: "Berg", Locked: true}))(t)
	say("!goal", "!goal history", "!goal done", "!goal new Kaffee", "!goal drop", "!goal history", "!goal new "+strings.Repeat("z", 5000))
	m := chat.Outgoing{Text: newSession(w.Manager, history.Timeline("!dm")).visibleAnswer(t.Context(), "[GOAL] Tee\n[DECISION] Assam\n[CHECKPOINT] Kanne - COMPLETED\n[ARTIFACT] created: tee.md\n[NEXT] Kochen\nzz"+agent.CutOff)}
	w.room.final["brief"] = m
	say("!goal")
}

func talksOfMemory(t *testing.T, w *world, say func(...string)) {
	t.Helper()
	say("!remember Tee", "!remember Tee", "!remember Teekanne", "!memory", "!forget Tee", "!undo", "!undo", "!remember Tasse")
	id := w.known(t, memory.Private(owner), "Zucker").ID
	w.deliver(t, chat.Message{Head: chat.Head{ID: "$group", Room: "!dm", Sender: owner, At: time.Now()}, Text: "!memory share " + id})
	say("!memory share "+id, "!memory private "+id, "!memory share mem_zz", "!forget "+id, "!undo", "!memory zz")
	for i := range 50 + 2 {
		w.known(t, memory.Private(owner), fmt.Sprint("Tee", i))
	}
	say("!memory")
	q := questions.Question{Run: "dream_1", Scope: memory.Private(owner), Why: i18n.New("why.pinned")}
	for i, e := range []*memory.Entry{&q.First, &q.Second} {
		*e = w.known(t, q.Scope, fmt.Sprint("Tee", i))
	}
	say("!memory keep", "!memory keep 1a")
	expect.Must(questions.Store{DB: w.cfg.DB}.Add(t.Context(), q))(t)
	say("!memory keep", "!memory keep 1b", "!memory keep 1a", "!undo", "!memory keep 1 both", "!memory keep")
}

func talksOfTasks(t *testing.T, w *world, say func(...string), exec func(string, ...any)) {
	t.Helper()
	id := ""
	for i, schedule := range []*task.Schedule{nil, {Type: "daily", At: "09:00"}, {Type: "weekly", DayOfWeek: "tue", At: "10:30"}, {Type: "monthly", DayOfMonth: 3, At: "07:00"},
		{Type: "interval", IntervalSeconds: 7200, WindowStart: "08:00", WindowEnd: "20:00"}, {Type: "interval", IntervalSeconds: 86400}, {Type: "once", At: time.Now().AddDate(1, 0, 0).Format("2006-01-02 15:04")}} {
		if schedule != nil {
			final := expect.Must(schedule.Validate(time.Now(), time.UTC))(t)
			schedule = &final
		}
		added := expect.Must(w.cfg.Tasks.Add(t.Context(), task.Task{Room: "!dm", Label: inDM.Label(), User: owner, Content: fmt.Sprint("Tee", i), Priority: 2, Schedule: schedule}))(t)
		id = added.ID
	}
	for i, state := range []string{"claimed", "claimed", "failed", "skipped", "skipped", "skipped", "skipped", "done"} {
		why := []i18n.Text{"", "", "zz", i18n.New("why.missed"), i18n.New("why.overlap"), task.ErrStopped, i18n.New("why.task_state", "state", i18n.New("state.paused")), ""}[i]
		exec(`INSERT INTO job_run (task, due, state, claimed, ended, result, retry_at) VALUES (?, ?, ?, 1, ?, ?, nullif(?, 0))`, id, 1000*i, state, 5000*min(i, 1), why, 9000*(1-min(i, 1)))
	}
	say("!tasks", "!status")
}

func talksOfFiles(t *testing.T, w *world, say func(...string)) {
	t.Helper()
	for i, key := range slices.Sorted(maps.Keys(i18n.Source())) {
		if !strings.HasPrefix(key, "why.file") && !strings.HasPrefix(key, "why.pdf") {
			continue
		}
		note := i18n.New(key, "size", "9 MB", "why", i18n.New("why.file_nowhere"), "type", "a/b", "count", 9)
		w.deliver(t, chat.Message{Head: chat.Head{ID: fmt.Sprint("$file", i), Room: "!dm", Sender: owner, Private: true, At: time.Now()}, Files: []chat.File{{Name: "tee.pdf", Kind: chat.OtherFile, Note: note}}})
	}
	for i, f := range []chat.File{{Name: "v.ogg", Kind: chat.VoiceFile, Note: attachment.ErrNoTranscription}, {Name: "v.ogg", Kind: chat.VoiceFile, Note: llm.TimedOut.Why()},
		{Name: "tee.pdf", Kind: chat.OtherFile, Note: i18n.New("why.file_of_kind", "why", "make a picture: the pen is broken", "type", "a/b", "size", "9 MB")}} {
		w.deliver(t, chat.Message{Head: chat.Head{ID: fmt.Sprint("$odd", i), Room: "!dm", Sender: owner, Private: true, At: time.Now()}, Files: []chat.File{f}})
	}
	say("!status")
}

// doubles are folders that send nothing to rooms: test doubles and tools of the Makefile.
var doubles = regexp.MustCompile(`(^|/)(matrixtest|peer|homeserver|storetest|standin|testset|rehearsal|tools|testdata)(/|$)`)

// speaking are the folders whose code may send texts to rooms.
func speaking(t *testing.T) (dirs []string) {
	t.Helper()
	expect.OK(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if found, _ := filepath.Glob(filepath.Join(path, "*.go")); err == nil && d.IsDir() && len(found) > 0 && !doubles.MatchString(path) && path != ".." {
			dirs = append(dirs, path)
		}
		return err
	}))
	return append(dirs, "../../cmd/bot")
}

// parsed returns the parsed files of folders, without tests.
func parsed(t *testing.T, dirs []string) map[string]*ast.File {
	t.Helper()
	all := map[string]*ast.File{}
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(dir, err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			all[name] = expect.Must(parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution))(t)
		}
	}
	return all
}

// at returns the literal at index i of args.
func at(args []ast.Expr, i int) (string, bool) {
	if i >= len(args) {
		return "", false
	}
	lit, ok := args[i].(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(lit.Value)
	return text, err == nil
}

// keyAt returns the index of the text key in a call's arguments.
func keyAt(call *ast.CallExpr) (int, bool) {
	switch f := call.Fun.(type) {
	case *ast.SelectorExpr:
		if of, ok := f.X.(*ast.Ident); ok && of.Name == "i18n" && f.Sel.Name == "New" {
			return 0, true
		}
		i, ok := map[string]int{"text": 1, "Text": 2, "In": 1}[f.Sel.Name]
		return i, ok
	case *ast.Ident:
		i, ok := map[string]int{"say": 0, "New": 0, "refuse": 1}[f.Name]
		return i, ok
	}
	return 0, false
}

var keyForm = regexp.MustCompile(`^[a-z]+(\.[a-z_]+)+$`)

// Every text key in the code exists, and calls fill all of its placeholders.
func TestMessageKeys(t *testing.T) {
	all, asked := i18n.Source(), 0
	for name, file := range parsed(t, speaking(t)) {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			i, ok := keyAt(call)
			if !ok {
				return true
			}
			key, ok := at(call.Args, i)
			if !ok || strings.Contains(key, " ") || strings.HasSuffix(key, ".") { // English, or the beginning of a key
				return true
			}
			asked++
			want, both := all[key], all[key] == ""
			if both {
				want = all[key+i18n.More]
			}
			expect.False(t, want == "" || both && all[key+i18n.One] == "", "%s asks for %q, which is nowhere", name, key)
			var given []string
			for j := i + 1; j < len(call.Args); j += 2 {
				place, ok := at(call.Args, j)
				expect.False(t, !ok, "%s: a place of %q has no name", name, key)
				given = append(given, "{"+place+"}")
			}
			for _, place := range slices.Compact(slices.Sorted(slices.Values(placePattern.FindAllString(want, -1)))) {
				expect.False(t, !slices.Contains(given, place), "%s: %q is not filled in with %s", name, key, place)
			}
			return true
		})
	}
	expect.False(t, asked < 200, "only %d sentences are asked for: they were looked for in the wrong way", asked)
}

// Every text of en.txt is used somewhere, by its key or a prefix of it.
func TestMessagesAreUsed(t *testing.T) {
	var literals []string
	for _, file := range parsed(t, speaking(t)) {
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil {
					literals = append(literals, text)
				}
			}
			return true
		})
	}
	for _, key := range slices.Sorted(maps.Keys(i18n.Source())) {
		name := strings.TrimSuffix(strings.TrimSuffix(key, i18n.One), i18n.More)
		used := slices.ContainsFunc(literals, func(l string) bool {
			return l == name || strings.HasSuffix(l, ".") && len(l) > 3 && keyForm.MatchString(l+"x") && strings.HasPrefix(name, l) || l == key ||
				strings.Contains(l, "'"+name+"'") // in SQL
		})
		expect.False(t, !used && !strings.HasPrefix(key, "state."), "en.txt: nobody asks for %s", key)
	}
}

// sentenceForm matches a literal for people: two words at least.
var sentenceForm = regexp.MustCompile(`[A-Za-z]{3,}[ ,:;]+[A-Za-z]{2,}`)

// shown returns the expressions of a file whose text a room gets: of messages, notices and redactions.
func shown(file *ast.File) (all []ast.Expr) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			name := ""
			switch kind := n.Type.(type) {
			case *ast.Ident:
				name = kind.Name
			case *ast.SelectorExpr:
				name = kind.Sel.Name
			}
			for _, e := range n.Elts {
				kv, ok := e.(*ast.KeyValueExpr)
				if !ok {
					continue
				}
				key, _ := kv.Key.(*ast.Ident)
				switch {
				case key == nil:
				case (name == "Outgoing" || strings.EqualFold(name, "notice")) && (key.Name == "Text" || key.Name == "text" || key.Name == "Caption"), name == "ReqRedact" && key.Name == "Reason":
					all = append(all, kv.Value)
				}
			}
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && (f.Sel.Name == "notice" || f.Sel.Name == "endDraft") && len(n.Args) == 3 {
				all = append(all, n.Args[2])
			}
		}
		return true
	})
	return all
}

// TestNoSentencesInCode: texts for rooms come from data/messages, not from literals.
func TestNoSentencesInCode(t *testing.T) {
	looked := 0
	for name, file := range parsed(t, speaking(t)) {
		for _, e := range shown(file) {
			looked++
			ast.Inspect(e, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && sentenceForm.MatchString(lit.Value) {
					t.Errorf("%s: %s is said in English in every room", name, lit.Value)
				}
				return true
			})
		}
	}
	expect.False(t, looked < 30, "only %d expressions were looked at: they were looked for in the wrong way", looked)
}

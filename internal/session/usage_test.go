package session

import (
	"strings"
	"testing"
	"time"

	"reverie/internal/llm"
	"reverie/internal/test/expect"
	"reverie/internal/usage"
)

// usageWorld is a world with the models local and big, whose server counts 401 tokens for each answer of local
// and none for big.
func usageWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, t.TempDir())
	w.script.count = func(string) int { return 400 }
	big := &script{forever: "from the big one"}
	w.cfg.Models = llm.New(llm.Config{Roles: map[string][]string{"chat": {"local", "big"}}, Retry: llm.Retry{Attempts: 1}, Meter: w.cfg.Usage,
		Models: []llm.ModelConfig{served(t, "local", 16_000, w.script.ServeHTTP), served(t, "big", 16_000, big.ServeHTTP)}})
	return w
}

const quotaNote = "A daily limit of tokens is nearly used up."

// At 80 % of a model's limit the owner and the model are told once; at 100 % the next model answers until the
// next day.
func TestModelQuota(t *testing.T) {
	w := usageWorld(t)
	w.cfg.Usage.Models = map[string]int{"local": 1200}
	answers(t, w.say(t, "$1", "hello"), "fine")
	answers(t, w.say(t, "$2", "hello"), "fine")
	expect.Equal(t, w.room.read("limit:$2:local").Text, "")
	answers(t, w.say(t, "$3", "hello"), "fine") // 1203
	notice(t, w.room.read("limit:$3:local"), "100 % of today's 1200 tokens for `local`", "midnight")
	expect.Lacks(t, strings.Join(w.script.asked(), "\n"), quotaNote)
	answers(t, w.say(t, "$4", "hello"), "from the big one")
	answers(t, w.say(t, "$5", "hello"), "from the big one")
	expect.Equal(t, w.room.read("limit:$4:local").Text+w.room.read("limit:$5:local").Text, "")
	w.cfg.Usage.Now = func() time.Time { return time.Now().AddDate(0, 0, 1) }
	answers(t, w.say(t, "$6", "hello"), "fine")
}

// The model reads once that a limit is near, and nobody else reads it.
func TestQuotaNote(t *testing.T) {
	w := usageWorld(t)
	w.cfg.Usage.Models = map[string]int{"local": 500}
	w.say(t, "$1", "hello")
	notice(t, w.room.read("limit:$1:local"), "80 %")
	w.cfg.Usage.Models["local"] = 100_000
	for i, want := range []int{1, 1, 1} { // it stays in the message that it came with
		w.say(t, "", "go on")
		expect.Equal(t, strings.Count(w.lastAsked(), quotaNote), want, i)
	}
}

// A person's own limit holds for all models, and says when it begins again. Others go on.
func TestPersonQuota(t *testing.T) {
	w := usageWorld(t)
	w.cfg.Usage.Person = 500
	expect.Equal(t, w.hears(t, friend, "!group", "$1", "hello"), "fine")
	notice(t, w.room.read("limit:$1:"), "80 % of your 500 tokens", "midnight")
	expect.Equal(t, w.hears(t, friend, "!group", "$2", "hello"), "fine")
	expect.Has(t, w.hears(t, friend, "!group", "$3", "hello"), "Your limit of tokens for today is used up", "midnight", "saved")
	answers(t, w.say(t, "$4", "hello"), "fine")
}

// !usage shows everybody's tokens to owners in a direct chat, and to others their own.
func TestUsageCommand(t *testing.T) {
	w := usageWorld(t)
	w.tells(t, "!usage", "No tokens are counted yet.")
	w.hears(t, friend, "!group", "$1", "hello")
	w.say(t, "$2", "hello")
	ask := llm.Request{Messages: []llm.Message{{Role: llm.User, Content: "Read this."}}}
	expect.Must(w.cfg.Models.Complete(t.Context(), llm.Preferring("harvest", "big"), ask, nil))(t)
	now := time.Now
	w.cfg.Usage.Now = func() time.Time { return now().AddDate(0, 0, 2) }
	w.say(t, "$3", "hello")
	w.tells(t, "!usage", "- `local`, "+owner+": 401 today, 802 in 7 days\n", "- `local`, "+friend+": 0 today, 401 in 7 days\n",
		"- `big`, my own work: ~0 today, ~")
	for _, who := range []string{friend, owner} { // an owner in a group sees no more than others
		got := w.hears(t, who, "!group", "$of"+who, "!usage")
		expect.Has(t, got, "`local`, "+who+": ")
		expect.Equal(t, strings.Count(got, "\n- "), 1, got)
	}
	w.cfg.Usage.Now = func() time.Time { return now().AddDate(0, 0, 91) }
	w.say(t, "$4", "hello")
	w.tells(t, "!usage", "401 today")
	expect.Equal(t, value[int](t, w, `SELECT count(*) FROM usage`), 2) // the days 2 and 91; 90 days are kept
}

// What a sub-session and its report cost counts for the person who asked.
func TestUsageOfSubSession(t *testing.T) {
	w := usageWorld(t)
	w.script.reply = func(body string) (string, bool) {
		_, sub, last := readAsked(t, body)
		if !sub && strings.Contains(last, "the kettle?") {
			return `spawn_sub_session {"objective":"look around"}`, true
		}
		return "Green tea.", true
	}
	w.withSubSessions(t)
	w.say(t, "$1", "Where is the kettle?")
	waitUntil(t, "it is told", w.allTold(t))
	rows := expect.Must(w.cfg.Usage.LastWeek(t.Context(), usage.Everybody))(t)
	expect.Len(t, rows, 1)
	expect.Equal(t, rows[0].Person, owner)
	expect.Equal(t, rows[0].Today, 401*len(w.script.asked()))
}

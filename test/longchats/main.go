// Command longchats measures what an assistant recalls of long chats: months of talk of one person
// about several topics at once, some 100,000 tokens each, and questions of ten abilities with the
// messages that answer them. See `make longchats`.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"reverie/internal/llm"
	"reverie/internal/memory"
)

type options struct {
	chats, tokens int
	seed          uint64
	harvest       string
	cache, export string
	why           string
	show          int
	only          string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var o options
	flag.IntVar(&o.chats, "chats", 20, "how many chats")
	flag.IntVar(&o.tokens, "tokens", 100_000, "how long each is")
	flag.Uint64Var(&o.seed, "seed", 1, "the same seed makes the same chats")
	flag.StringVar(&o.harvest, "harvest", "both", "memories besides the messages: on, off, both, or none to measure nothing")
	flag.StringVar(&o.cache, "cache", "", "a `folder` that keeps vectors between runs")
	flag.StringVar(&o.export, "export", "", "a `folder` for memory.jsonl, facts.jsonl and questions.jsonl")
	flag.StringVar(&o.why, "why", "", "a `file` for each piece of evidence that was missed, and why")
	flag.IntVar(&o.show, "show", 0, "print so many messages of each chat")
	flag.StringVar(&o.only, "half", "", "only the chats of this half: tuned or held")
	flag.Parse()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "longchats:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	all, err := makeSet(o.chats, o.seed, o.tokens)
	if err != nil {
		return err
	}
	var chats []*chat
	for _, c := range all {
		if o.only == "" || c.half == o.only {
			chats = append(chats, c)
		}
	}
	describe(chats, o.show)
	if o.export != "" {
		if err := export(o.export, chats); err != nil {
			return err
		}
	}
	var missed *os.File
	if o.why != "" {
		if missed, err = os.Create(o.why); err != nil {
			return err
		}
		defer missed.Close()
	}
	if o.cache != "" {
		if err := os.MkdirAll(o.cache, 0o700); err != nil {
			return err
		}
	}
	for _, harvest := range []bool{false, true} {
		if o.harvest == "both" || o.harvest == onOff(harvest) {
			if err := compare(ctx, o, chats, harvest, missed); err != nil {
				return err
			}
		}
	}
	return nil
}

func onOff(is bool) string {
	if is {
		return "on"
	}
	return "off"
}

// compare measures each backend with each room.
func compare(ctx context.Context, o options, chats []*chat, harvest bool, missed *os.File) error {
	dir, err := os.MkdirTemp("", "reverie-longchats-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	rig, err := newRig(ctx, dir, o.cache, chats, harvest)
	if err != nil {
		return err
	}
	defer rig.db.Close()
	for _, b := range []struct {
		name string
		*memory.Store
	}{{"fts5", rig.words}, {"local_vector", rig.both}} {
		if b.Store == nil || b.Store == rig.both && !harvest {
			continue // without memories there are no vectors: it is as fts5
		}
		t := table{name: fmt.Sprintf("%s, harvest %s", b.name, onOff(harvest))}
		for _, c := range chats {
			for i := range c.questions {
				results, err := measure(ctx, b.Store, &c.questions[i], rooms, missed != nil)
				if err != nil {
					return err
				}
				for n, r := range results {
					t.add(n, r)
					if missed != nil {
						writeMissed(missed, t.name, rooms[n], r)
					}
				}
			}
		}
		t.print()
	}
	return nil
}

// describe prints what the chats are.
func describe(chats []*chat, show int) {
	var tokens, messages, questions int
	by := map[string]int{}
	for _, c := range chats {
		for i, m := range c.messages {
			tokens += llm.EstimateTokens(m.Text)
			if i < show {
				fmt.Printf("%s %s %s: %s\n", m.Ref, m.ObservedAt.Format("2006-01-02 15:04"), m.Subject, m.Text)
			}
		}
		messages, questions = messages+len(c.messages), questions+len(c.questions)
		by[c.l.code+" "+c.half]++
		if show > 0 {
			for _, q := range c.questions {
				fmt.Printf("? %s %s: %s %v\n", q.Kind, q.Sub, q.Query, q.Evidence)
			}
		}
	}
	fmt.Printf("%d chats %v, %d messages, %d tokens, %d questions\n", len(chats), by, messages, tokens, questions)
}

// export writes the chats as `bot memory import` and `bot memory search --batch` read them.
func export(dir string, chats []*chat) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var memories, facts, questions strings.Builder
	to := map[string]*strings.Builder{"memory.jsonl": &memories, "facts.jsonl": &facts, "questions.jsonl": &questions}
	put := func(name string, x any) {
		line, err := json.Marshal(x)
		if err != nil {
			panic(err) // these types always have a form in JSON
		}
		to[name].Write(append(line, '\n'))
	}
	for _, c := range chats {
		for _, m := range c.messages {
			put("memory.jsonl", m)
		}
		for _, f := range c.facts {
			put("facts.jsonl", f)
		}
		for _, q := range c.questions {
			put("questions.jsonl", q)
		}
	}
	for name, b := range to {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(b.String()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

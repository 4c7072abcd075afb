package session

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/prompt"
	"reverie/internal/trust"
)

// place is where the answer to in is read.
func (s *Session) place(in Inbound) trust.Place {
	return trust.Place{Room: s.room, Person: in.Sender, Private: in.Private}
}

// level is how far the words that user addresses to us are trusted.
func (m *Manager) level(user string) trust.Integrity {
	switch {
	case slices.Contains(m.cfg.Owners, user):
		return trust.Owner
	case m.cfg.Allowed == nil || m.cfg.Allowed(user):
		return trust.User
	}
	return trust.Foreign
}

// labelOf is the label of a message with all that came with it.
func (s *Session) labelOf(ctx context.Context, in Inbound, quotes []Quote, files []history.File) (trust.Label, error) {
	l := trust.Label{Integrity: s.level(in.Sender), Readers: s.place(in).Readers()}
	if len(files) > 0 {
		l.Integrity = trust.Foreign
	}
	for _, q := range quotes {
		of, err := s.quoteIntegrity(ctx, in, q)
		if err != nil {
			return l, err
		}
		l.Integrity = min(l.Integrity, of)
	}
	return l, nil
}

// quoteIntegrity is of a quote in a message: other people's words were not addressed to us.
func (s *Session) quoteIntegrity(ctx context.Context, in Inbound, q Quote) (trust.Integrity, error) {
	switch {
	case q.Ours != "" || q.Sender == s.cfg.Self && s.cfg.Self != "":
		l, _, err := s.cfg.History.LabelOf(ctx, s.room, q.Ours) // what is not there is foreign
		return l.Integrity, err
	case q.Sender == in.Sender && q.Sender != "":
		return s.level(q.Sender), nil
	case q.Sender != "" && s.level(q.Sender) >= trust.User:
		return trust.Guest, nil
	}
	return trust.Foreign, nil
}

// readable leaves out the quotes of messages that may not be read where in was written. Who
// knows the id of a message can reply to it, whether they could read it or not.
func (s *Session) readable(ctx context.Context, in Inbound) ([]Quote, error) {
	var out []Quote
	for _, q := range in.Quotes {
		l, known, err := s.cfg.History.LabelOf(ctx, s.room, cmp.Or(q.Ours, q.ID))
		if err != nil {
			return nil, err
		}
		if known && !s.place(in).MayRead(l.Readers) {
			s.log.Warn("a quote is left out: those who read the room may not read it", "message", in.ID, "quote", q.ID)
			continue
		}
		out = append(out, q)
	}
	return out, nil
}

// separate begins a new conversation, without a summary, where others read the room than those
// with whom the current one was held.
func (s *Session) separate(ctx context.Context, in Inbound) error {
	now := s.place(in).Readers()
	if s.readBy == now {
		return nil
	}
	was, err := s.cfg.History.Readers(ctx, s.talk)
	if err != nil {
		return err
	}
	if was != trust.Nobody && was != now {
		s.log.Info("others read this room now: a new conversation begins")
		s.recallable(ctx)
		s.leaving()
		if err := s.pin(ctx, ""); err != nil {
			return err
		}
		if _, err := s.cfg.History.StartNew(ctx, s.talk); err != nil {
			return err
		}
		s.over, s.newest, s.asking, s.compaction = oversize{}, Inbound{}, Inbound{}, compaction{}
		if err := s.cfg.History.ReadBy(ctx, s.talk, now); err != nil {
			return err
		}
	}
	s.readBy = now
	return nil
}

// untrusted names the texts of a request that are below the line, for people, and a mark that
// changes when more of them come in.
func (s *Session) untrusted(ctx context.Context, past []history.Message, c history.Compaction, sections []prompt.SectionReport) (seen []string, mark string) {
	add := func(key string, args ...string) {
		if text := s.text(ctx, key, args...); !slices.Contains(seen, text) {
			seen = append(seen, text)
		}
	}
	newest, prefix := int64(0), ""
	for i := range past {
		m := &past[i]
		if m.Role == llm.Assistant || m.Label.Integrity >= trust.User { // what the model says is made from the others
			continue
		}
		newest = m.ID
		switch {
		case m.Role == llm.Tool:
			add("approve.seen.tool", "tool", callNamed(past[:i], m.CallID))
		case len(m.Files) > 0:
			for _, f := range m.Files {
				add("approve.seen.file", "name", oneLine(f.Name, 60))
			}
		case len(m.Quoted) > 0:
			add("approve.seen.quote")
		default:
			add("approve.seen.event")
		}
	}
	for i := range past {
		if m := &past[i]; m.Tail != "" && m.TailIntegrity < trust.User {
			add("approve.seen.section", "section", "recalled")
			if rows := s.rowsIn(m.ID); rows != "" {
				prefix += rows
				continue
			}
			newest = max(newest, m.ID)
		}
	}
	summary := int64(0)
	if c.Text() != "" && c.Integrity < trust.User {
		summary = c.ID
		add("approve.seen.summary")
	}
	for _, r := range sections {
		if r.Integrity < trust.User && r.Tokens > 0 && r.ID != "summary" {
			add("approve.seen.section", "section", r.ID)
			if r.Zone == prompt.Prefix {
				prefix += " " + r.ID
			}
		}
	}
	return seen, fmt.Sprintf("%d %d%s", newest, summary, prefix)
}

// storedIn names the section of the prompt that shows what a tool stores, by tool.
var storedIn = map[string]string{"append_memory": "memories", "task": "tasks", "goal": "goal", "add_skill": "skills"}

// tailSections are those of a tail that show rows, by the section that shows all of them.
var tailSections = map[string]string{"learned": "memories", "tasks_now": "tasks", "pin": "tasks", "memories": "memories", "tasks": "tasks", "goal": "goal"}

// beginTail notes that the newest message has no tail yet: what it gets is known from now on.
func (s *Session) beginTail(past []history.Message) {
	if s.tails == nil {
		s.tails = map[int64][]string{}
	}
	s.tailing = 0
	if n := len(past); n > 0 {
		s.tailing = past[n-1].ID
		if past[n-1].Tail == "" {
			s.tails[s.tailing] = []string{}
		}
	}
}

// noteTail notes which sections below the line the newest message's tail got.
func (s *Session) noteTail(sections []prompt.SectionReport) {
	known, ok := s.tails[s.tailing]
	if !ok {
		return
	}
	for _, r := range sections {
		if r.Zone == prompt.Tail && r.Tokens > 0 && r.Integrity < trust.User {
			known = append(known, r.ID)
		}
	}
	s.tails[s.tailing] = known
}

// rowsIn names the sections whose rows are all that is below the line in the tail of a
// message; "" if there is something else, or it is not known.
func (s *Session) rowsIn(message int64) (names string) {
	for _, id := range s.tails[message] {
		of := tailSections[id]
		if of == "" {
			return ""
		}
		names += " " + of
	}
	return names
}

// sameTexts reports whether no more text below the line has come in between two marks. What the
// acts store that were allowed is no such text: it is made from what was there before.
func sameTexts(before, now string, allowed []approval) bool {
	was, is := strings.Fields(before), strings.Fields(now)
	if len(was) < 2 || len(is) < 2 || !slices.Equal(was[:2], is[:2]) {
		return false
	}
	return !slices.ContainsFunc(is[2:], func(section string) bool {
		stored := slices.ContainsFunc(allowed, func(a approval) bool {
			return slices.ContainsFunc(a.acts, func(act askedAct) bool { return storedIn[act.Call.Name] == section })
		})
		return !stored && !slices.Contains(was[2:], section)
	})
}

// callNamed is the tool of the call id.
func callNamed(past []history.Message, id string) string {
	for _, m := range slices.Backward(past) {
		for _, c := range m.Calls {
			if c.ID == id {
				return c.Name
			}
		}
	}
	return "?"
}

// leastOf is the integrity of what is made from messages.
func leastOf(past []history.Message) trust.Integrity {
	least := trust.Owner
	for i := range past {
		least = min(least, past[i].Integrity())
	}
	return least
}

// programs is the label of what the program itself says to readers.
func programs(r trust.Readers) trust.Label { return trust.Label{Integrity: trust.Owner, Readers: r} }

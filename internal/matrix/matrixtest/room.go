package matrixtest

import (
	"encoding/json"
	"maps"
	"slices"
	"sort"
)

// roomVersion is Dendrite's default.
const roomVersion = "10"

type stateID struct{ typ, key string }

// event is something that happened in a room.
type event struct {
	pos                 int64
	id, typ, sender     string
	key                 *string // of a state event
	ts                  int64
	content             json.RawMessage
	redacts             string
	previous, redaction *event
	token, txn          string          // the login that sent it, and its transaction id
	head                []byte          // all fields but room_id and unsigned, without the closing brace
	raw                 json.RawMessage // as it was injected; instead of all that
}

// entry is a place in a timeline: an event may have several.
type entry struct {
	pos   int64
	event *event
	again bool // shown by /sync only
}

// reader is who has read a room up to somewhere, all of it or a thread.
type reader struct {
	user, thread string // "" = no thread was named, "main" = what is in none
}

type receipt struct {
	pos         int64
	event, kind string
	ts          int64
}

// room is a conversation.
type room struct {
	id       string
	timeline []entry
	events   map[string]*event
	state    map[stateID]*event
	memberAt map[string][]step // how the membership of a user changed
	receipts map[reader]receipt
	typing   map[string]int64 // until when, Unix milliseconds
	typingAt int64
	last     int64 // position of the newest thing in it
}

// step is a change of membership.
type step struct {
	pos        int64
	membership string
	event      *event
}

// membership is how a user stands to the room; empty when not at all.
func (r *room) membership(user string) string {
	if s := r.memberAt[user]; len(s) > 0 {
		return s[len(s)-1].membership
	}
	return ""
}

// before is how a user stood to the room at a position.
func (r *room) before(user string, pos int64) string {
	m := ""
	for _, s := range r.memberAt[user] {
		if s.pos > pos {
			break
		}
		m = s.membership
	}
	return m
}

// with lists users by membership, sorted.
func (r *room) with(membership ...string) []string {
	var list []string
	for user := range r.memberAt {
		if slices.Contains(membership, r.membership(user)) {
			list = append(list, user)
		}
	}
	slices.Sort(list)
	return list
}

// since returns the index of the first entry after a position.
func (r *room) since(pos int64) int {
	return sort.Search(len(r.timeline), func(i int) bool { return r.timeline[i].pos > pos })
}

// stateAt is the room's state before a position, in the order it came to be.
func (r *room) stateAt(pos int64) []*event {
	at := map[stateID]*event{}
	for _, e := range r.timeline {
		if e.pos >= pos {
			break
		}
		if e.event.key != nil && !e.again {
			at[stateID{e.event.typ, *e.event.key}] = e.event
		}
	}
	return inOrder(at)
}

func inOrder(state map[stateID]*event) []*event {
	list := slices.Collect(maps.Values(state))
	slices.SortFunc(list, func(a, b *event) int { return int(a.pos - b.pos) })
	return list
}

// put adds an event to a room and tells everybody who may see it. The lock is held.
func (s *Server) put(r *room, e *event) *event {
	e.pos = s.next()
	if e.id == "" {
		e.id = s.id("$event")
	}
	if e.ts == 0 {
		e.ts = s.now()
	}
	e.render()
	r.events[e.id] = e
	if e.key != nil {
		at := stateID{e.typ, *e.key}
		e.previous = r.state[at]
		r.state[at] = e
		if e.typ == "m.room.member" {
			s.stepped(r, e)
		}
	}
	s.show(r, entry{pos: e.pos, event: e})
	return e
}

// show puts an entry at the end of the timeline. The lock is held.
func (s *Server) show(r *room, e entry) {
	r.timeline = append(r.timeline, e)
	s.touch(r, e.pos)
}

// touch wakes who is, or was until now, in the room. The lock is held.
func (s *Server) touch(r *room, pos int64) {
	r.last = pos
	for user, steps := range r.memberAt {
		m := steps[len(steps)-1]
		if u := s.users[user]; u != nil && (m.membership == "join" || m.membership == "invite" || m.pos == pos) {
			u.poke()
		}
	}
}

// stepped notes a change of membership. The lock is held.
func (s *Server) stepped(r *room, e *event) {
	var c struct {
		Membership string `json:"membership"`
	}
	_ = json.Unmarshal(e.content, &c) // an injected event may say anything
	r.memberAt[*e.key] = append(r.memberAt[*e.key], step{e.pos, c.Membership, e})
	if u := s.users[*e.key]; u != nil {
		u.rooms[r.id] = r
	}
	if c.Membership != "join" {
		delete(r.typing, *e.key)
	}
}

// member makes somebody's membership event. The lock is held.
func (s *Server) member(r *room, sender, user, membership string, more map[string]any) *event {
	content := map[string]any{"membership": membership}
	if u := s.users[user]; u != nil && membership == "join" {
		content["displayname"] = u.name
	}
	maps.Copy(content, more)
	return s.put(r, &event{typ: "m.room.member", key: &user, sender: sender, content: mustJSON(content)})
}

// render prepares what clients get to see.
func (e *event) render() {
	e.head = mustJSON(struct {
		Content json.RawMessage `json:"content"`
		ID      string          `json:"event_id"`
		TS      int64           `json:"origin_server_ts"`
		Redacts string          `json:"redacts,omitempty"`
		Sender  string          `json:"sender"`
		Key     *string         `json:"state_key,omitempty"`
		Type    string          `json:"type"`
	}{e.content, e.id, e.ts, e.redacts, e.sender, e.key, e.typ})
	e.head = e.head[:len(e.head)-1]
}

// wire is the event as a client with the access token gets it; room is the room
// id where it is to be named.
func (e *event) wire(token, room string, now int64) json.RawMessage {
	if e.raw != nil {
		return e.raw
	}
	b := append(make([]byte, 0, len(e.head)+160), e.head...)
	if room != "" {
		b = append(append(b, `,"room_id":`...), mustJSON(room)...)
	}
	unsigned := map[string]any{"age": max(now-e.ts, 0)}
	if e.previous != nil {
		unsigned["prev_content"], unsigned["replaces_state"], unsigned["prev_sender"] = e.previous.content, e.previous.id, e.previous.sender
	}
	if e.redaction != nil {
		unsigned["redacted_because"], unsigned["redacted_by"] = e.redaction.wire("", "", now), e.redaction.id
	}
	if e.txn != "" && e.token == token {
		unsigned["transaction_id"] = e.txn
	}
	b = append(append(b, `,"unsigned":`...), mustJSON(unsigned)...)
	return append(b, '}')
}

// plain is the event as lists of members show it: without what was before.
func (e *event) plain(room string, now int64) json.RawMessage {
	bare := *e
	bare.previous, bare.txn = nil, ""
	return bare.wire("", room, now)
}

// stripped is the event as somebody sees it who is invited. Only the invitation
// itself has an id.
func (e *event) stripped(self bool) json.RawMessage {
	if self {
		return append(append([]byte(nil), e.head...), '}')
	}
	return mustJSON(map[string]any{"type": e.typ, "state_key": e.key, "sender": e.sender, "content": e.content})
}

// redacted empties the event that a redaction names. The lock is held.
func (r *room) redacted(by *event) {
	e := r.events[by.redacts]
	if e == nil || e.raw != nil {
		return
	}
	kept := map[string]json.RawMessage{}
	var content map[string]json.RawMessage
	if json.Unmarshal(e.content, &content) == nil && e.typ == "m.room.member" && content["membership"] != nil {
		kept["membership"] = content["membership"]
	}
	e.content, e.redaction = mustJSON(kept), by
	e.render()
}

// levels is m.room.power_levels.
type levels struct {
	Users        map[string]int `json:"users"`
	UsersDefault int            `json:"users_default"`
	Events       map[string]int `json:"events"`
	EventsDflt   int            `json:"events_default"`
	StateDflt    int            `json:"state_default"`
	Ban          int            `json:"ban"`
	Kick         int            `json:"kick"`
	Redact       int            `json:"redact"`
	Invite       int            `json:"invite"`
}

func (r *room) levels() levels {
	l := levels{StateDflt: 50, Ban: 50, Kick: 50, Redact: 50}
	if e := r.state[stateID{"m.room.power_levels", ""}]; e != nil {
		_ = json.Unmarshal(e.content, &l) // what is no number keeps the default
	}
	return l
}

func (l levels) of(user string) int {
	if n, ok := l.Users[user]; ok {
		return n
	}
	return l.UsersDefault
}

func (l levels) needed(typ string, state bool) int {
	if n, ok := l.Events[typ]; ok {
		return n
	}
	if state {
		return l.StateDflt
	}
	return l.EventsDflt
}

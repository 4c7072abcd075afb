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

// event is an event of a room.
type event struct {
	pos                 int64
	id, typ, sender     string
	key                 *string // of a state event
	ts                  int64
	content             json.RawMessage
	redacts             string
	previous, redaction *event
	token, txn          string          // the login that sent it, and its transaction ID
	head                []byte          // all fields but room_id and unsigned, without the closing brace
	raw                 json.RawMessage // the bytes of an injected event, in place of all other fields
}

// entry is a place in a timeline: an event may have several.
type entry struct {
	pos      int64
	event    *event
	repeated bool // shown by /sync only
}

// reader is the owner of a read receipt: a user in a thread or in the whole room.
type reader struct {
	user, thread string // "" = unthreaded, "main" = main timeline
}

type receipt struct {
	pos         int64
	event, kind string
	ts          int64
}

// room is a room.
type room struct {
	id       string
	timeline []entry
	events   map[string]*event
	state    map[stateID]*event
	memberAt map[string][]membershipChange // membership changes by user
	receipts map[reader]receipt
	typing   map[string]int64 // end of the typing notice, Unix milliseconds
	typingAt int64
	last     int64 // position of its newest event
}

// membershipChange is a change of membership.
type membershipChange struct {
	pos        int64
	membership string
	event      *event
}

// membership returns a user's membership, or "".
func (r *room) membership(user string) string {
	if s := r.memberAt[user]; len(s) > 0 {
		return s[len(s)-1].membership
	}
	return ""
}

// membershipAt returns a user's membership before a position.
func (r *room) membershipAt(user string, pos int64) string {
	m := ""
	for _, s := range r.memberAt[user] {
		if s.pos > pos {
			break
		}
		m = s.membership
	}
	return m
}

// usersWith lists users by membership, sorted.
func (r *room) usersWith(membership ...string) []string {
	var list []string
	for user := range r.memberAt {
		if slices.Contains(membership, r.membership(user)) {
			list = append(list, user)
		}
	}
	slices.Sort(list)
	return list
}

// indexAfter returns the index of the first entry after a position.
func (r *room) indexAfter(pos int64) int {
	return sort.Search(len(r.timeline), func(i int) bool { return r.timeline[i].pos > pos })
}

// stateAt returns the room's state before a position, ordered by position.
func (r *room) stateAt(pos int64) []*event {
	at := map[stateID]*event{}
	for _, e := range r.timeline {
		if e.pos >= pos {
			break
		}
		if e.event.key != nil && !e.repeated {
			at[stateID{e.event.typ, *e.event.key}] = e.event
		}
	}
	return sortedByPosition(at)
}

func sortedByPosition(state map[stateID]*event) []*event {
	list := slices.Collect(maps.Values(state))
	slices.SortFunc(list, func(a, b *event) int { return int(a.pos - b.pos) })
	return list
}

// addEvent adds an event to a room and wakes everybody who may see it. The lock is held.
func (s *Server) addEvent(r *room, e *event) *event {
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
			s.recordMembership(r, e)
		}
	}
	s.appendEntry(r, entry{pos: e.pos, event: e})
	return e
}

// appendEntry appends an entry to the timeline. The lock is held.
func (s *Server) appendEntry(r *room, e entry) {
	r.timeline = append(r.timeline, e)
	s.wakeMembers(r, e.pos)
}

// wakeMembers wakes the current members and the last one who left. The lock is held.
func (s *Server) wakeMembers(r *room, pos int64) {
	r.last = pos
	for user, steps := range r.memberAt {
		m := steps[len(steps)-1]
		if u := s.users[user]; u != nil && (m.membership == "join" || m.membership == "invite" || m.pos == pos) {
			u.wakeSyncs()
		}
	}
}

// recordMembership records a change of membership. The lock is held.
func (s *Server) recordMembership(r *room, e *event) {
	var c struct {
		Membership string `json:"membership"`
	}
	_ = json.Unmarshal(e.content, &c) // an injected event may have any content
	r.memberAt[*e.key] = append(r.memberAt[*e.key], membershipChange{e.pos, c.Membership, e})
	s.peersAt = e.pos
	if u := s.users[*e.key]; u != nil {
		u.rooms[r.id] = r
	}
	if c.Membership != "join" {
		delete(r.typing, *e.key)
	}
}

// addMember adds a membership event. The lock is held.
func (s *Server) addMember(r *room, sender, user, membership string, more map[string]any) {
	content := map[string]any{"membership": membership}
	if u := s.users[user]; u != nil && membership == "join" {
		content["displayname"] = u.name
	}
	maps.Copy(content, more)
	s.addEvent(r, &event{typ: "m.room.member", key: &user, sender: sender, content: mustJSON(content)})
}

// render prepares the JSON that clients get.
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

// wire returns the event for a client with the access token. room is its room ID, or "" to omit it.
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

// plain returns the event as in a list of members: without the previous content.
func (e *event) plain(room string, now int64) json.RawMessage {
	bare := *e
	bare.previous, bare.txn = nil, ""
	return bare.wire("", room, now)
}

// stripped returns the event as an invited user sees it. Only the invitation itself has an ID.
func (e *event) stripped(self bool) json.RawMessage {
	if self {
		return append(append([]byte(nil), e.head...), '}')
	}
	return mustJSON(map[string]any{"type": e.typ, "state_key": e.key, "sender": e.sender, "content": e.content})
}

// redact removes the content of the event that a redaction names. The lock is held.
func (r *room) redact(by *event) {
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

// levels is the content of m.room.power_levels.
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
		_ = json.Unmarshal(e.content, &l) // invalid numbers keep the default
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

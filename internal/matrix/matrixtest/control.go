package matrixtest

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// NewRoom describes a room that Room makes.
type NewRoom struct {
	ID        string // "" = one with the server's name in it, as before version 12
	Name      string
	Direct    bool
	Encrypted bool
	Invite    []string // user ids
	Join      []string // user ids who are in it at once, as if they had accepted an invitation
	Replaces  string   // the room that it says it replaces
}

// Room makes a room as a user, without a request, and returns its id.
func (s *Server) Room(creator string, q NewRoom) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.notify()
	request := newRoom{ID: q.ID, Name: q.Name, Direct: q.Direct, Invite: append(append([]string(nil), q.Invite...), q.Join...)}
	if q.Replaces != "" {
		request.Creation = map[string]any{"predecessor": map[string]any{"room_id": q.Replaces}}
	}
	if q.Direct {
		request.Preset = "trusted_private_chat"
	}
	if q.Encrypted {
		request.Initial = []initial{{Type: "m.room.encryption", Content: json.RawMessage(`{"algorithm":"m.megolm.v1.aes-sha2"}`)}}
	}
	r := s.make(creator, request)
	for _, u := range q.Join {
		s.member(r, u, u, "join", nil)
	}
	return r.id
}

// Post puts an event of a user into a room, without a request and without asking
// whether the user may, and returns its id. It panics where there is no such room.
func (s *Server) Post(user, room, typ string, content any) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.notify()
	return s.put(s.known(room), &event{typ: typ, sender: user, content: mustJSON(content)}).id
}

// Redact has a user take an event back: its content is gone, for whoever asks from now on.
// It returns the id of the redaction.
func (s *Server) Redact(user, room, eventID string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.notify()
	r := s.known(room)
	by := s.put(r, &event{typ: "m.room.redaction", sender: user, content: mustJSON(map[string]string{"redacts": eventID}), redacts: eventID})
	r.redacted(by)
	return by.id
}

// Say is Post with a plain text message.
func (s *Server) Say(user, room, text string) string {
	return s.Post(user, room, "m.room.message", map[string]any{"msgtype": "m.text", "body": text, "m.mentions": map[string]any{}})
}

// Vote is Post with a vote for answers, by their ids, of the poll that the event began.
func (s *Server) Vote(user, room, poll string, answers ...string) string {
	return s.Post(user, room, "org.matrix.msc3381.poll.response", map[string]any{
		"m.relates_to":                     map[string]any{"rel_type": "m.reference", "event_id": poll},
		"org.matrix.msc3381.poll.response": map[string]any{"answers": answers},
	})
}

// SetState changes the state of a room as a user, without asking whether the user
// may: with m.room.member that is also how to invite, kick and ban.
func (s *Server) SetState(user, room, typ, key string, content any) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.notify()
	return s.put(s.known(room), &event{typ: typ, key: &key, sender: user, content: mustJSON(content)}).id
}

// Inject puts an event into a timeline exactly as it is: clients get these bytes,
// from /sync and everywhere else, whatever is wrong with them. Only JSON it must
// be, because the rest of the answer could not be read otherwise. A missing
// event_id, sender, type or origin_server_ts of an object is added, unless its
// value is there as null. The room's state does not change. It returns the id.
func (s *Server) Inject(room, raw string) (eventID string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.notify()
	r := s.rooms[room]
	if r == nil {
		return "", fmt.Errorf("matrixtest: inject: no room %s", room)
	}
	if !json.Valid([]byte(raw)) {
		return "", fmt.Errorf("matrixtest: inject: not JSON: %s", raw)
	}
	e := &event{raw: json.RawMessage(raw), pos: s.next(), typ: "m.room.message"}
	var fields map[string]json.RawMessage
	if json.Unmarshal(e.raw, &fields) == nil && fields != nil {
		for name, value := range map[string]any{
			"event_id": s.id("$event"), "sender": "@somebody:" + s.Name, "type": "m.room.message", "origin_server_ts": s.now(),
		} {
			if _, there := fields[name]; !there {
				fields[name] = mustJSON(value)
				e.raw = append(json.RawMessage(fmt.Sprintf("{%q:%s", name, fields[name])), rest(e.raw)...)
			}
		}
		_ = json.Unmarshal(fields["event_id"], &e.id) // odd ids are known by nobody
		_ = json.Unmarshal(fields["type"], &e.typ)
		_ = json.Unmarshal(fields["sender"], &e.sender)
	}
	if e.id == "" {
		e.id = s.id("$odd")
	}
	r.events[e.id] = e
	s.show(r, entry{pos: e.pos, event: e})
	return e.id, nil
}

// rest is an object after its opening brace, ready to follow another field.
func rest(object json.RawMessage) string {
	var b []byte
	for i, c := range object {
		if c == '{' {
			b = object[i+1:]
			break
		}
	}
	for i, c := range b {
		switch c {
		case ' ', '\t', '\n', '\r':
		case '}':
			return string(b[i:])
		default:
			return "," + string(b)
		}
	}
	return string(b)
}

// Redeliver shows an event in the next /sync of everybody once more, under its
// old id, as after a replay.
func (s *Server) Redeliver(room, eventID string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.notify()
	r := s.rooms[room]
	if r == nil || r.events[eventID] == nil {
		return fmt.Errorf("matrixtest: redeliver: no event %s in room %s", eventID, room)
	}
	s.show(r, entry{pos: s.next(), event: r.events[eventID], again: true})
	return nil
}

// Events are all events of a room as its members see them in a timeline, oldest
// first.
func (s *Server) Events(room string) []json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []json.RawMessage
	for _, e := range s.known(room).timeline {
		if !e.again {
			list = append(list, e.event.wire("", room, s.now()))
		}
	}
	return list
}

// Membership is how a user stands to a room: join, invite, leave, ban, or nothing.
func (s *Server) Membership(room, user string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known(room).membership(user)
}

// Typing tells whether a user is shown as typing in a room.
func (s *Server) Typing(room, user string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, on := s.known(room).typing[user]
	return on
}

// Read is the event up to which a user has read a room; empty when none.
func (s *Server) Read(room, user string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var newest receipt
	for who, r := range s.known(room).receipts {
		if who.user == user && r.pos > newest.pos {
			newest = r
		}
	}
	return newest.event
}

// ReadIn is Read for the receipts of a thread, by its root; "main" is what is in none.
func (s *Server) ReadIn(room, user, thread string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known(room).receipts[reader{user, thread}].event
}

// SendToDevice delivers a to-device event, as if sender had sent it.
func (s *Server) SendToDevice(sender, user, typ string, content any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.notify()
	u := s.users[user]
	if u == nil {
		panic("matrixtest: no user " + strconv.Quote(user))
	}
	raw := mustJSON(map[string]any{"type": typ, "sender": sender, "content": content})
	for _, d := range u.devices {
		d.inbox = append(d.inbox, toDevice{s.next(), raw})
	}
	u.poke()
}

// known is a room that a test names; a wrong name is a fault of the test.
func (s *Server) known(id string) *room {
	r := s.rooms[id]
	if r == nil {
		panic("matrixtest: no room " + strconv.Quote(id))
	}
	return r
}

// OneTimeKeys is how many one-time keys a device has left.
func (s *Server) OneTimeKeys(user, device string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.users[user]; u != nil && u.devices[device] != nil {
		return len(u.devices[device].oneTime)
	}
	return 0
}

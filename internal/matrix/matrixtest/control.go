package matrixtest

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// NewRoom describes a room that Room creates.
type NewRoom struct {
	ID        string // "" = one with the server name, as before room version 12
	Name      string
	Direct    bool
	Encrypted bool
	Invite    []string // user IDs
	Join      []string // user IDs who join at once
	Replaces  string   // predecessor of the room
}

// Room creates a room as a user, without a request, and returns its ID.
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
	r := s.makeRoom(creator, request)
	for _, u := range q.Join {
		s.addMember(r, u, u, "join", nil)
	}
	return r.id
}

// Post adds an event of a user to a room and returns its ID. It checks no permissions. It panics
// for an unknown room.
func (s *Server) Post(user, room, typ string, content any) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.notify()
	return s.addEvent(s.mustRoom(room), &event{typ: typ, sender: user, content: mustJSON(content)}).id
}

// Redact redacts an event as a user: later requests do not get its content. It returns the ID of the
// redaction.
func (s *Server) Redact(user, room, eventID string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.notify()
	r := s.mustRoom(room)
	by := s.addEvent(r, &event{typ: "m.room.redaction", sender: user, content: mustJSON(map[string]string{"redacts": eventID}), redacts: eventID})
	r.redact(by)
	return by.id
}

// Say is Post with a plain text message.
func (s *Server) Say(user, room, text string) string {
	return s.Post(user, room, "m.room.message", map[string]any{"msgtype": "m.text", "body": text, "m.mentions": map[string]any{}})
}

// Vote is Post with a vote for answer IDs of a poll.
func (s *Server) Vote(user, room, poll string, answers ...string) string {
	return s.Post(user, room, "org.matrix.msc3381.poll.response", map[string]any{
		"m.relates_to":                     map[string]any{"rel_type": "m.reference", "event_id": poll},
		"org.matrix.msc3381.poll.response": map[string]any{"answers": answers},
	})
}

// SetState changes the state of a room as a user, without checking permissions. With m.room.member
// it invites, kicks and bans.
func (s *Server) SetState(user, room, typ, key string, content any) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.notify()
	return s.addEvent(s.mustRoom(room), &event{typ: typ, key: &key, sender: user, content: mustJSON(content)}).id
}

// Inject adds raw bytes to a timeline as an event: clients get exactly these, from /sync and
// everywhere else, whatever is wrong with them. They must be JSON, or the whole response could not
// be read. A missing event_id, sender, type or origin_server_ts of an object is added unless it is
// null. The room state does not change. Inject returns the event ID.
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
				e.raw = append(json.RawMessage(fmt.Sprintf("{%q:%s", name, fields[name])), fieldsOf(e.raw)...)
			}
		}
		_ = json.Unmarshal(fields["event_id"], &e.id) // an invalid ID is not needed
		_ = json.Unmarshal(fields["type"], &e.typ)
		_ = json.Unmarshal(fields["sender"], &e.sender)
	}
	if e.id == "" {
		e.id = s.id("$odd")
	}
	r.events[e.id] = e
	s.appendEntry(r, entry{pos: e.pos, event: e})
	return e.id, nil
}

// fieldsOf returns an object without its opening brace, to be appended to other fields.
func fieldsOf(object json.RawMessage) string {
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

// Redeliver adds an event to everybody's next /sync again, with its old ID, like a replay.
func (s *Server) Redeliver(room, eventID string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.notify()
	r := s.rooms[room]
	if r == nil || r.events[eventID] == nil {
		return fmt.Errorf("matrixtest: redeliver: no event %s in room %s", eventID, room)
	}
	s.appendEntry(r, entry{pos: s.next(), event: r.events[eventID], repeated: true})
	return nil
}

// Events returns all events of a room as its members see them in a timeline, oldest first.
func (s *Server) Events(room string) []json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []json.RawMessage
	for _, e := range s.mustRoom(room).timeline {
		if !e.repeated {
			list = append(list, e.event.wire("", room, s.now()))
		}
	}
	return list
}

// Membership returns a user's membership: join, invite, leave, ban, or "".
func (s *Server) Membership(room, user string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mustRoom(room).membership(user)
}

// Typing reports whether a user is shown as typing in a room.
func (s *Server) Typing(room, user string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, on := s.mustRoom(room).typing[user]
	return on
}

// Read returns the event of a user's newest read receipt in a room, or "".
func (s *Server) Read(room, user string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var newest receipt
	for who, r := range s.mustRoom(room).receipts {
		if who.user == user && r.pos > newest.pos {
			newest = r
		}
	}
	return newest.event
}

// ReadIn is Read for a thread, given by its root; "main" is the main timeline.
func (s *Server) ReadIn(room, user, thread string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mustRoom(room).receipts[reader{user, thread}].event
}

// SendToDevice delivers a to-device event of sender.
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
	u.wakeSyncs()
}

// mustRoom returns a room that a test names. It panics for an unknown one.
func (s *Server) mustRoom(id string) *room {
	r := s.rooms[id]
	if r == nil {
		panic("matrixtest: no room " + strconv.Quote(id))
	}
	return r
}

// OneTimeKeys returns the number of a device's unclaimed one-time keys.
func (s *Server) OneTimeKeys(user, device string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.users[user]; u != nil && u.devices[device] != nil {
		return len(u.devices[device].oneTime)
	}
	return 0
}

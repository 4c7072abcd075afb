package matrixtest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxEvent limits an event, in bytes.
const maxEvent = 65536

type newRoom struct {
	ID       string                     `json:"-"`
	Name     string                     `json:"name"`
	Topic    string                     `json:"topic"`
	Invite   []string                   `json:"invite"`
	Preset   string                     `json:"preset"`
	Direct   bool                       `json:"is_direct"`
	Visible  string                     `json:"visibility"`
	Creation map[string]any             `json:"creation_content"`
	Initial  []initial                  `json:"initial_state"`
	Levels   map[string]json.RawMessage `json:"power_level_content_override"`
}

type initial struct {
	Type    string          `json:"type"`
	Key     string          `json:"state_key"`
	Content json.RawMessage `json:"content"`
}

func (c *call) createRoom() any {
	var q newRoom
	if f := c.read(&q); f != nil {
		return f
	}
	for _, u := range q.Invite {
		if c.s.users[u] == nil {
			return forbidden("the user " + u + " does not exist")
		}
	}
	return map[string]string{"room_id": c.s.makeRoom(c.user.id, q).id}
}

// makeRoom creates a room. The lock is held.
func (s *Server) makeRoom(creator string, q newRoom) *room {
	r := &room{
		id:     cmp.Or(q.ID, s.id("!room")+":"+s.Name),
		events: map[string]*event{}, state: map[stateID]*event{}, memberAt: map[string][]membershipChange{},
		receipts: map[reader]receipt{},
	}
	s.rooms[r.id] = r
	state := func(typ string, content any) {
		none := ""
		s.addEvent(r, &event{typ: typ, key: &none, sender: creator, content: mustJSON(content)})
	}
	creation := map[string]any{"creator": creator, "room_version": roomVersion}
	if q.ID != "" && !strings.Contains(q.ID, ":") {
		creation = map[string]any{"room_version": "12"}
	}
	maps.Copy(creation, q.Creation)
	state("m.room.create", creation)
	s.addMember(r, creator, creator, "join", nil)
	users := map[string]int{creator: 100}
	if q.Preset == "trusted_private_chat" {
		for _, u := range q.Invite {
			users[u] = 100
		}
	}
	power := map[string]any{
		"users": users, "users_default": 0, "events_default": 0, "state_default": 50,
		"ban": 50, "kick": 50, "redact": 50, "invite": 0,
		"events": map[string]int{"m.room.name": 50, "m.room.power_levels": 100, "m.room.history_visibility": 100,
			"m.room.encryption": 100, "m.room.server_acl": 100, "m.room.tombstone": 100, "m.room.avatar": 50, "m.room.canonical_alias": 50},
	}
	for k, v := range q.Levels {
		power[k] = v
	}
	state("m.room.power_levels", power)
	rule := "invite"
	if q.Preset == "public_chat" || q.Preset == "" && q.Visible == "public" {
		rule = "public"
	}
	state("m.room.join_rules", map[string]string{"join_rule": rule})
	state("m.room.history_visibility", map[string]string{"history_visibility": "shared"})
	state("m.room.guest_access", map[string]string{"guest_access": "can_join"})
	for _, i := range q.Initial {
		s.addEvent(r, &event{typ: i.Type, key: &i.Key, sender: creator, content: i.Content})
	}
	if q.Name != "" {
		state("m.room.name", map[string]string{"name": q.Name})
	}
	if q.Topic != "" {
		state("m.room.topic", map[string]string{"topic": q.Topic})
	}
	for _, u := range q.Invite {
		var more map[string]any
		if q.Direct {
			more = map[string]any{"is_direct": true}
		}
		s.addMember(r, creator, u, "invite", more)
	}
	return r
}

// joinedRoom returns the room of the path if the caller has joined it.
func (c *call) joinedRoom() (*room, *failure) {
	r := c.s.rooms[c.PathValue("room")]
	if r == nil {
		return nil, forbidden("You aren't a member of the room and weren't previously a member of the room.")
	}
	if r.membership(c.user.id) != "join" {
		return nil, forbidden("user not joined to room")
	}
	return r, nil
}

// visibleRoom returns the room of the path if the caller is or was in it, and the position after which
// the caller sees nothing.
func (c *call) visibleRoom() (*room, int64, *failure) {
	r := c.s.rooms[c.PathValue("room")]
	if r == nil {
		return nil, 0, forbidden("You aren't a member of the room and weren't previously a member of the room.")
	}
	switch r.membership(c.user.id) {
	case "join":
		return r, c.s.pos, nil
	case "leave", "ban":
		steps := r.memberAt[c.user.id]
		if len(steps) > 1 && slices.ContainsFunc(steps, func(s membershipChange) bool { return s.membership == "join" }) {
			return r, steps[len(steps)-1].pos, nil
		}
	}
	return nil, 0, forbidden("You aren't a member of the room and weren't previously a member of the room.")
}

func (c *call) joinedRooms() any {
	list := []string{}
	for id, r := range c.user.rooms {
		if r.membership(c.user.id) == "join" {
			list = append(list, id)
		}
	}
	slices.Sort(list)
	return map[string]any{"joined_rooms": list}
}

func (c *call) join() any {
	r := c.s.rooms[c.PathValue("room")]
	if r == nil {
		return notFound("room")
	}
	done := map[string]string{"room_id": r.id}
	var rule struct {
		Rule string `json:"join_rule"`
	}
	if e := r.state[stateID{"m.room.join_rules", ""}]; e != nil {
		_ = json.Unmarshal(e.content, &rule) // an invalid rule admits no one
	}
	switch m := r.membership(c.user.id); {
	case m == "join":
		return done
	case m == "ban", m != "invite" && rule.Rule != "public":
		return forbidden("You are not invited to this room.")
	}
	c.s.addMember(r, c.user.id, c.user.id, "join", nil)
	return done
}

type target struct {
	User   string `json:"user_id"`
	Reason string `json:"reason"`
}

// setMembership changes the membership of another user.
func (c *call) setMembership(membership string, need func(levels) int, from ...string) any {
	var q target
	if f := c.read(&q); f != nil {
		return f
	}
	r, f := c.joinedRoom()
	if f != nil {
		return f
	}
	l := r.levels()
	if l.of(c.user.id) < need(l) || membership != "invite" && l.of(q.User) >= l.of(c.user.id) && q.User != c.user.id {
		return forbidden("You don't have permission to do that.")
	}
	was := r.membership(q.User)
	if !slices.Contains(from, was) {
		return fail(http.StatusForbidden, "M_UNKNOWN", "cannot change the membership of "+q.User+" from "+strconv.Quote(was)+" to "+membership)
	}
	var more map[string]any
	if q.Reason != "" {
		more = map[string]any{"reason": q.Reason}
	}
	c.s.addMember(r, c.user.id, q.User, membership, more)
	return empty{}
}

func (c *call) invite() any {
	return c.setMembership("invite", func(l levels) int { return l.Invite }, "", "leave", "invite")
}
func (c *call) kick() any {
	return c.setMembership("leave", func(l levels) int { return l.Kick }, "join", "invite")
}
func (c *call) ban() any {
	return c.setMembership("ban", func(l levels) int { return l.Ban }, "", "leave", "invite", "join")
}
func (c *call) unban() any {
	return c.setMembership("leave", func(l levels) int { return l.Ban }, "ban")
}

func (c *call) leave() any {
	r := c.s.rooms[c.PathValue("room")]
	if r == nil {
		return notFound("room")
	}
	switch r.membership(c.user.id) {
	case "join", "invite":
		c.s.addMember(r, c.user.id, c.user.id, "leave", nil)
		return empty{}
	case "leave":
		return empty{}
	}
	return forbidden("User is not joined to the room.")
}

func (c *call) forget() any {
	r := c.s.rooms[c.PathValue("room")]
	if r == nil || r.membership(c.user.id) == "" {
		return notFound("room")
	}
	if r.membership(c.user.id) == "join" {
		return fail(http.StatusBadRequest, "M_UNKNOWN", "user must have left the room before forgetting")
	}
	delete(c.user.rooms, r.id)
	return empty{}
}

func (c *call) allState() any {
	r, until, f := c.visibleRoom()
	// Dendrite also shows the state to invited users.
	if invited := c.s.rooms[c.PathValue("room")]; invited != nil && invited.membership(c.user.id) == "invite" {
		r, until, f = invited, c.s.pos, nil
	}
	if f != nil {
		return f
	}
	list := []json.RawMessage{}
	for _, e := range r.stateAt(until + 1) {
		list = append(list, e.wire(c.dev.token, r.id, c.s.now()))
	}
	return list
}

func (c *call) oneState() any {
	r, until, f := c.visibleRoom()
	if f != nil {
		return f
	}
	for _, e := range r.stateAt(until + 1) {
		if e.typ == c.PathValue("type") && *e.key == c.PathValue("key") {
			if c.URL.Query().Get("format") == "event" {
				return e.wire(c.dev.token, r.id, c.s.now())
			}
			return e.content
		}
	}
	return notFound("state")
}

func (c *call) members() any {
	r, until, f := c.visibleRoom()
	if f != nil {
		return f
	}
	q := c.URL.Query()
	list := []json.RawMessage{}
	for _, e := range r.stateAt(until + 1) {
		m := r.membershipAt(stateKey(e), until)
		if e.typ != "m.room.member" || q.Has("membership") && q.Get("membership") != m || q.Has("not_membership") && q.Get("not_membership") == m {
			continue
		}
		list = append(list, e.plain(r.id, c.s.now()))
	}
	return map[string]any{"chunk": list}
}

func stateKey(e *event) string {
	if e.key == nil {
		return ""
	}
	return *e.key
}

func (c *call) joinedMembers() any {
	r, f := c.joinedRoom()
	if f != nil {
		return f
	}
	all := map[string]any{}
	for _, u := range r.usersWith("join") {
		var content struct {
			Name string `json:"displayname"`
		}
		_ = json.Unmarshal(r.state[stateID{"m.room.member", u}].content, &content) // without a name on failure
		all[u] = map[string]string{"display_name": content.Name, "avatar_url": ""}
	}
	return map[string]any{"joined": all}
}

// content reads an event's content: an object of limited size.
func (c *call) content(extra int) (json.RawMessage, *failure) {
	var object map[string]json.RawMessage
	if f := c.read(&object); f != nil {
		return nil, f
	}
	var b bytes.Buffer
	_ = json.Compact(&b, c.body) // it was decoded before
	if b.Len()+extra > maxEvent {
		return nil, fail(http.StatusRequestEntityTooLarge, "M_BAD_JSON", fmt.Sprintf("gomatrixserverlib: event is too long, length %d bytes > maximum %d bytes", b.Len()+extra, maxEvent))
	}
	return b.Bytes(), nil
}

// overhead is the approximate size of an event without its content.
const overhead = 900

func (c *call) setState() any {
	r, f := c.joinedRoom()
	if f != nil {
		return f
	}
	content, f := c.content(overhead)
	if f != nil {
		return f
	}
	typ, key := c.PathValue("type"), c.PathValue("key")
	l := r.levels()
	if l.of(c.user.id) < l.needed(typ, true) || strings.HasPrefix(key, "@") && key != c.user.id && typ != "m.room.member" {
		return forbidden("You don't have permission to send that event.")
	}
	e := c.s.addEvent(r, &event{typ: typ, key: &key, sender: c.user.id, content: content})
	return map[string]string{"event_id": e.id}
}

// dedupe returns the first response for a repeated transaction ID, and stores the response of a new
// one.
func (c *call) dedupe(do func() any) any {
	key := txn{c.dev.token, c.URL.Path}
	if known, ok := c.s.txns[key]; ok {
		return known
	}
	result := do()
	if _, bad := result.(*failure); !bad {
		c.s.txns[key] = mustJSON(result)
	}
	return result
}

func (c *call) send() any {
	repeat := true
	result := c.dedupe(func() any {
		repeat = false
		return c.sendNew()
	})
	if f, bad := result.(*failure); bad {
		return f
	}
	var made struct {
		ID string `json:"event_id"`
	}
	_ = json.Unmarshal(mustJSON(result), &made) // our own JSON
	c.s.sends = append(c.s.sends, Send{
		At: time.Now().Add(c.s.offset), User: c.user.id, Device: c.dev.id, Room: c.PathValue("room"), Type: c.PathValue("type"),
		Txn: c.PathValue("txn"), EventID: made.ID, Repeat: repeat, Content: c.body,
	})
	return result
}

func (c *call) sendNew() any {
	r, f := c.joinedRoom()
	if f != nil {
		return f
	}
	content, f := c.content(overhead)
	if f != nil {
		return f
	}
	typ := c.PathValue("type")
	if l := r.levels(); l.of(c.user.id) < l.needed(typ, false) {
		return forbidden("You don't have permission to send that event.")
	}
	e := c.s.addEvent(r, &event{typ: typ, sender: c.user.id, content: content, token: c.dev.token, txn: c.PathValue("txn")})
	return map[string]string{"event_id": e.id}
}

func (c *call) redact() any {
	return c.dedupe(func() any {
		r, f := c.joinedRoom()
		if f != nil {
			return f
		}
		e := r.events[c.PathValue("event")]
		if e == nil {
			return notFound("event")
		}
		if l := r.levels(); e.sender != c.user.id && l.of(c.user.id) < l.Redact {
			return forbidden("You don't have permission to redact this event.")
		}
		var object map[string]json.RawMessage
		if f := c.read(&object); f != nil {
			return f
		}
		by := c.s.addEvent(r, &event{
			typ: "m.room.redaction", sender: c.user.id, content: withField(c.body, "redacts", e.id), redacts: e.id,
			token: c.dev.token, txn: c.PathValue("txn"),
		})
		r.redact(by)
		return map[string]string{"event_id": by.id}
	})
}

func (c *call) event() any {
	r, until, f := c.visibleRoom()
	if f != nil {
		return notFound("event")
	}
	e := r.events[c.PathValue("event")]
	if e == nil || e.pos > until {
		return notFound("event")
	}
	return e.wire("", r.id, c.s.now())
}

// relations lists the events with a relation to an event, newest first.
func (c *call) relations() any {
	r, until, f := c.visibleRoom()
	if f != nil {
		return notFound("event")
	}
	chunk := []json.RawMessage{}
	for _, e := range slices.Backward(r.timeline) {
		var content struct {
			Relates struct {
				Type  string `json:"rel_type"`
				Event string `json:"event_id"`
			} `json:"m.relates_to"`
		}
		if e.repeated || e.event.pos > until || e.event.redaction != nil || json.Unmarshal(e.event.content, &content) != nil {
			continue
		}
		if content.Relates.Type == c.PathValue("rel") && content.Relates.Event == c.PathValue("event") && len(chunk) < 50 {
			chunk = append(chunk, e.event.wire("", r.id, c.s.now()))
		}
	}
	return map[string]any{"chunk": chunk}
}

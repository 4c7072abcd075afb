package matrixtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// defaultTimeline limits a room's timeline in a /sync without a filter.
const defaultTimeline = 20

// filterPart selects events by type.
type filterPart struct {
	Types    []string `json:"types"`
	NotTypes []string `json:"not_types"`
	Limit    int      `json:"limit"`
}

func (p filterPart) wants(typ string) bool {
	in := func(list []string) bool {
		return slices.ContainsFunc(list, func(pattern string) bool {
			prefix, wild := strings.CutSuffix(pattern, "*")
			return pattern == typ || wild && strings.HasPrefix(typ, prefix)
		})
	}
	return !in(p.NotTypes) && (p.Types == nil || in(p.Types))
}

type filter struct {
	AccountData filterPart `json:"account_data"`
	Room        struct {
		Rooms       []string   `json:"rooms"`
		NotRooms    []string   `json:"not_rooms"`
		Timeline    filterPart `json:"timeline"`
		State       filterPart `json:"state"`
		Ephemeral   filterPart `json:"ephemeral"`
		AccountData filterPart `json:"account_data"`
	} `json:"room"`
}

type events struct {
	Events []json.RawMessage `json:"events"`
}

type timeline struct {
	Events  []json.RawMessage `json:"events"`
	Limited bool              `json:"limited"`
	Prev    string            `json:"prev_batch,omitempty"`
}

type joinedRoom struct {
	Summary     map[string]any `json:"summary,omitempty"`
	State       *events        `json:"state,omitempty"`
	Timeline    timeline       `json:"timeline"`
	Ephemeral   *events        `json:"ephemeral,omitempty"`
	AccountData *events        `json:"account_data,omitempty"`
	Unread      map[string]int `json:"unread_notifications"`
}

type leftRoom struct {
	State    *events  `json:"state,omitempty"`
	Timeline timeline `json:"timeline"`
}

type invitedRoom struct {
	State events `json:"invite_state"`
}

type syncRooms struct {
	Join   map[string]*joinedRoom  `json:"join,omitempty"`
	Invite map[string]*invitedRoom `json:"invite,omitempty"`
	Leave  map[string]*leftRoom    `json:"leave,omitempty"`
}

type deviceLists struct {
	Changed []string `json:"changed,omitempty"`
	Left    []string `json:"left,omitempty"`
}

type syncBody struct {
	Next        string         `json:"next_batch"`
	AccountData *events        `json:"account_data,omitempty"`
	ToDevice    *events        `json:"to_device,omitempty"`
	DeviceLists *deviceLists   `json:"device_lists,omitempty"`
	OneTime     map[string]int `json:"device_one_time_keys_count"`
	Fallback    []string       `json:"device_unused_fallback_key_types"`
	Rooms       *syncRooms     `json:"rooms,omitempty"`
}

// window is the range of one /sync.
type window struct {
	since        int64
	initial      bool // no since token
	full         bool // all state is wanted
	filter       filter
	limit        int // of timelines
	now, nowReal int64
}

func (c *call) window() (window, *failure) {
	q := c.URL.Query()
	w := window{initial: q.Get("since") == "", full: q.Get("full_state") == "true"}
	if !w.initial {
		var f *failure
		if w.since, f = parseToken(q.Get("since")); f != nil {
			return w, f
		}
		w.since = min(w.since, c.s.pos) // a token of the future means now
	}
	text := q.Get("filter")
	if n, err := strconv.Atoi(text); err == nil {
		if n < 0 || n >= len(c.user.filters) {
			return w, fail(http.StatusBadRequest, "M_INVALID_PARAM", "no such filter")
		}
		text = string(c.user.filters[n])
	}
	if text != "" {
		if err := json.Unmarshal([]byte(text), &w.filter); err != nil {
			return w, fail(http.StatusBadRequest, "M_INVALID_PARAM", "bad filter: "+err.Error())
		}
	}
	if w.limit = w.filter.Room.Timeline.Limit; w.limit <= 0 {
		w.limit = defaultTimeline
	}
	if n, ok := c.Context().Value(cutKey{}).(int); ok {
		w.limit = min(w.limit, n)
	}
	return w, nil
}

// sync waits for news and returns it.
func (c *call) sync(http.ResponseWriter) any {
	s := c.s
	s.mu.Lock()
	w, f := c.window()
	if f != nil {
		s.mu.Unlock()
		return f
	}
	// The client has received what lies before the token.
	c.dev.inbox = slices.DeleteFunc(c.dev.inbox, func(m toDevice) bool { return !w.initial && m.pos <= w.since })
	end := time.Now().Add(time.Duration(c.number("timeout", 0)) * time.Millisecond)
	for {
		if s.tokens[c.dev.token] != c.dev || c.user.deactivated {
			s.mu.Unlock()
			return c.unauthorized()
		}
		body, expires := c.collect(&w)
		wake := c.user.wake
		s.mu.Unlock()
		wait := time.Until(end)
		if body.hasNews() || w.initial || w.full || wait <= 0 {
			return body
		}
		timer := time.NewTimer(min(wait, expires))
		select {
		case <-wake:
		case <-timer.C:
		case <-c.Context().Done(): // the client disconnected, or Stop did
			timer.Stop()
			return nil
		}
		timer.Stop()
		s.mu.Lock()
	}
}

func (b *syncBody) hasNews() bool {
	return b.AccountData != nil || b.ToDevice != nil || b.DeviceLists != nil || b.Rooms != nil
}

// collect builds the response and returns when to check again at the latest. The lock is held.
func (c *call) collect(w *window) (*syncBody, time.Duration) {
	w.now, w.nowReal = c.s.now(), time.Now().UnixMilli()
	rooms := &syncRooms{Join: map[string]*joinedRoom{}, Invite: map[string]*invitedRoom{}, Leave: map[string]*leftRoom{}}
	data, expires := c.accountDataSince(w), time.Hour
	for id, r := range c.user.rooms {
		if r.last <= w.since && len(r.typing) == 0 && data[id] == nil && !w.full {
			continue
		}
		if w.filter.Room.Rooms != nil && !slices.Contains(w.filter.Room.Rooms, id) || slices.Contains(w.filter.Room.NotRooms, id) {
			continue
		}
		switch r.membership(c.user.id) {
		case "join":
			expires = min(expires, c.s.expireTyping(r, w.nowReal))
			if j := c.syncJoined(r, w, data[id]); j != nil {
				rooms.Join[id] = j
			}
		case "invite":
			if i := c.syncInvited(r, w); i != nil {
				rooms.Invite[id] = i
			}
		case "leave", "ban":
			if l := c.syncLeft(r, w); l != nil {
				rooms.Leave[id] = l
			}
		}
	}
	b := &syncBody{
		Next: fmt.Sprintf("s%d", c.s.pos), OneTime: c.dev.counts(), Fallback: c.dev.unusedFallback(),
		AccountData: data[""], DeviceLists: c.deviceListsSince(w),
	}
	if len(rooms.Join)+len(rooms.Invite)+len(rooms.Leave) > 0 {
		b.Rooms = rooms
	}
	if len(c.dev.inbox) > 0 {
		b.ToDevice = &events{}
		for _, m := range c.dev.inbox {
			b.ToDevice.Events = append(b.ToDevice.Events, m.raw)
		}
	}
	return b, expires
}

// expireTyping ends expired typing notices and returns the time until the next one expires.
func (s *Server) expireTyping(r *room, now int64) time.Duration {
	next := time.Hour
	for user, until := range r.typing {
		if until <= now {
			delete(r.typing, user)
			r.typingAt = s.next()
			s.wakeMembers(r, r.typingAt)
			continue
		}
		next = min(next, time.Duration(until-now)*time.Millisecond)
	}
	return next
}

func (c *call) syncJoined(r *room, w *window, data *events) *joinedRoom {
	fresh := w.initial || r.membershipAt(c.user.id, w.since) != "join"
	j := &joinedRoom{AccountData: data, Unread: map[string]int{"highlight_count": 0, "notification_count": 0}}
	from := w.since
	if fresh {
		from = 0
	}
	first := c.fillTimeline(&j.Timeline, r, from, c.s.pos, w)
	var state []*event
	switch {
	case fresh || w.full:
		state = r.stateAt(first)
		j.Summary = r.summary(c.user.id)
	case j.Timeline.Limited:
		for _, e := range r.stateAt(first) {
			if e.pos > w.since {
				state = append(state, e)
			}
		}
	}
	for _, e := range state {
		if !w.filter.Room.State.wants(e.typ) {
			continue
		}
		if j.State == nil {
			j.State = &events{}
		}
		j.State.Events = append(j.State.Events, e.wire(c.dev.token, "", w.now))
	}
	if !fresh && r.changedMembers(w.since) {
		j.Summary = r.summary(c.user.id)
	}
	j.Ephemeral = r.ephemeral(w, fresh)
	if !fresh && !w.full && len(j.Timeline.Events) == 0 && j.Ephemeral == nil && data == nil {
		return nil // the filter excluded everything
	}
	return j
}

// fillTimeline adds the newest entries after a position to a timeline. It returns the position of its
// beginning.
func (c *call) fillTimeline(t *timeline, r *room, from, until int64, w *window) (first int64) {
	t.Events = []json.RawMessage{}
	var list []entry
	for _, e := range r.timeline[r.indexAfter(from):r.indexAfter(until)] {
		if w.filter.Room.Timeline.wants(e.event.typ) {
			list = append(list, e)
		}
	}
	if t.Limited = len(list) > w.limit; t.Limited {
		list = list[len(list)-w.limit:]
	}
	first = until + 1
	if len(list) > 0 {
		first = list[0].pos
	}
	t.Prev = fmt.Sprintf("t%d", first-1)
	for _, e := range list {
		t.Events = append(t.Events, e.event.wire(c.dev.token, "", w.now))
	}
	return first
}

func (r *room) changedMembers(since int64) bool {
	for _, steps := range r.memberAt {
		if steps[len(steps)-1].pos > since {
			return true
		}
	}
	return false
}

func (r *room) summary(self string) map[string]any {
	joined, invited := r.usersWith("join"), r.usersWith("invite")
	heroes := slices.DeleteFunc(r.usersWith("join", "invite"), func(u string) bool { return u == self })
	return map[string]any{
		"m.heroes": heroes[:min(len(heroes), 5)], "m.joined_member_count": len(joined), "m.invited_member_count": len(invited),
	}
}

func (r *room) ephemeral(w *window, fresh bool) *events {
	var list []json.RawMessage
	if part := w.filter.Room.Ephemeral; part.wants("m.typing") && (r.typingAt > w.since || fresh && len(r.typing) > 0) {
		users := slices.Sorted(maps.Keys(r.typing))
		if users == nil {
			users = []string{}
		}
		list = append(list, mustJSON(map[string]any{"type": "m.typing", "content": map[string]any{"user_ids": users}}))
	}
	if w.filter.Room.Ephemeral.wants("m.receipt") {
		content := map[string]map[string]map[string]map[string]any{}
		for who, rc := range r.receipts {
			if rc.pos <= w.since && !fresh {
				continue
			}
			if content[rc.event] == nil {
				content[rc.event] = map[string]map[string]map[string]any{}
			}
			if content[rc.event][rc.kind] == nil {
				content[rc.event][rc.kind] = map[string]map[string]any{}
			}
			read := map[string]any{"ts": rc.ts}
			if who.thread != "" {
				read["thread_id"] = who.thread
			}
			content[rc.event][rc.kind][who.user] = read
		}
		if len(content) > 0 {
			list = append(list, mustJSON(map[string]any{"type": "m.receipt", "content": content}))
		}
	}
	if list == nil {
		return nil
	}
	return &events{list}
}

func (c *call) syncInvited(r *room, w *window) *invitedRoom {
	steps := r.memberAt[c.user.id]
	own := steps[len(steps)-1]
	if own.pos <= w.since {
		return nil
	}
	i := &invitedRoom{}
	for _, typ := range []string{"m.room.create", "m.room.join_rules", "m.room.encryption", "m.room.name", "m.room.avatar", "m.room.canonical_alias"} {
		if e := r.state[stateID{typ, ""}]; e != nil {
			i.State.Events = append(i.State.Events, e.stripped(false))
		}
	}
	if e := r.state[stateID{"m.room.member", own.event.sender}]; e != nil {
		i.State.Events = append(i.State.Events, e.stripped(false))
	}
	i.State.Events = append(i.State.Events, own.event.stripped(true))
	return i
}

func (c *call) syncLeft(r *room, w *window) *leftRoom {
	steps := r.memberAt[c.user.id]
	own := steps[len(steps)-1]
	if w.initial || own.pos <= w.since {
		return nil
	}
	l := &leftRoom{}
	from := own.pos - 1 // a user who was only invited sees the end of the invitation
	if r.membershipAt(c.user.id, own.pos-1) == "join" {
		from = w.since
	}
	c.fillTimeline(&l.Timeline, r, from, own.pos, w)
	return l
}

// accountDataSince returns the changed account data by room; "" is that of no room.
func (c *call) accountDataSince(w *window) map[string]*events {
	by := map[string]*events{}
	for _, key := range slices.Sorted(maps.Keys(c.user.data)) {
		room, typ, _ := strings.Cut(key, " ")
		part := w.filter.Room.AccountData
		if room == "" {
			part = w.filter.AccountData
		}
		d := c.user.data[key]
		if d.pos <= w.since || !part.wants(typ) {
			continue
		}
		if by[room] == nil {
			by[room] = &events{}
		}
		by[room].Events = append(by[room].Events, mustJSON(map[string]any{"type": typ, "content": d.content}))
	}
	return by
}

// deviceListsSince returns the users whose devices have changed, and those who no longer share a
// room.
func (c *call) deviceListsSince(w *window) *deviceLists {
	if w.initial || c.s.peersAt <= w.since {
		return nil
	}
	shared, news := map[string]bool{c.user.id: true}, map[string]bool{}
	gone := map[string]bool{}
	for _, r := range c.user.rooms {
		steps := r.memberAt[c.user.id]
		own := steps[len(steps)-1]
		for user, theirs := range r.memberAt {
			their := theirs[len(theirs)-1]
			switch {
			case own.membership == "join" && their.membership == "join":
				shared[user] = true
				if r.membershipAt(user, w.since) != "join" || r.membershipAt(c.user.id, w.since) != "join" {
					news[user] = true
				}
			case own.pos > w.since || their.pos > w.since:
				gone[user] = true
			}
		}
	}
	l := &deviceLists{}
	for user := range shared {
		if u := c.s.users[user]; u != nil && (u.keysAt > w.since || news[user] && user != c.user.id) {
			l.Changed = append(l.Changed, user)
		}
	}
	for user := range gone {
		if !shared[user] {
			l.Left = append(l.Left, user)
		}
	}
	if len(l.Changed)+len(l.Left) == 0 {
		return nil
	}
	slices.Sort(l.Changed)
	slices.Sort(l.Left)
	return l
}

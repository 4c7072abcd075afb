package matrixtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// messages pages through a timeline. A token t5 or s5 is after position 5.
func (c *call) messages() any {
	r, until, f := c.visibleRoom()
	if f != nil {
		return f
	}
	q := c.URL.Query()
	back := q.Get("dir") != "f"
	from, f := c.position("from", back, until)
	if f != nil {
		return f
	}
	to, f := c.position("to", !back, until)
	if f != nil {
		return f
	}
	var part filterPart
	if text := q.Get("filter"); text != "" {
		if err := json.Unmarshal([]byte(text), &part); err != nil {
			return fail(http.StatusBadRequest, "M_INVALID_PARAM", "bad filter")
		}
	}
	limit := max(c.number("limit", 10), 1)
	chunk := []json.RawMessage{}
	end, more := from, false
	for _, e := range r.page(from, to, until, back) {
		if e.repeated || !part.wants(e.event.typ) {
			continue
		}
		if len(chunk) == limit {
			more = true
			break
		}
		chunk = append(chunk, e.event.wire(c.dev.token, r.id, c.s.now()))
		end = e.pos
		if back {
			end = e.pos - 1
		}
	}
	result := map[string]any{"start": fmt.Sprintf("t%d", from), "chunk": chunk}
	if more {
		result["end"] = fmt.Sprintf("t%d", end)
	}
	return result
}

// page lists the entries between two positions, in the requested order.
func (r *room) page(from, to, until int64, back bool) []entry {
	low, high := from, min(to, until)
	if back {
		low, high = to, min(from, until)
	}
	list := slices.Clone(r.timeline[r.indexAfter(low):max(r.indexAfter(high), r.indexAfter(low))])
	if back {
		slices.Reverse(list)
	}
	return list
}

// position parses a token. Without one it is the newest end, or the oldest.
func (c *call) position(name string, newest bool, until int64) (int64, *failure) {
	text := c.URL.Query().Get(name)
	if text == "" {
		if newest {
			return until, nil
		}
		return 0, nil
	}
	return parseToken(text)
}

func parseToken(text string) (int64, *failure) {
	if text != "" && (text[0] == 's' || text[0] == 't') {
		if n, err := strconv.ParseInt(text[1:], 10, 64); err == nil && n >= 0 {
			return n, nil
		}
	}
	return 0, fail(http.StatusBadRequest, "M_INVALID_PARAM", "Invalid token: "+strconv.Quote(text))
}

func (c *call) typing() any {
	r, f := c.joinedRoom()
	if f != nil {
		return f
	}
	var q struct {
		Typing  bool  `json:"typing"`
		Timeout int64 `json:"timeout"`
	}
	if f := c.read(&q); f != nil {
		return f
	}
	if c.PathValue("user") != c.user.id {
		return forbidden("Cannot set another user's typing state")
	}
	if q.Typing {
		if q.Timeout <= 0 {
			q.Timeout = 30000
		}
		if r.typing == nil {
			r.typing = map[string]int64{}
		}
		r.typing[c.user.id] = time.Now().UnixMilli() + q.Timeout
	} else {
		delete(r.typing, c.user.id)
	}
	r.typingAt = c.s.next()
	c.s.wakeMembers(r, r.typingAt)
	return empty{}
}

func (c *call) receipt() any {
	r, f := c.joinedRoom()
	if f != nil {
		return f
	}
	var q struct {
		Thread *string `json:"thread_id"`
	}
	if f := c.read(&q); f != nil {
		return f
	}
	thread := ""
	if q.Thread != nil {
		if thread = *q.Thread; thread == "" {
			return fail(http.StatusBadRequest, "M_INVALID_PARAM", "thread_id must not be empty")
		}
	}
	c.setReceipt(r, c.PathValue("event"), c.PathValue("kind"), thread)
	return empty{}
}

func (c *call) readMarkers() any {
	r, f := c.joinedRoom()
	if f != nil {
		return f
	}
	var q map[string]any
	if f := c.read(&q); f != nil {
		return f
	}
	if e, ok := q["m.read"].(string); ok {
		c.setReceipt(r, e, "m.read", "")
	}
	return empty{}
}

func (c *call) setReceipt(r *room, event, kind, thread string) {
	pos := c.s.next()
	r.receipts[reader{c.user.id, thread}] = receipt{pos: pos, event: event, kind: kind, ts: c.s.now()}
	c.s.wakeMembers(r, pos)
}

package matrixtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"reverie/internal/matrix/homeserver/homeservertest"
	"reverie/internal/matrix/matrixtest"
)

// twin sends requests to one homeserver and records the answers without IDs and times.
type twin struct {
	t     *testing.T
	url   string
	name  string
	vars  map[string]string
	notes []string // one for each step
}

type step struct {
	as, method, path, body string
	keep                   map[string]string // variable ← path in the answer
	shape                  bool              // compare which fields the answer has, not only the status
	wait                   string            // of a /sync: repeat until the answer contains this
}

var variable = regexp.MustCompile(`\{(\w+)\}`)

func (w *twin) fill(text string, escape bool) string {
	return variable.ReplaceAllStringFunc(text, func(m string) string {
		v, ok := w.vars[m[1:len(m)-1]]
		if !ok {
			return m
		}
		if escape {
			return url.PathEscape(v)
		}
		return v
	})
}

// request repeats a request until it is not rate-limited.
func (w *twin) request(s step) (status int, answer []byte) {
	w.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if status, answer = w.requestOnce(s); status != http.StatusTooManyRequests {
			break
		}
	}
	return status, answer
}

func (w *twin) requestOnce(s step) (int, []byte) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), s.method, w.url+w.fill(s.path, true), strings.NewReader(w.fill(s.body, false)))
	if err != nil {
		w.t.Fatal(err)
	}
	if s.as != "" {
		req.Header.Set("Authorization", "Bearer "+w.vars[s.as])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, data
}

func (w *twin) do(s step) {
	w.t.Helper()
	status, data := w.request(s)
	for end := time.Now().Add(10 * time.Second); s.wait != "" && !bytes.Contains(data, []byte(w.fill(s.wait, false))) && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
		status, data = w.request(s)
	}
	note := fmt.Sprintf("%s %s as %s: %d", s.method, s.path, s.as, status)
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		w.notes = append(w.notes, note+" no JSON")
		return
	}
	if m, ok := value.(map[string]any); ok && m["errcode"] != nil {
		note += fmt.Sprint(" ", m["errcode"])
	}
	for name, path := range s.keep {
		v, ok := dig(value, w.fill(path, false)).(string)
		if !ok {
			w.t.Fatalf("%s: no %s in %s", note, path, data)
		}
		w.vars[name] = v
	}
	if s.shape {
		lines := shape(value, "") // sorted: servers differ in the order in which they show state
		slices.Sort(lines)
		note += "\n    " + strings.Join(slices.Compact(lines), "\n    ")
	}
	w.notes = append(w.notes, note)
}

// dig follows a path of fields, separated by |.
func dig(v any, path string) any {
	for part := range strings.SplitSeq(path, "|") {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[part]
	}
	return v
}

// shape lists the fields of a value. IDs as field names become <id>.
func shape(v any, at string) []string {
	switch v := v.(type) {
	case map[string]any:
		var lines []string
		for _, k := range slices.Sorted(maps.Keys(v)) {
			name := k
			if strings.ContainsAny(k, "@!$") {
				name = "<id>"
			}
			if slices.Contains(ignored, k) {
				continue
			}
			lines = append(lines, shape(v[k], at+"."+name)...)
		}
		if len(lines) == 0 {
			return nil // {} and nothing are the same to a client
		}
		return lines
	case []any:
		var lines []string
		for _, e := range v {
			if m, ok := e.(map[string]any); ok && m["type"] != nil {
				lines = append(lines, at+"[] "+fmt.Sprint(m["type"]))
				lines = append(lines, shape(e, at+"[]")...)
			}
		}
		return lines
	default:
		return []string{at}
	}
}

// ignored are fields that may differ between servers and that our clients do not read.
var ignored = []string{
	"presence", "age", "prev_sender", "replaces_state", "summary", "unread_notifications", "home_server", "error",
	"unread_thread_notifications", "avatar_url", "knock", "device_unused_fallback_key_types", "sender_key", "m.relations",
	"org.matrix.msc3575.initial", "membership_events_default", "historical", "notifications", "retry_after_ms", "depth", "origin",
	"power_levels_default", "room", "ephemeral", "device_lists", "global", "invite_room_state",
}

func steps() []step {
	const v3, room = "/_matrix/client/v3", "/_matrix/client/v3/rooms/{room}"
	login := func(who string) step {
		return step{method: "POST", path: v3 + "/login", shape: true,
			body: `{"type":"m.login.password","identifier":{"type":"m.id.user","user":"` + who + `"},"password":"` + password + `"}`,
			keep: map[string]string{who: "access_token", who + "_id": "user_id", who + "_device": "device_id"}}
	}
	say := func(who, txn, body string) step {
		return step{as: who, method: "PUT", path: room + "/send/m.room.message/" + txn, body: `{"msgtype":"m.text","body":"` + body + `"}`, keep: map[string]string{txn: "event_id"}, shape: true}
	}
	sync := func(who, query, wait string) step {
		return step{as: who, method: "GET", path: v3 + "/sync?" + query, keep: map[string]string{who + "_since": "next_batch"}, shape: true, wait: wait}
	}
	hide := func(s step) step { s.shape = false; return s }
	return []step{
		{method: "GET", path: v3 + "/login", shape: true},
		{method: "POST", path: v3 + "/login", body: `{"type":"m.login.password","identifier":{"type":"m.id.user","user":"you"},"password":"wrong"}`},
		{method: "POST", path: v3 + "/login", body: `{"type":"m.login.magic"}`},
		{method: "GET", path: v3 + "/account/whoami"},
		login("you"), login("bot"), login("other"),
		{as: "you", method: "GET", path: v3 + "/account/whoami", shape: true},
		{as: "nobody", method: "GET", path: v3 + "/sync"},
		{as: "you", method: "GET", path: v3 + "/nothing/of/that/name"},
		{as: "you", method: "GET", path: v3 + "/devices", shape: false},
		{as: "you", method: "GET", path: v3 + "/user/{you_id}/account_data/m.direct"},
		{as: "you", method: "PUT", path: v3 + "/user/{you_id}/account_data/m.direct", body: `{"@bot:x":["!r"]}`},
		{as: "you", method: "GET", path: v3 + "/user/{you_id}/account_data/m.direct", shape: true},
		{as: "you", method: "GET", path: v3 + "/user/{bot_id}/account_data/m.direct"},
		{as: "you", method: "POST", path: v3 + "/createRoom", shape: true, keep: map[string]string{"room": "room_id"},
			body: `{"name":"A room","preset":"trusted_private_chat","is_direct":true,"invite":["{bot_id}"],"initial_state":[{"type":"m.room.encryption","state_key":"","content":{"algorithm":"m.megolm.v1.aes-sha2"}}]}`},
		hide(sync("you", "", `"is_direct"`)), // Dendrite shows the invitation as state first, because it is late
		sync("bot", "", `invite_state`),
		{as: "bot", method: "GET", path: room + "/state", shape: true},
		{as: "other", method: "GET", path: room + "/state"},
		{as: "other", method: "PUT", path: room + "/send/m.room.message/x", body: `{"body":"hello"}`},
		{as: "other", method: "POST", path: room + "/join", body: `{}`},
		{as: "bot", method: "POST", path: room + "/join", body: `{}`, shape: true},
		say("bot", "t1", "right after"),
		say("bot", "t1", "right after"),
		hide(sync("bot", "since={bot_since}", `right after`)), // Dendrite moves m.room.create from the timeline to the state
		hide(sync("you", "since={you_since}", `right after`)),
		{as: "you", method: "PUT", path: room + "/send/m.room.message/bad1", body: `no json`},
		{as: "you", method: "PUT", path: room + "/send/m.room.message/bad2", body: `[1]`},
		{as: "you", method: "PUT", path: room + "/send/m.room.message/bad3", body: `{"body":"` + strings.Repeat("x", 70000) + `"}`},
		{as: "you", method: "GET", path: room + "/event/{t1}", shape: true},
		{as: "bot", method: "GET", path: room + "/event/{t1}", shape: true},
		{as: "you", method: "GET", path: room + "/event/$nothere"},
		{as: "other", method: "GET", path: room + "/event/{t1}"},
		{as: "you", method: "GET", path: room + "/state/m.room.name/", shape: true},
		{as: "you", method: "GET", path: room + "/state/m.room.name", shape: true},
		{as: "you", method: "GET", path: room + "/state/m.room.nothing/"},
		{as: "bot", method: "PUT", path: room + "/state/m.room.topic/", body: `{"topic":"we"}`, shape: true},
		{as: "you", method: "GET", path: room + "/members", shape: true},
		{as: "you", method: "GET", path: room + "/joined_members", shape: true},
		{as: "you", method: "PUT", path: room + "/typing/{you_id}", body: `{"typing":true,"timeout":30000}`},
		{as: "you", method: "PUT", path: room + "/typing/{bot_id}", body: `{"typing":true,"timeout":30000}`},
		{as: "you", method: "POST", path: room + "/receipt/m.read/{t1}", body: `{}`},
		say("you", "t2", "two"), say("you", "t3", "three"), say("you", "t4", "four"), say("you", "t5", "five"),
		sync("bot", "since={bot_since}&filter="+url.QueryEscape(`{"room":{"timeline":{"limit":2}}}`), `five`),
		{as: "bot", method: "GET", path: room + "/messages?dir=b&limit=3", shape: true, keep: map[string]string{"end": "end"}},
		{as: "bot", method: "GET", path: room + "/messages?dir=b&limit=2&from={end}", shape: true},
		{as: "bot", method: "GET", path: room + "/messages?dir=b&limit=100"},
		{as: "bot", method: "GET", path: room + "/messages?dir=b&from=nonsense"},
		{as: "you", method: "PUT", path: room + "/redact/{t2}/r1", body: `{"reason":"x"}`, shape: true},
		sync("bot", "since={bot_since}", `m.room.redaction`),
		{as: "bot", method: "GET", path: room + "/event/{t2}", shape: true},
		// Keys.
		{as: "you", method: "POST", path: v3 + "/keys/query", body: `{"device_keys":{"{bot_id}":[]}}`, shape: true},
		{as: "you", method: "POST", path: v3 + "/keys/claim", body: `{"one_time_keys":{"{bot_id}":{"{bot_device}":"signed_curve25519"}}}`, shape: true},
		{as: "bot", method: "POST", path: v3 + "/keys/upload", body: `{"one_time_keys":{"signed_curve25519:AAAA":{"key":"k1"},"signed_curve25519:AAAB":{"key":"k2"}}}`, shape: true},
		{as: "bot", method: "POST", path: v3 + "/keys/upload", body: `{"one_time_keys":{"signed_curve25519:AAAA":{"key":"k1"}}}`, shape: true},
		{as: "bot", method: "POST", path: v3 + "/keys/upload", body: `{"one_time_keys":{"signed_curve25519:AAAA":{"key":"other"}}}`},
		{as: "you", method: "POST", path: v3 + "/keys/claim", body: `{"one_time_keys":{"{bot_id}":{"{bot_device}":"signed_curve25519"}}}`},
		{as: "bot", method: "POST", path: v3 + "/keys/upload", body: `{}`, shape: true},
		{as: "you", method: "PUT", path: v3 + "/sendToDevice/m.test/d1", body: `{"messages":{"{bot_id}":{"{bot_device}":{"a":1}}}}`, shape: true},
		{as: "you", method: "PUT", path: v3 + "/sendToDevice/m.test/d1", body: `{"messages":{"{bot_id}":{"{bot_device}":{"a":1}}}}`},
		sync("bot", "since={bot_since}", `m.test`),
		// Backup.
		{as: "you", method: "GET", path: v3 + "/room_keys/version"},
		{as: "you", method: "POST", path: v3 + "/room_keys/version", body: `{"algorithm":"m.megolm_backup.v1.curve25519-aes-sha2","auth_data":{"public_key":"x"}}`, shape: true, keep: map[string]string{"version": "version"}},
		{as: "you", method: "GET", path: v3 + "/room_keys/version", shape: true},
		{as: "you", method: "GET", path: v3 + "/room_keys/version/{version}", shape: true},
		{as: "you", method: "PUT", path: v3 + "/room_keys/keys/{room}/S?version={version}", body: `{"first_message_index":1,"forwarded_count":0,"is_verified":true,"session_data":{"a":"b"}}`, shape: true},
		{as: "you", method: "PUT", path: v3 + "/room_keys/keys?version={version}", body: `{"rooms":{"{room}":{"sessions":{"T":{"first_message_index":1,"forwarded_count":0,"is_verified":true,"session_data":{"a":"b"}}}}}}`, shape: true},
		{as: "you", method: "PUT", path: v3 + "/room_keys/keys/{room}/S?version=99", body: `{"first_message_index":1,"forwarded_count":0,"is_verified":true,"session_data":{"a":"b"}}`},
		{as: "you", method: "GET", path: v3 + "/room_keys/keys/{room}/S?version={version}", shape: true},
		{as: "you", method: "GET", path: v3 + "/room_keys/keys/{room}/U?version={version}"},
		{as: "you", method: "GET", path: v3 + "/room_keys/keys?version={version}", shape: true},
		// Leaving.
		{as: "bot", method: "POST", path: room + "/kick", body: `{"user_id":"{other_id}"}`},
		{as: "other", method: "POST", path: room + "/kick", body: `{"user_id":"{bot_id}"}`},
		{as: "you", method: "POST", path: room + "/kick", body: `{"user_id":"{bot_id}"}`}, // equal power: refused
		{as: "bot", method: "POST", path: room + "/leave", body: `{}`, shape: true},
		say("you", "t6", "six"),
		sync("bot", "since={bot_since}", `leave`),
		{as: "bot", method: "PUT", path: room + "/send/m.room.message/late", body: `{"body":"x","msgtype":"m.text"}`},
		{as: "bot", method: "GET", path: room + "/event/{t6}"},
		{as: "bot", method: "POST", path: room + "/join", body: `{}`},
		{as: "you", method: "POST", path: room + "/invite", body: `{"user_id":"{other_id}"}`, shape: true},
		hide(sync("other", "", `invite_state`)), // Dendrite leaves out who invites, here and not before
		{as: "other", method: "POST", path: room + "/leave", body: `{}`},
		hide(sync("other", "since={other_since}", `leave`)), // Dendrite makes an event up here
		// Devices.
		{as: "you", method: "DELETE", path: v3 + "/devices/{you_device}", body: `{}`, shape: true},
		{as: "you", method: "POST", path: v3 + "/logout", body: `{}`},
		{as: "you", method: "GET", path: v3 + "/account/whoami"},
	}
}

// TestTwin sends the real homeserver and the fake the same requests. If their answers differ, the fake is
// wrong.
func TestTwin(t *testing.T) {
	if testing.Short() {
		t.Skip("needs the real homeserver: left out with -short")
	}
	real, double := homeservertest.Start(t), matrixtest.Start(t)
	var notes [2][]string
	for i, s := range []struct {
		url, name string
		register  func(context.Context, string, string) (string, error)
	}{{real.URL, real.Name, real.Register}, {double.URL, double.Name, double.Register}} {
		for _, name := range []string{"you", "bot", "other"} {
			if _, err := s.register(t.Context(), name, password); err != nil {
				t.Fatal(err)
			}
		}
		w := &twin{t: t, url: s.url, name: s.name, vars: map[string]string{"nobody": "no such token"}}
		for _, step := range steps() {
			w.do(step)
		}
		notes[i] = w.notes
	}
	for i := range notes[0] {
		if diff := cmp.Diff(strings.Split(notes[0][i], "\n"), strings.Split(notes[1][i], "\n")); diff != "" {
			t.Errorf("step %d: the real server (-) and the double (+) differ:\n%s", i, diff)
		}
	}
}

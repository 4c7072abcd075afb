package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"reverie/internal/matrix/matrixtest"
	"reverie/internal/test/expect"
)

// printed collects what a program prints while it runs.
type printed struct {
	mu sync.Mutex
	b  strings.Builder
}

func (p *printed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.b.Write(b)
}

// find waits for a text.
func (p *printed) find(t *testing.T, pattern string) string {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		p.mu.Lock()
		found := regexp.MustCompile(pattern).FindStringSubmatch(p.b.String())
		p.mu.Unlock()
		if found != nil {
			return found[len(found)-1]
		}
	}
	t.Fatalf("no %q in:\n%s", pattern, p.b.String())
	return ""
}

// eagerModel reads a page, and then wants to remember what it says.
func eagerModel(t *testing.T, page string) string {
	asked := 0
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Tools []any
		}
		_ = json.NewDecoder(r.Body).Decode(&body)
		if len(body.Tools) == 0 {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		asked++
		delta := map[string]any{"content": "I would remember when the ferry leaves."}
		if asked < 3 {
			name, arguments := "web_fetch", `{"url":"`+page+`"}`
			if asked == 2 {
				name, arguments = "append_memory", `{"entry":"The ferry leaves at 07:10."}`
			}
			delta = map[string]any{"tool_calls": []any{map[string]any{"index": 0, "id": fmt.Sprint("c", asked), "type": "function", "function": map[string]string{"name": name, "arguments": arguments}}}}
		}
		data, _ := json.Marshal(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": delta}}})
		fmt.Fprintf(w, "data: %s\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", data)
	}))
	t.Cleanup(model.Close)
	return model.URL
}

// TestApproveInInspector: what a page made the model want is asked about in the chat, and runs when the owner agrees in the
// inspector, by the link of !web; the prompts of that turn are shown. `bot web` shows the same without the chat.
func TestApproveInInspector(t *testing.T) {
	site := island(t)
	l := expect.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	listen := l.Addr().String()
	l.Close()
	config := configFile(t, `data: ./data
harvest: {enabled: false}
dreaming: {schedule: ""}
memory: {backend: fts5}
llm: {models: [{name: m, base_url: "`+eagerModel(t, site.URL+"/times")+`/v1", model: m, window: 32000}]}
tools: {code: false, web: {hosts: ["`+strings.TrimPrefix(site.URL, "http://")+`"]}}
web: {listen: "`+listen+`"}
log: {level: error}
`)
	in, say := io.Pipe()
	out, ended := &printed{}, make(chan int)
	go func() {
		ended <- execute(t.Context(), []string{"chat", "--config", config}, console{in: in, out: out, err: out})
	}()
	fmt.Fprintln(say, "Read "+site.URL+"/times")
	out.find(t, "!approve")
	fmt.Fprintln(say, "!web")
	owner := logInto(t, out.find(t, `http://\S+/login#[0-9a-f]{64}`))
	action := regexp.MustCompile(`/approvals/\w+`).FindString(owner.get(t, "/approvals"))
	expect.Has(t, owner.get(t, "/approvals"), "The ferry leaves at 07:10.")
	expect.Lacks(t, owner.get(t, "/memories"), "The ferry leaves at 07:10.")
	expect.Has(t, owner.post(t, action, url.Values{"answer": {"once"}}), "It is ")
	for end := time.Now().Add(time.Minute); !strings.Contains(owner.get(t, "/memories"), "The ferry leaves at 07:10.") && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
	}
	expect.Has(t, owner.get(t, "/memories"), "The ferry leaves at 07:10.")
	expect.Has(t, owner.get(t, "/turns/1"), "→ web_fetch", "Request 1 of 3", "Request 3 of 3", "The ferry leaves at 07:10.", "integrity foreign")
	expect.OK(t, say.Close())
	expect.Equal(t, <-ended, 0)

	in, say = io.Pipe()
	defer say.Close()
	out = &printed{}
	go func() {
		_ = execute(t.Context(), []string{"web", "--config", config}, console{in: in, out: out, err: out})
	}()
	owner = logInto(t, out.find(t, `http://\S+/login#[0-9a-f]{64}`))
	expect.Has(t, owner.get(t, "/approvals"), "done")
	expect.Has(t, owner.post(t, "/doctor", url.Values{}), "models")
}

// visitor is a person in a browser.
type visitor struct {
	base string
	http.Client
}

// logInto opens a link.
func logInto(t *testing.T, link string) *visitor {
	t.Helper()
	base, code, _ := strings.Cut(link, "/login#")
	v := &visitor{base: base}
	v.Jar, _ = cookiejar.New(nil)
	expect.Has(t, v.post(t, "/login", url.Values{"code": {code}}), "Log out")
	return v
}

func (v *visitor) get(t *testing.T, path string) string {
	t.Helper()
	return v.read(t)(v.Get(v.base + path))
}

func (v *visitor) post(t *testing.T, path string, form url.Values) string {
	t.Helper()
	return v.read(t)(v.PostForm(v.base+path, form))
}

func (v *visitor) read(t *testing.T) func(*http.Response, error) string {
	return func(r *http.Response, err error) string {
		t.Helper()
		expect.OK(t, err)
		defer r.Body.Close()
		return string(expect.Must(io.ReadAll(r.Body))(t))
	}
}

// TestInspectorInRooms: over Matrix an owner gets the link in their direct chat only, others never, and sees there the rooms of
// which they are a member now: nothing of other people's direct chats, and nothing of a room any more that they have left.
func TestInspectorInRooms(t *testing.T) {
	r := withHomeserver(t)
	l := expect.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	listen := l.Addr().String()
	l.Close()
	r.configure("llm:", "harvest: {enabled: false}\nmemory: {backend: fts5}\nweb: {listen: \""+listen+"\"}\nllm:")
	r.start()
	direct, theirs := r.meetDirect(), r.enters(friend, matrixtest.NewRoom{Direct: true})
	both, without := r.enters(you, matrixtest.NewRoom{Join: []string{friend}}), r.enters(friend, matrixtest.NewRoom{Join: []string{"@third:matrix.test"}})
	mention := func(user, room, text string) {
		t.Helper()
		before := r.said(room)
		r.s.Post(user, room, "m.room.message", map[string]any{"msgtype": "m.text", "body": text, "m.mentions": map[string]any{"user_ids": []string{itself}}})
		r.await("no answer to "+text, func() bool { return r.said(room) > before })
	}
	r.told(you, direct, "remember that the #apple is mine")
	r.told(friend, theirs, "remember that the #fig is mine")
	mention(friend, both, "remember that the #kiwi is ours")
	mention(friend, without, "remember that the #plum is ours")
	mention(you, both, "!web")
	r.told(friend, theirs, "!web")
	for _, room := range []string{both, theirs, without} {
		for _, m := range r.shown(room) {
			expect.Lacks(t, m.body, "login#")
		}
	}
	r.told(you, direct, "!web")
	var link string
	r.until("no link", func() bool {
		for _, m := range r.shown(direct) {
			if found := regexp.MustCompile(`http://\S+/login#[0-9a-f]{64}`).FindString(m.body); found != "" {
				link = found
			}
		}
		return link != ""
	})
	owner := logInto(t, link)
	expect.Has(t, owner.get(t, "/memories"), "#apple", "#kiwi")
	expect.Lacks(t, owner.get(t, "/memories"), "#fig", "#plum")
	expect.Has(t, owner.get(t, "/rooms"), url.PathEscape(direct), url.PathEscape(both))
	expect.Lacks(t, owner.get(t, "/rooms"), url.PathEscape(theirs), url.PathEscape(without))
	for _, room := range []string{theirs, without} {
		expect.Has(t, owner.get(t, "/rooms/"+url.PathEscape(room)), "Not found")
	}
	r.s.SetState(you, both, "m.room.member", you, map[string]any{"membership": "leave"})
	r.until("the room is still shown", func() bool { return !strings.Contains(owner.get(t, "/rooms"), url.PathEscape(both)) })
	expect.Lacks(t, owner.get(t, "/memories"), "#kiwi", "#fig", "#plum")
	expect.Has(t, owner.get(t, "/rooms/"+url.PathEscape(both)), "Not found")
}

package web

import (
	"bytes"
	"context"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"reverie/internal/memory"
	"reverie/internal/trust"
)

// catalog lists the pages. Those with a name are in the menu, in this order.
func catalog() []page {
	return []page{
		{name: "Overview", pattern: "/{$}", show: overview},
		{name: "Rooms", pattern: "/rooms", show: rooms},
		{pattern: "/rooms/{talk}", show: turns},
		{pattern: "/rooms/{talk}/next", show: nextPrompt},
		{pattern: "/turns/{id}", show: turn},
		{name: "Memories", pattern: "/memories", show: memories},
		{pattern: "/memories/{id}", show: memoryEntry},
		{method: http.MethodPost, pattern: "/undo", show: undo},
		{name: "Questions", pattern: "/questions", show: openQuestions},
		{method: http.MethodPost, pattern: "/questions/{number}", show: answerQuestion},
		{name: "Dreams", pattern: "/dreams", show: dreams},
		{name: "Tasks", pattern: "/tasks", show: tasks},
		{name: "Sub-sessions", pattern: "/subsessions", show: subSessions},
		{pattern: "/subsessions/{id}", show: subSession},
		{name: "Approvals", pattern: "/approvals", show: approvals},
		{method: http.MethodPost, pattern: "/approvals/{code}", show: approve},
		{name: "Usage", pattern: "/usage", show: tokens},
		{name: "Doctor", pattern: "/doctor", show: doctor},
		{method: http.MethodPost, pattern: "/doctor", show: examine},
		{name: "Docs", pattern: "/docs", show: docs},
		{pattern: "/docs/{name}", show: doc},
		{pattern: "/", show: func(context.Context, *visit) (view, error) { return view{}, errNotFound }},
	}
}

// page is one page, or one action that a form asks for.
type page struct {
	name    string
	method  string // "" = GET
	pattern string // of package net/http
	show    func(ctx context.Context, v *visit) (view, error)
}

// visit is a request of a person who is logged in.
type visit struct {
	*site
	*http.Request
	person string
	rooms  []string // with several people, where the person is a member
	now    time.Time
}

// errNotFound means that there is no such thing, or that the person may not see it.
var errNotFound = errors.New("there is no such page, or it is not for you")

// problem is an error whose text is for the person.
type problem struct{ error }

// serve handles the requests of a page.
func (s *site) serve(p page) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := &visit{site: s, Request: r, person: s.person(r), now: s.now().In(s.cfg.Zone)}
		if v.person == "" && p.method == "" {
			http.Redirect(w, r, "/login", http.StatusSeeOther)
			return
		}
		if v.person == "" {
			s.render(w, r, http.StatusForbidden, "", view{Title: "Log in first", Blocks: []block{{Login: true}}})
			return
		}
		var shown view
		rooms, err := s.cfg.Rooms(r.Context(), v.person)
		if err == nil {
			v.rooms = rooms
			shown, err = p.show(r.Context(), v)
		}
		status := http.StatusOK
		var told problem
		switch {
		case errors.Is(err, errNotFound), errors.Is(err, memory.ErrNotFound):
			status, shown = http.StatusNotFound, view{Title: "Not found", Lead: "There is no such page, or it is not for you."}
		case errors.As(err, &told):
			status, shown = http.StatusConflict, view{Title: "Not done", Lead: sentence(told.Error())}
		case err != nil && r.Context().Err() != nil:
			return
		case err != nil:
			s.cfg.Log.Error("a page of the inspector failed", "page", p.pattern, "err", err)
			status, shown = http.StatusInternalServerError, view{Title: "This page cannot be shown", Lead: "The log says why."}
		}
		shown.at = p.pattern
		s.render(w, r, status, v.person, shown)
	})
}

// render writes a page. person is who is logged in.
func (s *site) render(w http.ResponseWriter, r *http.Request, status int, person string, shown view) {
	var out bytes.Buffer
	err := s.layout.ExecuteTemplate(&out, "page.html", struct {
		view
		Name, Person string
		Menu         []cell
	}{shown, s.cfg.Name, person, menu(shown.at)})
	if err != nil {
		s.cfg.Log.Error("a page of the inspector cannot be rendered", "page", r.URL.Path, "err", err)
		http.Error(w, "This page cannot be shown. The log says why.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(out.Bytes()) // the reader may have gone
}

// menu lists the pages with a name; the one with the pattern at is marked.
func menu(at string) (all []cell) {
	for _, p := range catalog() {
		if p.name == "" {
			continue
		}
		c := cell{Text: p.name, Link: p.pattern}
		if p.pattern == "/{$}" {
			c.Link = "/"
		}
		if p.pattern == at {
			c.Class = "here"
		}
		all = append(all, c)
	}
	return all
}

// sees reports whether the person may read texts of r, by the rule of package trust: their own and shared ones, and
// those of rooms where they are a member.
func (v *visit) sees(r trust.Readers) bool {
	if room := r.Room(); room != "" && !slices.Contains(v.rooms, room) {
		return false
	}
	return r != trust.Nobody && trust.Place{Room: r.Room(), Person: v.person, Private: r.Person() != ""}.MayRead(r)
}

// readers lists whose texts the person may read.
func (v *visit) readers() []trust.Readers {
	all := []trust.Readers{trust.PersonReaders(v.person), trust.Everybody}
	for _, room := range v.rooms {
		all = append(all, trust.RoomReaders(room))
	}
	return all
}

// access is the person's access to memory: as in their direct chat and in each of their rooms.
func (v *visit) access() memory.Access {
	level := v.cfg.Level(v.person)
	return memory.Access{Actor: v.person, Scopes: v.readers(), Owner: level == trust.Owner, Integrity: level}
}

// view is what a page shows.
type view struct {
	Title  string
	Lead   string // a sentence below the title
	Back   cell   // the page above
	Fresh  bool   // with JavaScript it is loaded again from time to time
	Blocks []block
	at     string // the page's pattern
}

// block is a part of a page. What is empty is left out.
type block struct {
	Title, Note string
	Login       bool // the form for the code of a link
	Search      *search
	Facts       []fact
	Bars        *bars
	Graph       *graph
	Head        []string
	Rows        [][]cell
	Texts       []words
	Forms       []form
	HTML        template.HTML // made of the embedded documentation only
	Empty       string        // what is shown if there are no rows and no texts
}

// cell is a text in a table, perhaps with a link or a button.
type cell struct {
	Text, Link, Class string
	Form              *form
}

// link is a cell that leads to a page; each of parts is one part of its path.
func link(text, page string, parts ...string) cell {
	for _, part := range parts {
		page += "/" + url.PathEscape(part)
	}
	return cell{Text: text, Link: page, Class: "text"}
}

// count is a cell with a number.
func count(n int) cell { return cell{Text: spaced(n), Class: "number"} }

// at is a cell with a time; a zero time is left out.
func (v *visit) at(t time.Time) cell {
	if t.IsZero() {
		return cell{}
	}
	return cell{Text: v.stamp(t), Class: "time"}
}

// stamp formats a time.
func (v *visit) stamp(at time.Time) string { return at.In(v.cfg.Zone).Format("2006-01-02 15:04") }

// facts pairs names with values, and leaves out those without a value.
func facts(pairs ...string) (all []fact) {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			all = append(all, fact{pairs[i], cell{Text: pairs[i+1]}})
		}
	}
	return all
}

// fact is a name with a value.
type fact struct {
	Name  string
	Value cell
}

// search is a field with a word to look for.
type search struct{ Value, Hint string }

// words is a text as it stands, such as a message.
type words struct {
	Title, Note, Text string
	Added             string // shown apart below Text
	Old               bool   // it no longer holds
	Closed            bool   // only the title is shown until it is opened
}

// form is a change that the person may ask for.
type form struct {
	Action  string
	Buttons []button
}

// button sends a value of a form.
type button struct{ Name, Value, Text string }

// sentence makes an error's text a sentence.
func sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + strings.TrimSuffix(s[1:], ".") + "."
}

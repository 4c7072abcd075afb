package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"time"

	"reverie/internal/memory"
	"reverie/internal/questions"
	"reverie/internal/store"
	"reverie/internal/trust"
)

// catalog lists the pages. Those with a name are in the menu, in this order.
func catalog() []page {
	return []page{
		{Name: "Overview", Path: "/", show: overview},
		{Name: "Rooms", Path: "/rooms", show: rooms},
		{Path: "/rooms/{talk}", show: turns},
		{Path: "/rooms/{talk}/next", show: nextPrompt},
		{Path: "/turns/{id}", show: turn},
		{Name: "Memories", Path: "/memories", show: memories},
		{Path: "/memories/{id}", show: memoryEntry},
		{post: true, Path: "/undo", show: undo},
		{Name: "Questions", Path: "/questions", show: openQuestions},
		{post: true, Path: "/questions/{number}", show: answerQuestion},
		{Name: "Dreams", Path: "/dreams", show: dreams},
		{Name: "Tasks", Path: "/tasks", show: tasks},
		{Name: "Sub-sessions", Path: "/subsessions", show: subSessions},
		{Path: "/subsessions/{id}", show: subSession},
		{Name: "Approvals", Path: "/approvals", show: approvals},
		{post: true, Path: "/approvals/{code}", show: approve},
		{Name: "Usage", Path: "/usage", show: tokens},
		{Name: "Doctor", Path: "/doctor", show: doctor},
		{post: true, Path: "/doctor", show: doctor},
		{Name: "Docs", Path: "/docs", show: docs},
		{Path: "/docs/{name}", show: doc},
	}
}

// page is one page, or with post an action that a form asks for.
type page struct {
	Name, Path string // the path is a pattern of package net/http
	post       bool
	show       func(ctx context.Context, v *visit) (view, error)
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

// isAny reports whether err is one of others.
func isAny(err error, others ...error) bool {
	return slices.ContainsFunc(others, func(other error) bool { return errors.Is(err, other) })
}

// serve handles the requests of a page. What a page shows is left out if it returns an error.
func (s *site) serve(p page) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v := &visit{site: s, Request: r, person: s.person(r), now: s.now().In(s.cfg.Zone)}
		if v.person == "" {
			http.Redirect(w, r, "/login", http.StatusSeeOther)
			return
		}
		var shown view
		var err error
		if v.rooms, err = s.cfg.Rooms(r.Context(), v.person); err == nil {
			shown, err = p.show(r.Context(), v)
		}
		status := http.StatusOK
		switch {
		case err == nil:
		case r.Context().Err() != nil:
			return
		case isAny(err, errNotFound, memory.ErrNotFound, questions.ErrNoQuestion):
			status, shown = http.StatusNotFound, view{Title: "Not found", Lead: errNotFound.Error() + "."}
		case isAny(err, memory.ErrChanged, memory.ErrGone, memory.ErrNothing, memory.ErrNotYours, questions.ErrObsolete):
			status, shown = http.StatusConflict, view{Title: "Not done", Lead: err.Error() + "."}
		default:
			s.cfg.Log.Error("a page of the inspector failed", "page", p.Path, "err", err)
			status, shown = http.StatusInternalServerError, view{Title: "This page cannot be shown", Lead: "The log says why."}
		}
		shown.Path = p.Path
		s.render(w, r, status, v.person, shown)
	}
}

// render writes a page. person is who is logged in.
func (s *site) render(w http.ResponseWriter, r *http.Request, status int, person string, shown view) {
	var out bytes.Buffer
	err := s.layout.ExecuteTemplate(&out, "page.html", struct {
		view
		Name, Person string
		Menu         []page
	}{shown, s.cfg.Name, person, catalog()})
	if err != nil {
		s.cfg.Log.Error("a page of the inspector cannot be rendered", "page", r.URL.Path, "err", err)
		http.Error(w, "This page cannot be shown. The log says why.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(out.Bytes()) // the reader may have gone
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
	return append([]trust.Readers{trust.PersonReaders(v.person), trust.Everybody}, store.Map(v.rooms, trust.RoomReaders)...)
}

// access is the person's access to memory: as in their direct chat and in each of their rooms.
func (v *visit) access() memory.Access {
	level := v.cfg.Level(v.person)
	return memory.Access{Actor: v.person, Scopes: v.readers(), Owner: level == trust.Owner, Integrity: level}
}

// view is what a page shows.
type view struct {
	Title, Lead string // Lead is a sentence below the title
	Back        cell   // the page above
	Fresh       bool   // with JavaScript it is loaded again from time to time
	Blocks      []block
	Path        string // of the page
}

// block is a part of a page. What is empty is left out.
type block struct {
	Title, Note   string
	Login         bool     // the form for the code of a link
	Search, Query string   // a field with a hint, and what was looked for
	Facts         [][]cell // names with values
	Bars          *bars
	Graph         *graph
	Head          []string
	Rows          [][]cell
	Texts         []words
	Forms         []form
	HTML          template.HTML // made of the embedded documentation only
	Empty         string        // what is shown if there are no rows and no texts
}

// cell is a text in a table, perhaps with a link or a form.
type cell struct {
	Text, Link, Class string
	Form              *form
}

// words is a text as it stands, such as a message.
type words struct {
	Title, Note, Text string
	Added             string // shown apart below Text
	Old               bool   // it no longer holds
	Closed            bool   // only the title is shown until it is opened
}

// form is a change that the person may ask for; each button sends a value.
type form struct {
	Action  string
	Buttons []button
}

type button struct{ Name, Value, Text string }

// link is a cell that leads to a page; each of parts is one part of its path.
func link(text, page string, parts ...string) cell {
	for _, part := range parts {
		page += "/" + url.PathEscape(part)
	}
	return cell{Text: text, Link: page, Class: "text"}
}

// long is a cell with a text of several words.
func long(text string) cell { return cell{Text: text, Class: "text"} }

// row makes the cells of a row: numbers and times are formatted, cells stay as they are.
func (v *visit) row(values ...any) (all []cell) {
	for _, value := range values {
		c := cell{Text: fmt.Sprint(value)}
		switch value := value.(type) {
		case cell:
			c = value
		case int:
			c = cell{Text: spaced(value), Class: "number"}
		case time.Time:
			c = cell{Text: v.stamp(value), Class: "time"}
		}
		all = append(all, c)
	}
	return all
}

// facts pairs names with values, and leaves out those without a value.
func (v *visit) facts(pairs ...any) [][]cell {
	all := slices.Collect(slices.Chunk(v.row(pairs...), 2))
	return slices.DeleteFunc(all, func(pair []cell) bool { return pair[1].Text == "" })
}

// stamp formats a time; a zero time is left out.
func (v *visit) stamp(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.In(v.cfg.Zone).Format("2006-01-02 15:04")
}

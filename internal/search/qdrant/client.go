// Package qdrant finds vectors with a Qdrant server, by its REST interface.
package qdrant

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"reverie/internal/search/vector"
)

// client speaks the REST interface of a Qdrant server, as far as Points needs it.
// (The official client brings gRPC, which is larger than all of this search.)
type client struct {
	base string // without a slash at its end
	key  string // of the api-key header; never part of an error
	http *http.Client
}

const (
	maxResponse  = 16 << 20 // bytes of a server's answer that are read
	maxErrorBody = 300      // bytes of a server's own words in an error
)

func newClient(base, key string) *client {
	return &client{base: strings.TrimRight(base, "/"), key: key, http: &http.Client{
		Timeout: time.Minute, // whoever waits for less says so with a context
		// A redirect would carry the key to wherever it leads.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// call sends in as JSON, unless it is nil, and reads the result into out, unless that is nil.
func (q *client) call(ctx context.Context, method, path string, in, out any) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("qdrant at %s: %w", q.base, cmp.Or(context.Cause(ctx), err))
		}
	}()
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(data)
	}
	request, err := http.NewRequestWithContext(ctx, method, q.base+path, body)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	if q.key != "" {
		request.Header.Set("api-key", q.key)
	}
	response, err := q.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(response.Body, maxErrorBody))
		return fmt.Errorf("HTTP %s: %q", response.Status, said)
	}
	answer := struct{ Result any }{out}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxResponse)).Decode(&answer); err != nil {
		return fmt.Errorf("it does not answer as Qdrant does: %w", err)
	}
	return nil
}

// point is a vector on the server.
type point struct {
	ID      string       `json:"id"`
	Vector  []float32    `json:"vector,omitempty"` // only its direction counts
	Payload vector.Point `json:"payload"`
}

// pointFields are the parts of the payload that are filtered by.
var pointFields = [][2]string{{"scope", "keyword"}, {"state", "keyword"}, {"at", "integer"}}

func collectionPath(name string) string { return "/collections/" + url.PathEscape(name) }

// create makes a collection of vectors of dim numbers, with what makes filtering fast.
func (q *client) create(ctx context.Context, name string, dim int) error {
	path := collectionPath(name)
	err := q.call(ctx, http.MethodPut, path, map[string]any{"vectors": map[string]any{"size": dim, "distance": "Cosine"}}, nil)
	for _, f := range pointFields {
		if err == nil {
			err = q.call(ctx, http.MethodPut, path+"/index?wait=true", map[string]any{"field_name": f[0], "field_schema": f[1]}, nil)
		}
	}
	return err
}

func (q *client) drop(ctx context.Context, name string) error {
	return q.call(ctx, http.MethodDelete, collectionPath(name), nil, nil)
}

// collections are the names of all that the server has.
func (q *client) collections(ctx context.Context) (names []string, err error) {
	var all struct{ Collections []struct{ Name string } }
	err = q.call(ctx, http.MethodGet, "/collections", nil, &all)
	for _, c := range all.Collections {
		names = append(names, c.Name)
	}
	return names, err
}

// upsert returns when the points can be found.
func (q *client) upsert(ctx context.Context, name string, points []point) error {
	return q.call(ctx, http.MethodPut, collectionPath(name)+"/points?wait=true", map[string]any{"points": points}, nil)
}

// remove returns when the points are gone. Those that are not there are no error.
func (q *client) remove(ctx context.Context, name string, ids []string) error {
	return q.call(ctx, http.MethodPost, collectionPath(name)+"/points/delete?wait=true", map[string]any{"points": ids}, nil)
}

// filter is w in the server's words.
func filter(w vector.Filter) map[string]any {
	states := []string{"active"}
	if w.Past {
		states = append(states, "superseded", "archived")
	}
	return map[string]any{"must": []any{
		map[string]any{"key": "scope", "match": map[string]any{"any": w.Scopes}},
		map[string]any{"key": "state", "match": map[string]any{"any": states}},
	}}
}

// pointPage is a part of the points.
type pointPage struct {
	Points []point         `json:"points"`
	Next   json.RawMessage `json:"next_page_offset"` // nothing or null = this was the last
}

// query finds the limit points that are nearest to vector among those that w wants.
func (q *client) query(ctx context.Context, name string, vector []float32, w vector.Filter, limit int) ([]point, error) {
	var found pointPage
	in := map[string]any{"query": vector, "filter": filter(w), "limit": limit, "with_payload": true}
	err := q.call(ctx, http.MethodPost, collectionPath(name)+"/points/query", in, &found)
	return found.Points, err
}

func (q *client) scroll(ctx context.Context, name string, from json.RawMessage, limit int) (p pointPage, err error) {
	in := map[string]any{"limit": limit, "with_payload": true}
	if from != nil {
		in["offset"] = from
	}
	err = q.call(ctx, http.MethodPost, collectionPath(name)+"/points/scroll", in, &p)
	return p, err
}

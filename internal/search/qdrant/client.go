// Package qdrant searches vectors with a Qdrant server, through its REST interface.
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

// client is a minimal client of Qdrant's REST interface. The official client needs gRPC, which is
// larger than all of this package.
type client struct {
	base string // without a trailing slash
	key  string // of the api-key header; never part of an error
	http *http.Client
}

const (
	maxResponse  = 16 << 20 // bytes of a response
	maxErrorBody = 300      // bytes of a response quoted in an error
)

func newClient(base, key string) *client {
	return &client{base: strings.TrimRight(base, "/"), key: key, http: &http.Client{
		Timeout: time.Minute, // callers shorten it by their context
		// A redirect would send the key to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// call sends in as JSON and decodes the result into out. It skips a nil in or out.
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
		return fmt.Errorf("the response is not one of Qdrant: %w", err)
	}
	return nil
}

// point is a vector on the server.
type point struct {
	ID      string       `json:"id"`
	Vector  []float32    `json:"vector,omitempty"` // only its direction counts
	Payload vector.Point `json:"payload"`
}

// pointFields are the payload fields that filters use.
var pointFields = [][2]string{{"scope", "keyword"}, {"state", "keyword"}, {"at", "integer"}}

func collectionPath(name string) string { return "/collections/" + url.PathEscape(name) }

// create creates a collection for vectors of length dim, with indexes of the filter fields.
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

// collections lists the server's collections.
func (q *client) collections(ctx context.Context) (names []string, err error) {
	var all struct{ Collections []struct{ Name string } }
	err = q.call(ctx, http.MethodGet, "/collections", nil, &all)
	for _, c := range all.Collections {
		names = append(names, c.Name)
	}
	return names, err
}

// upsert returns when the points are searchable.
func (q *client) upsert(ctx context.Context, name string, points []point) error {
	return q.call(ctx, http.MethodPut, collectionPath(name)+"/points?wait=true", map[string]any{"points": points}, nil)
}

// remove returns when the points are deleted. Missing points are not an error.
func (q *client) remove(ctx context.Context, name string, ids []string) error {
	return q.call(ctx, http.MethodPost, collectionPath(name)+"/points/delete?wait=true", map[string]any{"points": ids}, nil)
}

// filter converts w to Qdrant's filter syntax.
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

// pointPage is one page of points.
type pointPage struct {
	Points []point         `json:"points"`
	Next   json.RawMessage `json:"next_page_offset"` // empty or null = last page
}

// query returns the limit points matching w that are nearest to vector.
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

package memory

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// qdrant speaks the REST interface of a Qdrant server, as far as Points needs it.
// (The official client brings gRPC, which is larger than all of this search.)
type qdrant struct {
	base string // without a slash at its end
	key  string // of the api-key header; never part of an error
	http *http.Client
}

const (
	maxAnswer = 16 << 20         // bytes of a server's answer that are read
	maxSaid   = 300              // characters of a server's own words in an error
	longCall  = 60 * time.Second // whoever waits for less says so with a context
)

func newQdrant(base, key string) *qdrant {
	return &qdrant{base: strings.TrimRight(base, "/"), key: key, http: &http.Client{
		Timeout: longCall,
		// A redirect would carry the key to wherever it leads.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// refusal is an answer that says no.
type refusal struct {
	status int
	said   string
}

func (r *refusal) Error() string {
	switch {
	case r.status == http.StatusUnauthorized || r.status == http.StatusForbidden:
		return fmt.Sprintf("it refuses the key (HTTP %d): %s", r.status, r.said)
	case r.status >= 300 && r.status < 400:
		return fmt.Sprintf("it sends elsewhere (HTTP %d); write the address that it leads to", r.status)
	default:
		return fmt.Sprintf("HTTP %d: %s", r.status, r.said)
	}
}

// isNotThere reports whether a collection is missing.
func isNotThere(err error) bool {
	var r *refusal
	return errors.As(err, &r) && r.status == http.StatusNotFound
}

// call sends in as JSON, unless it is nil, and reads the result into out, unless that is nil.
func (q *qdrant) call(ctx context.Context, method, path string, in, out any) error {
	if err := q.try(ctx, method, path, in, out); err != nil {
		return fmt.Errorf("qdrant at %s: %w", q.base, err)
	}
	return nil
}

func (q *qdrant) try(ctx context.Context, method, path string, in, out any) error {
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
		if outer := (*url.Error)(nil); errors.As(err, &outer) {
			err = outer.Err // the address is said already
		}
		return cmp.Or(context.Cause(ctx), err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return cmp.Or(context.Cause(ctx), err)
	case response.StatusCode < 200 || response.StatusCode > 299:
		return &refusal{response.StatusCode, complaint(data)}
	case len(data) > maxAnswer:
		return fmt.Errorf("its answer is longer than %d MiB", maxAnswer>>20)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(data, &struct {
		Result any `json:"result"`
	}{out}); err != nil {
		return fmt.Errorf("it does not answer as Qdrant does: %w", err)
	}
	return nil
}

// complaint is what the server says is wrong, fit to be logged.
func complaint(data []byte) string {
	var answer struct {
		Status struct {
			Error string `json:"error"`
		} `json:"status"`
	}
	said := string(data)
	if json.Unmarshal(data, &answer) == nil && answer.Status.Error != "" {
		said = answer.Status.Error
	}
	said = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(said, "\uFFFD"), func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	if utf8.RuneCountInString(said) > maxSaid {
		said = string([]rune(said)[:maxSaid]) + "…"
	}
	return cmp.Or(said, "it does not say why")
}

// collectionInfo is what is asked about a collection.
type collectionInfo struct {
	Points int `json:"points_count"`
	Config struct {
		Params struct {
			Vectors struct {
				Size     int    `json:"size"`
				Distance string `json:"distance"`
			} `json:"vectors"`
		} `json:"params"`
	} `json:"config"`
	Schema map[string]any `json:"payload_schema"`
}

func collectionPath(name string) string { return "/collections/" + url.PathEscape(name) }

func (q *qdrant) collection(ctx context.Context, name string) (collectionInfo, error) {
	var info collectionInfo
	err := q.call(ctx, http.MethodGet, collectionPath(name), nil, &info)
	return info, err
}

func (q *qdrant) create(ctx context.Context, name string, dim int) error {
	return q.call(ctx, http.MethodPut, collectionPath(name), map[string]any{"vectors": map[string]any{"size": dim, "distance": "Cosine"}}, nil)
}

func (q *qdrant) drop(ctx context.Context, name string) error {
	return q.call(ctx, http.MethodDelete, collectionPath(name), nil, nil)
}

// indexField makes filtering by a part of the payload fast.
func (q *qdrant) indexField(ctx context.Context, name, field, schema string) error {
	return q.call(ctx, http.MethodPut, collectionPath(name)+"/index?wait=true", map[string]any{"field_name": field, "field_schema": schema}, nil)
}

// collections are the names of all that the server has.
func (q *qdrant) collections(ctx context.Context) (names []string, err error) {
	var all struct {
		Collections []struct {
			Name string `json:"name"`
		} `json:"collections"`
	}
	err = q.call(ctx, http.MethodGet, "/collections", nil, &all)
	for _, c := range all.Collections {
		names = append(names, c.Name)
	}
	return names, err
}

// point is a vector on the server. Of the entry it tells whose it is, its state and its time, never
// a word of it.
type point struct {
	ID      string       `json:"id"`
	Vector  []int        `json:"vector,omitempty"` // only its direction counts
	Payload pointPayload `json:"payload"`
}

type pointPayload struct {
	Entry string `json:"entry"` // memory.id
	Rev   int64  `json:"rev"`   // of the entry
	Scope Scope  `json:"scope"`
	State State  `json:"state"`
	At    int64  `json:"at"` // when it was said; Unix milliseconds
}

// UnmarshalJSON takes what it understands: a stranger's point is no reason to fail.
func (p *pointPayload) UnmarshalJSON(data []byte) error {
	type plain pointPayload
	var v plain
	if json.Unmarshal(data, &v) == nil {
		*p = pointPayload(v)
	}
	return nil
}

// held is a point as the server gives it back.
type held struct {
	ID      json.RawMessage `json:"id"` // a stranger's may be a number
	Payload pointPayload    `json:"payload"`
}

// pointFields are the parts of the payload that are filtered by.
var pointFields = [][2]string{{"scope", "keyword"}, {"state", "keyword"}, {"at", "integer"}}

// upsert returns when the points can be found.
func (q *qdrant) upsert(ctx context.Context, name string, points []point) error {
	return q.call(ctx, http.MethodPut, collectionPath(name)+"/points?wait=true", map[string]any{"points": points}, nil)
}

// remove returns when the points are gone. Those that are not there are no error.
func (q *qdrant) remove(ctx context.Context, name string, ids any) error {
	return q.call(ctx, http.MethodPost, collectionPath(name)+"/points/delete?wait=true", map[string]any{"points": ids}, nil)
}

// filter is w in the server's words.
func (w wanted) filter() map[string]any {
	states := []State{Active}
	if w.past {
		states = append(states, Superseded, Archived)
	}
	must := []any{
		map[string]any{"key": "scope", "match": map[string]any{"any": w.scopes}},
		map[string]any{"key": "state", "match": map[string]any{"any": states}},
	}
	within := map[string]any{}
	if !w.after.IsZero() {
		within["gte"] = w.after.UnixMilli()
	}
	if !w.before.IsZero() {
		within["lt"] = w.before.UnixMilli()
	}
	if len(within) > 0 {
		must = append(must, map[string]any{"key": "at", "range": within})
	}
	return map[string]any{"must": must}
}

// query finds the limit points that are nearest to vector among those that w wants.
func (q *qdrant) query(ctx context.Context, name string, vector []float32, w wanted, limit int) ([]held, error) {
	var found struct {
		Points []held `json:"points"`
	}
	err := q.call(ctx, http.MethodPost, collectionPath(name)+"/points/query",
		map[string]any{"query": vector, "filter": w.filter(), "limit": limit, "with_payload": true, "with_vector": false}, &found)
	return found.Points, err
}

// pointPage is a part of all points.
type pointPage struct {
	Points []held          `json:"points"`
	Next   json.RawMessage `json:"next_page_offset"` // null = this was the last
}

func (q *qdrant) scroll(ctx context.Context, name string, from json.RawMessage, limit int) (pointPage, error) {
	in := map[string]any{"limit": limit, "with_payload": true, "with_vector": false}
	if from != nil {
		in["offset"] = from
	}
	var p pointPage
	err := q.call(ctx, http.MethodPost, collectionPath(name)+"/points/scroll", in, &p)
	return p, err
}

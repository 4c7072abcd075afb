// Package standin is a stand-in for a Qdrant server in tests: the part of its REST
// interface that Reverie uses, kept in memory, after the documentation of version
// 1.17. It compares every vector, where the real one goes by a graph.
package standin

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"regexp"
	"slices"
	"sort"
	"strings"
	"sync"
)

// Server is an http.Handler. The zero value is an empty server that wants no key.
type Server struct {
	Key string // that requests must bring; "" = none

	mu          sync.Mutex
	fault       func(w http.ResponseWriter, r *http.Request) bool
	collections map[string]*collection
	calls       []string
}

type collection struct {
	size    int
	indexes map[string]string
	points  map[string]Point
}

// Point is a point as the server holds it.
type Point struct {
	ID      string         `json:"id"`
	Version int            `json:"version"`
	Score   float64        `json:"score"`
	Payload map[string]any `json:"payload"`
	vector  []float64      // of length 1
}

// Break sets what may answer in the server's place, and says whether it did; nil =
// the server is well.
func (s *Server) Break(fault func(w http.ResponseWriter, r *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = fault
}

// Refuse is a fault: every request gets this status.
func Refuse(status int) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		refuse(w, status, "Service internal error: out of order")
		return true
	}
}

// Points are those of a collection, by id; nil if there is none.
func (s *Server) Points(name string) map[string]Point {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.collections[name]
	if c == nil {
		return nil
	}
	return maps.Clone(c.points)
}

// Collections are their names, in order.
func (s *Server) Collections() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.collections))
}

// Indexes are the indexed parts of the payload of a collection, with their types.
func (s *Server) Indexes(name string) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.collections[name]; c != nil {
		return c.indexes
	}
	return nil
}

// Put adds a point behind everybody's back.
func (s *Server) Put(name, id string, vector []float64, payload map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.collections[name].points[id] = Point{ID: id, Payload: payload, vector: unit(vector)}
}

// Drop removes a collection behind everybody's back.
func (s *Server) Drop(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.collections, name)
}

// Calls are the requests so far: method and path.
func (s *Server) Calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

func refuse(w http.ResponseWriter, status int, what string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"status": map[string]any{"error": what}, "time": 0.001})
}

func answer(w http.ResponseWriter, result any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"result": result, "status": "ok", "time": 0.001})
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.calls = append(s.calls, r.Method+" "+r.URL.Path)
	fault := s.fault
	s.mu.Unlock()
	if fault != nil && fault(w, r) {
		return
	}
	if s.Key != "" && r.Header.Get("api-key") != s.Key {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, "Must provide an API key or an Authorization bearer token")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.collections == nil {
		s.collections = map[string]*collection{}
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case r.Method == "GET" && r.URL.Path == "/collections":
		list := []any{}
		for name := range s.collections {
			list = append(list, map[string]any{"name": name})
		}
		answer(w, map[string]any{"collections": list})
	case parts[0] == "collections" && len(parts) == 2:
		s.serveCollection(w, r, parts[1])
	case parts[0] == "collections" && len(parts) > 2:
		c := s.collections[parts[1]]
		if c == nil {
			refuse(w, http.StatusNotFound, "Not found: Collection `"+parts[1]+"` doesn't exist!")
			return
		}
		c.serve(w, r, strings.Join(parts[2:], "/"))
	default:
		http.NotFound(w, r)
	}
}

func (s *Server) serveCollection(w http.ResponseWriter, r *http.Request, name string) {
	switch c := s.collections[name]; r.Method {
	case "PUT":
		var in struct {
			Vectors struct {
				Size     int    `json:"size"`
				Distance string `json:"distance"`
			} `json:"vectors"`
		}
		if !read(w, r, &in) {
			return
		}
		if c != nil {
			refuse(w, http.StatusConflict, "Wrong input: Collection `"+name+"` already exists!")
			return
		}
		if in.Vectors.Size < 1 || in.Vectors.Distance != "Cosine" || strings.ContainsAny(name, `<>:"/\|?*`) || len(name) > 255 {
			refuse(w, http.StatusUnprocessableEntity, "Validation error in JSON body")
			return
		}
		s.collections[name] = &collection{size: in.Vectors.Size, indexes: map[string]string{}, points: map[string]Point{}}
		answer(w, true)
	case "DELETE":
		delete(s.collections, name)
		answer(w, c != nil)
	}
}

func read(w http.ResponseWriter, r *http.Request, into any) bool {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields() // what Reverie sends, it means
	if err := d.Decode(into); err != nil {
		refuse(w, http.StatusBadRequest, "Format error in JSON body: "+err.Error())
		return false
	}
	return true
}

var uuid = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

func (c *collection) serve(w http.ResponseWriter, r *http.Request, what string) {
	writes := map[string]func(http.ResponseWriter, *http.Request) bool{"PUT index": c.putIndex, "PUT points": c.upsert, "POST points/delete": c.remove}
	if write := writes[r.Method+" "+what]; write != nil {
		if r.URL.Query().Get("wait") != "true" { // it would be done at some time
			answer(w, map[string]any{"operation_id": 1, "status": "acknowledged"})
		} else if write(w, r) {
			answer(w, map[string]any{"operation_id": 1, "status": "completed"})
		}
		return
	}
	switch r.Method + " " + what {
	case "POST points/query":
		c.query(w, r)
	case "POST points/scroll":
		c.scroll(w, r)
	default:
		http.NotFound(w, r)
	}
}

func (c *collection) putIndex(w http.ResponseWriter, r *http.Request) bool {
	var in struct {
		Field  string `json:"field_name"`
		Schema string `json:"field_schema"`
	}
	if !read(w, r, &in) {
		return false
	}
	c.indexes[in.Field] = in.Schema
	return true
}

func (c *collection) upsert(w http.ResponseWriter, r *http.Request) bool {
	var in struct {
		Points []struct {
			ID      string         `json:"id"`
			Vector  []float64      `json:"vector"`
			Payload map[string]any `json:"payload"`
		} `json:"points"`
	}
	if !read(w, r, &in) {
		return false
	}
	for _, p := range in.Points {
		if !uuid.MatchString(p.ID) {
			refuse(w, http.StatusBadRequest, "Format error in JSON body: value "+p.ID+" is not a valid point ID, valid values are either an unsigned integer or a UUID")
			return false
		}
		if len(p.Vector) != c.size {
			refuse(w, http.StatusBadRequest, fmt.Sprintf("Wrong input: Vector dimension error: expected dim: %d, got %d", c.size, len(p.Vector)))
			return false
		}
	}
	for _, p := range in.Points {
		c.points[p.ID] = Point{ID: p.ID, Version: c.points[p.ID].Version + 1, Payload: p.Payload, vector: unit(p.Vector)}
	}
	return true
}

func (c *collection) remove(w http.ResponseWriter, r *http.Request) bool {
	var in struct {
		Points []string `json:"points"`
	}
	if !read(w, r, &in) {
		return false
	}
	for _, id := range in.Points {
		delete(c.points, id)
	}
	return true
}

// condition is one of a filter that all must hold.
type condition struct {
	Key   string `json:"key"`
	Match *struct {
		Any []any `json:"any"`
	} `json:"match"`
}

func (c condition) holds(payload map[string]any) bool {
	value, there := payload[c.Key]
	if !there {
		return false
	}
	return c.Match != nil && slices.Contains(c.Match.Any, value)
}

func (c *collection) query(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Query  []float64 `json:"query"`
		Filter struct {
			Must []condition `json:"must"`
		} `json:"filter"`
		Limit   int  `json:"limit"`
		Payload bool `json:"with_payload"`
	}
	if !read(w, r, &in) {
		return
	}
	if len(in.Query) != c.size {
		refuse(w, http.StatusBadRequest, fmt.Sprintf("Wrong input: Vector dimension error: expected dim: %d, got %d", c.size, len(in.Query)))
		return
	}
	q := unit(in.Query)
	found := []Point{}
	for _, p := range c.points {
		if slices.ContainsFunc(in.Filter.Must, func(m condition) bool { return !m.holds(p.Payload) }) {
			continue
		}
		p.Score = 0
		for i, x := range p.vector {
			p.Score += x * q[i]
		}
		found = append(found, p)
	}
	sort.Slice(found, func(i, j int) bool {
		if found[i].Score != found[j].Score {
			return found[i].Score > found[j].Score
		}
		return found[i].ID < found[j].ID
	})
	answer(w, map[string]any{"points": found[:min(len(found), in.Limit)]})
}

func (c *collection) scroll(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Offset  string `json:"offset"`
		Limit   int    `json:"limit"`
		Payload bool   `json:"with_payload"`
	}
	if !read(w, r, &in) {
		return
	}
	var ids []string
	for id := range c.points {
		if id >= in.Offset {
			ids = append(ids, id)
		}
	}
	sort.Strings(ids)
	var next any
	if len(ids) > in.Limit {
		next, ids = ids[in.Limit], ids[:in.Limit]
	}
	points := []Point{}
	for _, id := range ids {
		points = append(points, c.points[id])
	}
	answer(w, map[string]any{"points": points, "next_page_offset": next})
}

func unit(v []float64) []float64 {
	var square float64
	for _, x := range v {
		square += x * x
	}
	out := make([]float64, len(v))
	for i, x := range v {
		if square > 0 {
			out[i] = x / math.Sqrt(square)
		}
	}
	return out
}

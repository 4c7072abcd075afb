package matrixtest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxBody limits a request body, except for media.
const maxBody = 1 << 20

// call is a request that is being handled.
type call struct {
	*http.Request
	s    *Server
	body []byte
	user *user
	dev  *device
}

// failure is an error response.
type failure struct {
	status int
	code   string
	text   string
	more   map[string]any
}

func fail(status int, code, text string) *failure {
	return &failure{status: status, code: code, text: text}
}

func notFound(what string) *failure {
	return fail(http.StatusNotFound, "M_NOT_FOUND", what+" not found")
}

func forbidden(text string) *failure { return fail(http.StatusForbidden, "M_FORBIDDEN", text) }

// empty is {}.
type empty struct{}

// route is an endpoint. Unless it is open, the access token is checked, and the server's lock is held
// while do runs. do returns the response: a *failure, or a value that is encoded as JSON. nil means
// that do has written the response.
type route struct {
	name, pattern string
	open          bool
	do            func(c *call, w http.ResponseWriter) any
}

func locked(f func(*call) any) func(*call, http.ResponseWriter) any {
	return func(c *call, _ http.ResponseWriter) any {
		c.s.mu.Lock()
		defer c.s.mu.Unlock()
		return encodeAnswer(f(c))
	}
}

// encodeAnswer encodes a response while the lock is held.
func encodeAnswer(answer any) any {
	if f, bad := answer.(*failure); bad {
		return f
	}
	data, err := json.Marshal(answer)
	if err != nil {
		return fail(http.StatusInternalServerError, "M_UNKNOWN", err.Error())
	}
	return json.RawMessage(data)
}

// table lists all endpoints. On and Count use their names.
func table() []route {
	const v3, rooms = "/_matrix/client/v3", "/_matrix/client/v3/rooms/{room}"
	return []route{
		{"versions", "GET /_matrix/client/versions", true, locked((*call).versions)},
		{"login", "GET " + v3 + "/login", true, locked((*call).flows)},
		{"login", "POST " + v3 + "/login", true, locked((*call).login)},
		{"logout", "POST " + v3 + "/logout", false, locked((*call).logout)},
		{"whoami", "GET " + v3 + "/account/whoami", false, locked((*call).whoami)},
		{"capabilities", "GET " + v3 + "/capabilities", false, locked((*call).capabilities)},
		{"devices", "GET " + v3 + "/devices", false, locked((*call).devices)},
		{"devices", "GET " + v3 + "/devices/{device}", false, locked((*call).getDevice)},
		{"devices", "PUT " + v3 + "/devices/{device}", false, locked((*call).nameDevice)},
		{"devices", "DELETE " + v3 + "/devices/{device}", false, locked((*call).deleteDevice)},
		{"devices", "POST " + v3 + "/delete_devices", false, locked((*call).deleteDevices)},
		{"profile", "GET " + v3 + "/profile/{user}", true, locked((*call).profile)},
		{"profile", "GET " + v3 + "/profile/{user}/{key}", true, locked((*call).profile)},
		{"profile", "PUT " + v3 + "/profile/{user}/displayname", false, locked((*call).setName)},
		{"account_data", "GET " + v3 + "/user/{user}/account_data/{type}", false, locked((*call).accountData)},
		{"account_data", "PUT " + v3 + "/user/{user}/account_data/{type}", false, locked((*call).setAccountData)},
		{"account_data", "GET " + v3 + "/user/{user}/rooms/{room}/account_data/{type}", false, locked((*call).accountData)},
		{"account_data", "PUT " + v3 + "/user/{user}/rooms/{room}/account_data/{type}", false, locked((*call).setAccountData)},
		{"filter", "POST " + v3 + "/user/{user}/filter", false, locked((*call).addFilter)},
		{"filter", "GET " + v3 + "/user/{user}/filter/{filter}", false, locked((*call).getFilter)},
		{"pushrules", "GET " + v3 + "/pushrules/{rest...}", false, locked((*call).pushRules)},
		{"presence", "PUT " + v3 + "/presence/{user}/status", false, locked((*call).noContent)},
		{"sync", "GET " + v3 + "/sync", false, (*call).sync},

		{"createRoom", "POST " + v3 + "/createRoom", false, locked((*call).createRoom)},
		{"joined_rooms", "GET " + v3 + "/joined_rooms", false, locked((*call).joinedRooms)},
		{"join", "POST " + v3 + "/join/{room}", false, locked((*call).join)},
		{"join", "POST " + rooms + "/join", false, locked((*call).join)},
		{"invite", "POST " + rooms + "/invite", false, locked((*call).invite)},
		{"leave", "POST " + rooms + "/leave", false, locked((*call).leave)},
		{"forget", "POST " + rooms + "/forget", false, locked((*call).forget)},
		{"kick", "POST " + rooms + "/kick", false, locked((*call).kick)},
		{"ban", "POST " + rooms + "/ban", false, locked((*call).ban)},
		{"unban", "POST " + rooms + "/unban", false, locked((*call).unban)},
		{"state", "GET " + rooms + "/state", false, locked((*call).allState)},
		{"state", "GET " + rooms + "/state/{type}", false, locked((*call).oneState)},
		{"state", "GET " + rooms + "/state/{type}/{key}", false, locked((*call).oneState)},
		{"state", "GET " + rooms + "/state/{type}/{$}", false, locked((*call).oneState)},
		{"set_state", "PUT " + rooms + "/state/{type}", false, locked((*call).setState)},
		{"set_state", "PUT " + rooms + "/state/{type}/{key}", false, locked((*call).setState)},
		{"set_state", "PUT " + rooms + "/state/{type}/{$}", false, locked((*call).setState)},
		{"members", "GET " + rooms + "/members", false, locked((*call).members)},
		{"joined_members", "GET " + rooms + "/joined_members", false, locked((*call).joinedMembers)},
		{"send", "PUT " + rooms + "/send/{type}/{txn}", false, locked((*call).send)},
		{"redact", "PUT " + rooms + "/redact/{event}/{txn}", false, locked((*call).redact)},
		{"messages", "GET " + rooms + "/messages", false, locked((*call).messages)},
		{"event", "GET " + rooms + "/event/{event}", false, locked((*call).event)},
		{"relations", "GET /_matrix/client/v1/rooms/{room}/relations/{event}/{rel}", false, locked((*call).relations)},
		{"typing", "PUT " + rooms + "/typing/{user}", false, locked((*call).typing)},
		{"receipt", "POST " + rooms + "/receipt/{kind}/{event}", false, locked((*call).receipt)},
		{"read_markers", "POST " + rooms + "/read_markers", false, locked((*call).readMarkers)},

		{"keys_upload", "POST " + v3 + "/keys/upload", false, locked((*call).uploadKeys)},
		{"keys_query", "POST " + v3 + "/keys/query", false, locked((*call).queryKeys)},
		{"keys_claim", "POST " + v3 + "/keys/claim", false, locked((*call).claimKeys)},
		{"keys_changes", "GET " + v3 + "/keys/changes", false, locked((*call).keyChanges)},
		{"keys_signatures", "POST " + v3 + "/keys/signatures/upload", false, locked((*call).uploadSignatures)},
		{"keys_signing", "POST " + v3 + "/keys/device_signing/upload", false, locked((*call).uploadSigningKeys)},
		{"sendToDevice", "PUT " + v3 + "/sendToDevice/{type}/{txn}", false, locked((*call).sendToDevice)},
		{"backup_version", "POST " + v3 + "/room_keys/version", false, locked((*call).newBackup)},
		{"backup_version", "GET " + v3 + "/room_keys/version", false, locked((*call).getBackup)},
		{"backup_version", "GET " + v3 + "/room_keys/version/{version}", false, locked((*call).getBackup)},
		{"backup_version", "PUT " + v3 + "/room_keys/version/{version}", false, locked((*call).changeBackup)},
		{"backup_version", "DELETE " + v3 + "/room_keys/version/{version}", false, locked((*call).deleteBackup)},
		{"backup_keys", "PUT " + v3 + "/room_keys/keys", false, locked((*call).putBackupKeys)},
		{"backup_keys", "PUT " + v3 + "/room_keys/keys/{room}", false, locked((*call).putBackupKeys)},
		{"backup_keys", "PUT " + v3 + "/room_keys/keys/{room}/{session}", false, locked((*call).putBackupKeys)},
		{"backup_keys", "GET " + v3 + "/room_keys/keys", false, locked((*call).getBackupKeys)},
		{"backup_keys", "GET " + v3 + "/room_keys/keys/{room}", false, locked((*call).getBackupKeys)},
		{"backup_keys", "GET " + v3 + "/room_keys/keys/{room}/{session}", false, locked((*call).getBackupKeys)},

		{"upload", "POST /_matrix/media/v3/upload", false, (*call).upload},
		{"media_config", "GET /_matrix/client/v1/media/config", false, locked((*call).mediaConfig)},
		{"download", "GET /_matrix/client/v1/media/download/{server}/{media}", false, (*call).download},
		{"download", "GET /_matrix/client/v1/media/download/{server}/{media}/{name}", false, (*call).download},
		{"download", "GET /_matrix/media/v3/download/{server}/{media}", true, (*call).download},
	}
}

func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for _, r := range table() {
		mux.HandleFunc(r.pattern, func(w http.ResponseWriter, req *http.Request) { s.serve(r, w, req) })
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, fail(http.StatusNotFound, "M_UNRECOGNIZED", "Unrecognized request"))
	})
	return mux
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	offset := s.offset
	s.mu.Unlock()
	if offset != 0 {
		w.Header().Set("Date", time.Now().Add(offset).UTC().Format(http.TimeFormat))
	}
	w.Header().Set("Access-Control-Allow-Origin", "*")
	s.mux.ServeHTTP(w, r)
}

// serve handles one request: it counts it, applies the faults, and runs the route.
func (s *Server) serve(r route, w http.ResponseWriter, req *http.Request) {
	c := &call{Request: req, s: s}
	var tooLarge bool
	if r.name != "upload" {
		var err error
		if c.body, err = io.ReadAll(io.LimitReader(req.Body, maxBody+1)); err != nil {
			panic(http.ErrAbortHandler) // the client disconnected while sending
		}
		tooLarge = len(c.body) > maxBody
	}
	known := s.authenticate(c)
	hooks := s.countRequest(r.name, c)
	next := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		c.Request = req
		defer func() { s.mu.Lock(); s.notify(); s.mu.Unlock() }()
		switch {
		case tooLarge:
			answer(w, fail(http.StatusRequestEntityTooLarge, "M_TOO_LARGE", "the request is too large"))
		case !r.open && !known:
			answer(w, c.unauthorized())
		default:
			answer(w, r.do(c, w))
		}
	})
	s.withFaults(hooks, next).ServeHTTP(w, req)
}

// countRequest counts a request and returns its faults.
func (s *Server) countRequest(name string, c *call) []*Hook {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.notify()
	s.counts[name]++
	s.counts[""]++
	q := &Request{Endpoint: name, Method: c.Method, Path: c.URL.Path, Room: c.PathValue("room"), Body: c.body}
	if c.user != nil {
		q.User, q.Device = c.user.id, c.dev.id
	}
	return s.matchingHooks(q)
}

// authenticate finds the login of the access token.
func (s *Server) authenticate(c *call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.tokens[c.token()]
	if d == nil || d.user.deactivated {
		return false
	}
	c.dev, c.user = d, d.user
	d.lastSeen = s.now()
	return true
}

func (c *call) token() string {
	if t, ok := strings.CutPrefix(c.Header.Get("Authorization"), "Bearer "); ok {
		return t
	}
	return c.URL.Query().Get("access_token")
}

func (c *call) unauthorized() *failure {
	if c.token() == "" {
		return fail(http.StatusUnauthorized, "M_MISSING_TOKEN", "missing access token")
	}
	return fail(http.StatusUnauthorized, "M_UNKNOWN_TOKEN", "Unknown token")
}

// read decodes the body.
func (c *call) read(into any) *failure {
	if err := json.Unmarshal(c.body, into); err != nil {
		return fail(http.StatusBadRequest, "M_BAD_JSON", "The request body could not be decoded into valid JSON. "+err.Error())
	}
	return nil
}

// number reads a query parameter.
func (c *call) number(name string, otherwise int) int {
	n, err := strconv.Atoi(c.URL.Query().Get(name))
	if err != nil {
		return otherwise
	}
	return n
}

// answer writes the response of a route.
func answer(w http.ResponseWriter, result any) {
	status := http.StatusOK
	switch r := result.(type) {
	case nil:
		return
	case *failure:
		status = r.status
		body := map[string]any{"errcode": r.code, "error": r.text}
		if r.code == "" {
			body = map[string]any{}
		}
		maps.Copy(body, r.more)
		result = body
	}
	data, err := json.Marshal(result)
	if err != nil {
		status, data = http.StatusInternalServerError, fmt.Appendf(nil, `{"errcode":"M_UNKNOWN","error":%q}`, err.Error())
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(status)
	_, _ = w.Write(data) // the client may have disconnected
}

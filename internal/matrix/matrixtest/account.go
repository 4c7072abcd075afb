package matrixtest

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

func (c *call) noContent() any { return empty{} }

func (c *call) versions() any {
	return map[string]any{
		"versions":          []string{"r0.6.1", "v1.0", "v1.1", "v1.2"},
		"unstable_features": map[string]bool{"org.matrix.e2e_cross_signing": true},
	}
}

func (c *call) flows() any {
	return map[string]any{"flows": []map[string]string{{"type": "m.login.password"}}}
}

func (c *call) capabilities() any {
	return map[string]any{"capabilities": map[string]any{
		"m.change_password": map[string]bool{"enabled": true},
		"m.room_versions":   map[string]any{"default": roomVersion, "available": map[string]string{roomVersion: "stable"}},
	}}
}

func (c *call) pushRules() any { return noPushRules() }

func noPushRules() any {
	none := []string{}
	return map[string]any{"global": map[string]any{"content": none, "override": none, "room": none, "sender": none, "underride": none}}
}

type loginRequest struct {
	Type       string `json:"type"`
	Identifier struct {
		Type string `json:"type"`
		User string `json:"user"`
	} `json:"identifier"`
	User     string `json:"user"`
	Password string `json:"password"`
	DeviceID string `json:"device_id"`
	Name     string `json:"initial_device_display_name"`
	Session  string `json:"session"`
}

// check checks the password.
func (r loginRequest) check(s *Server) (*user, *failure) {
	name := r.Identifier.User
	if name == "" {
		name = r.User
	}
	if !strings.HasPrefix(name, "@") {
		name = "@" + name + ":" + s.Name
	}
	u := s.users[strings.ToLower(name)]
	if u == nil || u.password != r.Password || r.Password == "" || u.deactivated {
		return nil, forbidden("The username or password was incorrect or the account does not exist.")
	}
	return u, nil
}

func (c *call) login() any {
	var r loginRequest
	if f := c.read(&r); f != nil {
		return f
	}
	if r.Type != "m.login.password" {
		return fail(http.StatusBadRequest, "M_INVALID_PARAM", "unhandled login type: "+r.Type)
	}
	u, f := r.check(c.s)
	if f != nil {
		return f
	}
	// A login of the same device gets a new access token and ends the old one.
	d := u.devices[r.DeviceID]
	if d == nil || r.DeviceID == "" {
		d = &device{user: u, id: r.DeviceID, name: r.Name, fallback: map[string]*oneTimeKey{}}
		if d.id == "" {
			d.id = c.s.id("DEVICE")
		}
		u.devices[d.id] = d
	}
	delete(c.s.tokens, d.token)
	d.token = c.s.id("token_")
	c.s.tokens[d.token] = d
	return map[string]string{"user_id": u.id, "access_token": d.token, "device_id": d.id, "home_server": c.s.Name}
}

func (c *call) logout() any {
	c.s.dropDevice(c.user, c.dev.id)
	return empty{}
}

// dropDevice deletes a device with its keys. The lock is held.
func (s *Server) dropDevice(u *user, id string) {
	d := u.devices[id]
	if d == nil {
		return
	}
	delete(s.tokens, d.token)
	delete(u.devices, id)
	s.keysChanged(u)
}

func (c *call) whoami() any {
	return map[string]any{"user_id": c.user.id, "device_id": c.dev.id, "is_guest": false}
}

func (d *device) describe() map[string]any {
	return map[string]any{"device_id": d.id, "display_name": d.name, "last_seen_ip": "127.0.0.1", "last_seen_ts": d.lastSeen}
}

func (c *call) devices() any {
	list := []map[string]any{}
	for _, id := range slices.Sorted(maps.Keys(c.user.devices)) {
		list = append(list, c.user.devices[id].describe())
	}
	return map[string]any{"devices": list}
}

func (c *call) getDevice() any {
	if d := c.user.devices[c.PathValue("device")]; d != nil {
		return d.describe()
	}
	return notFound("device")
}

func (c *call) nameDevice() any {
	d := c.user.devices[c.PathValue("device")]
	if d == nil {
		return notFound("device")
	}
	var r struct {
		Name *string `json:"display_name"`
	}
	if f := c.read(&r); f != nil {
		return f
	}
	if r.Name != nil {
		d.name = *r.Name
		c.s.keysChanged(c.user)
	}
	return empty{}
}

// interactive runs user-interactive authentication: it asks for the password or checks it.
func (c *call) interactive() *failure {
	var r struct {
		Auth *loginRequest `json:"auth"`
	}
	if f := c.read(&r); f != nil {
		return f
	}
	if r.Auth == nil || r.Auth.Type != "m.login.password" {
		return &failure{status: http.StatusUnauthorized, more: map[string]any{
			"session": c.s.id("uia"), "params": map[string]any{}, "completed": []string{},
			"flows": []map[string][]string{{"stages": {"m.login.password"}}},
		}}
	}
	u, f := r.Auth.check(c.s)
	if f != nil {
		return f
	}
	if u != c.user {
		return forbidden("that is somebody else's password")
	}
	return nil
}

func (c *call) deleteDevice() any {
	if f := c.interactive(); f != nil {
		return f
	}
	c.s.dropDevice(c.user, c.PathValue("device"))
	return empty{}
}

func (c *call) deleteDevices() any {
	var r struct {
		Devices []string `json:"devices"`
	}
	if f := c.read(&r); f != nil {
		return f
	}
	if f := c.interactive(); f != nil {
		return f
	}
	for _, d := range r.Devices {
		c.s.dropDevice(c.user, d)
	}
	return empty{}
}

func (c *call) profile() any {
	u := c.s.users[c.PathValue("user")]
	if u == nil {
		return notFound("user")
	}
	all := map[string]string{"displayname": u.name, "avatar_url": ""}
	if key := c.PathValue("key"); key != "" {
		return map[string]string{key: all[key]}
	}
	return all
}

func (c *call) setName() any {
	var r struct {
		Name string `json:"displayname"`
	}
	if f := c.read(&r); f != nil {
		return f
	}
	if c.PathValue("user") != c.user.id {
		return forbidden("userID does not match the current user")
	}
	c.user.name = r.Name
	for _, id := range slices.Sorted(maps.Keys(c.user.rooms)) {
		if room := c.user.rooms[id]; room.membership(c.user.id) == "join" {
			c.s.addMember(room, c.user.id, c.user.id, "join", nil)
		}
	}
	return empty{}
}

// dataKey returns the key of account data, which is per room.
func (c *call) dataKey() string { return c.PathValue("room") + " " + c.PathValue("type") }

func (c *call) accountData() any {
	if c.PathValue("user") != c.user.id {
		return forbidden("userID does not match the current user")
	}
	d, ok := c.user.data[c.dataKey()]
	if !ok {
		return notFound("data")
	}
	return d.content
}

func (c *call) setAccountData() any {
	if c.PathValue("user") != c.user.id {
		return forbidden("userID does not match the current user")
	}
	var content map[string]json.RawMessage
	if f := c.read(&content); f != nil {
		return f
	}
	c.user.data[c.dataKey()] = datum{c.s.next(), c.body}
	c.user.wakeSyncs()
	return empty{}
}

func (c *call) addFilter() any {
	var f filter
	if bad := c.read(&f); bad != nil {
		return bad
	}
	c.user.filters = append(c.user.filters, c.body)
	return map[string]string{"filter_id": strconv.Itoa(len(c.user.filters) - 1)}
}

func (c *call) getFilter() any {
	n, err := strconv.Atoi(c.PathValue("filter"))
	if err != nil || n < 0 || n >= len(c.user.filters) {
		return notFound("filter")
	}
	return c.user.filters[n]
}

// RevokeToken revokes the access tokens of a user and keeps the devices and their keys. A login with
// the device ID continues.
func (s *Server) RevokeToken(userID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.users[userID]; u != nil {
		for _, d := range u.devices {
			delete(s.tokens, d.token)
		}
		u.wakeSyncs()
	}
}

// DeleteDevices deletes the devices of a user with their keys, as an administrator may.
func (s *Server) DeleteDevices(userID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.users[userID]; u != nil {
		for _, id := range slices.Sorted(maps.Keys(u.devices)) {
			s.dropDevice(u, id)
		}
		u.wakeSyncs()
	}
}

// Reactivate undoes Deactivate.
func (s *Server) Reactivate(userID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.users[userID]; u != nil {
		u.deactivated = false
	}
}

// Deactivate deactivates an account.
func (s *Server) Deactivate(userID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.users[userID]; u != nil {
		u.deactivated = true
		u.wakeSyncs()
	}
}

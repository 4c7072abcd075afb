package matrixtest

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// oneTimeKey is a key that is claimed once; a fallback key may be claimed more often.
type oneTimeKey struct {
	id   string // algorithm:name
	raw  json.RawMessage
	used bool
}

func algorithm(id string) string {
	a, _, _ := strings.Cut(id, ":")
	return a
}

func (d *device) counts() map[string]int {
	n := map[string]int{}
	for _, k := range d.oneTime {
		n[algorithm(k.id)]++
	}
	return n
}

func (d *device) unusedFallback() []string {
	list := []string{}
	for _, a := range slices.Sorted(maps.Keys(d.fallback)) {
		if !d.fallback[a].used {
			list = append(list, a)
		}
	}
	return list
}

// keysChanged adds u to the changed device lists of all users who share a room with u. The lock is
// held.
func (s *Server) keysChanged(u *user) {
	u.keysAt = s.next()
	s.peersAt = u.keysAt
	u.wakeSyncs()
	for _, r := range u.rooms {
		if r.membership(u.id) != "join" {
			continue
		}
		for _, other := range r.usersWith("join") {
			if o := s.users[other]; o != nil && o != u {
				o.wakeSyncs()
			}
		}
	}
}

func (c *call) uploadKeys() any {
	var q struct {
		Device   json.RawMessage            `json:"device_keys"`
		OneTime  map[string]json.RawMessage `json:"one_time_keys"`
		Fallback map[string]json.RawMessage `json:"fallback_keys"`
	}
	if f := c.read(&q); f != nil {
		return f
	}
	if len(q.Device) > 0 && string(q.Device) != "null" {
		var k struct {
			User   string `json:"user_id"`
			Device string `json:"device_id"`
		}
		if json.Unmarshal(q.Device, &k) != nil || k.User != c.user.id || k.Device != c.dev.id {
			return fail(http.StatusBadRequest, "M_INVALID_PARAM", "user_id or device_id of the keys is not the caller's")
		}
		if !bytes.Equal(c.dev.keys, q.Device) {
			c.dev.keys = q.Device
			c.s.keysChanged(c.user)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(q.OneTime)) {
		i := slices.IndexFunc(c.dev.oneTime, func(k oneTimeKey) bool { return k.id == id })
		switch {
		case i < 0:
			c.dev.oneTime = append(c.dev.oneTime, oneTimeKey{id: id, raw: q.OneTime[id]})
		case !bytes.Equal(c.dev.oneTime[i].raw, q.OneTime[id]):
			return fail(http.StatusBadRequest, "", "") // Dendrite names the key in its own words
		}
	}
	for _, id := range slices.Sorted(maps.Keys(q.Fallback)) {
		c.dev.fallback[algorithm(id)] = &oneTimeKey{id: id, raw: q.Fallback[id]}
	}
	return map[string]any{"one_time_key_counts": c.dev.counts()}
}

func (c *call) queryKeys() any {
	var q struct {
		Devices map[string][]string `json:"device_keys"`
	}
	if f := c.read(&q); f != nil {
		return f
	}
	devices := map[string]map[string]json.RawMessage{}
	identity := map[string]map[string]json.RawMessage{"master": {}, "self_signing": {}, "user_signing": {}}
	for id, wanted := range q.Devices {
		devices[id] = map[string]json.RawMessage{}
		u := c.s.users[id]
		if u == nil {
			continue
		}
		for _, d := range u.devices {
			if len(d.keys) > 0 && (len(wanted) == 0 || slices.Contains(wanted, d.id)) {
				devices[id][d.id] = withField(d.keys, "unsigned", map[string]string{"device_display_name": d.name})
			}
		}
		for usage, k := range u.keys {
			if usage != "user_signing" || u == c.user {
				identity[usage][id] = k
			}
		}
	}
	return map[string]any{
		"device_keys": devices, "failures": map[string]any{}, "master_keys": identity["master"],
		"self_signing_keys": identity["self_signing"], "user_signing_keys": identity["user_signing"],
	}
}

// withField sets a field of a JSON object.
func withField(object json.RawMessage, name string, value any) json.RawMessage {
	fields := map[string]json.RawMessage{}
	_ = json.Unmarshal(object, &fields) // it was a valid object
	fields[name] = mustJSON(value)
	return mustJSON(fields)
}

func (c *call) claimKeys() any {
	var q struct {
		Keys map[string]map[string]string `json:"one_time_keys"`
	}
	if f := c.read(&q); f != nil {
		return f
	}
	all := map[string]map[string]map[string]json.RawMessage{}
	for id, devices := range q.Keys {
		u := c.s.users[id]
		if u == nil {
			continue
		}
		for name, alg := range devices {
			d := u.devices[name]
			if d == nil {
				continue
			}
			if k := d.claim(alg); k != nil {
				if all[id] == nil {
					all[id] = map[string]map[string]json.RawMessage{}
				}
				all[id][name] = map[string]json.RawMessage{k.id: k.raw}
			}
		}
	}
	return map[string]any{"one_time_keys": all, "failures": map[string]any{}}
}

// claim returns and removes a one-time key, or returns the fallback key if none are left.
func (d *device) claim(alg string) *oneTimeKey {
	if i := slices.IndexFunc(d.oneTime, func(k oneTimeKey) bool { return algorithm(k.id) == alg }); i >= 0 {
		k := d.oneTime[i]
		d.oneTime = slices.Delete(d.oneTime, i, i+1)
		return &k
	}
	if k := d.fallback[alg]; k != nil {
		k.used = true
		return k
	}
	return nil
}

func (c *call) keyChanges() any {
	since, f := parseToken(c.URL.Query().Get("from"))
	if f != nil {
		return f
	}
	if l := c.deviceListsSince(&window{since: since}); l != nil {
		return map[string]any{"changed": append([]string{}, l.Changed...), "left": append([]string{}, l.Left...)}
	}
	return map[string]any{"changed": []string{}, "left": []string{}}
}

// publicKey returns the only key of a cross-signing key object.
func publicKey(raw json.RawMessage) string {
	var k struct {
		Keys map[string]string `json:"keys"`
	}
	_ = json.Unmarshal(raw, &k) // without a key on failure
	for _, v := range k.Keys {
		return v
	}
	return ""
}

func (c *call) uploadSigningKeys() any {
	var q map[string]json.RawMessage
	if f := c.read(&q); f != nil {
		return f
	}
	differs := false
	for _, usage := range []string{"master", "self_signing", "user_signing"} {
		if k, ok := q[usage+"_key"]; ok && publicKey(k) != publicKey(c.user.keys[usage]) {
			differs = true
		}
	}
	// Like Dendrite: the first identity needs no password.
	if differs && (c.s.AlwaysAsk || c.user.keys["master"] != nil) {
		if f := c.interactive(); f != nil {
			return f
		}
	}
	if c.user.keys["master"] == nil && q["master_key"] == nil {
		return fail(http.StatusBadRequest, "M_MISSING_PARAM", "No master key was found")
	}
	for _, usage := range []string{"master", "self_signing", "user_signing"} {
		if k, ok := q[usage+"_key"]; ok {
			c.user.keys[usage] = k
		}
	}
	c.s.keysChanged(c.user)
	return empty{}
}

// uploadSignatures adds signatures to device keys and to master keys. Like real servers it accepts
// those of one's own keys, and those of other people's master keys.
func (c *call) uploadSignatures() any {
	var q map[string]map[string]json.RawMessage
	if f := c.read(&q); f != nil {
		return f
	}
	for id, objects := range q {
		u := c.s.users[id]
		if u == nil {
			continue
		}
		for name, signed := range objects {
			switch {
			case u.devices[name] != nil && len(u.devices[name].keys) > 0:
				u.devices[name].keys = addSignatures(u.devices[name].keys, signed)
			case u.keys["master"] != nil && publicKey(u.keys["master"]) == name:
				u.keys["master"] = addSignatures(u.keys["master"], signed)
			}
		}
		c.s.keysChanged(u)
	}
	return map[string]any{"failures": map[string]any{}}
}

func addSignatures(object, from json.RawMessage) json.RawMessage {
	type signed struct {
		Signatures map[string]map[string]string `json:"signatures"`
	}
	var old, added signed
	_ = json.Unmarshal(object, &old) // empty on failure
	_ = json.Unmarshal(from, &added) // empty on failure
	if old.Signatures == nil {
		old.Signatures = map[string]map[string]string{}
	}
	for user, keys := range added.Signatures {
		if old.Signatures[user] == nil {
			old.Signatures[user] = map[string]string{}
		}
		maps.Copy(old.Signatures[user], keys)
	}
	return withField(object, "signatures", old.Signatures)
}

func (c *call) sendToDevice() any {
	return c.dedupe(func() any {
		var q struct {
			Messages map[string]map[string]json.RawMessage `json:"messages"`
		}
		if f := c.read(&q); f != nil {
			return f
		}
		for id, devices := range q.Messages {
			u := c.s.users[id]
			if u == nil {
				continue
			}
			for name, content := range devices {
				raw := mustJSON(map[string]any{"type": c.PathValue("type"), "sender": c.user.id, "content": content})
				for _, d := range u.devices {
					if name == "*" || name == d.id {
						d.inbox = append(d.inbox, toDevice{c.s.next(), raw})
					}
				}
			}
			u.wakeSyncs()
		}
		return empty{}
	})
}

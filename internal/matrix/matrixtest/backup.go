package matrixtest

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// backup is a version of a user's key backup.
type backup struct {
	version   string
	algorithm string
	auth      json.RawMessage
	etag      int
	deleted   bool
	keys      map[string]map[string]json.RawMessage // room → session → key
}

func (b *backup) count() int {
	n := 0
	for _, sessions := range b.keys {
		n += len(sessions)
	}
	return n
}

func (b *backup) summary() map[string]any {
	return map[string]any{"count": b.count(), "etag": strconv.Itoa(b.etag)}
}

// backupOf returns a version, or the newest if version is empty.
func (u *user) backupOf(version string) *backup {
	for i := len(u.backups) - 1; i >= 0; i-- {
		if b := u.backups[i]; !b.deleted && (version == "" || b.version == version) {
			return b
		}
	}
	return nil
}

type backupVersion struct {
	Algorithm string          `json:"algorithm"`
	Auth      json.RawMessage `json:"auth_data"`
}

func (c *call) newBackup() any {
	var q backupVersion
	if f := c.read(&q); f != nil {
		return f
	}
	if q.Algorithm == "" || len(q.Auth) == 0 {
		return fail(http.StatusBadRequest, "M_BAD_JSON", "algorithm and auth_data are needed")
	}
	b := &backup{
		version: strconv.Itoa(len(c.user.backups) + 1), algorithm: q.Algorithm, auth: q.Auth,
		keys: map[string]map[string]json.RawMessage{},
	}
	c.user.backups = append(c.user.backups, b)
	return map[string]string{"version": b.version}
}

func (c *call) getBackup() any {
	b := c.user.backupOf(c.PathValue("version"))
	if b == nil {
		return notFound("backup version")
	}
	return map[string]any{
		"algorithm": b.algorithm, "auth_data": b.auth, "count": b.count(), "etag": strconv.Itoa(b.etag), "version": b.version,
	}
}

func (c *call) changeBackup() any {
	var q backupVersion
	if f := c.read(&q); f != nil {
		return f
	}
	b := c.user.backupOf(c.PathValue("version"))
	switch {
	case b == nil:
		return notFound("backup version")
	case q.Algorithm != b.algorithm:
		return fail(http.StatusBadRequest, "M_INVALID_PARAM", "the algorithm cannot be changed")
	}
	b.auth = q.Auth
	return empty{}
}

func (c *call) deleteBackup() any {
	b := c.user.backupOf(c.PathValue("version"))
	if b == nil {
		return notFound("backup version")
	}
	b.deleted = true
	return empty{}
}

// allSessions reads the keys of a request: of one session, a room, or many rooms.
func (c *call) allSessions() (map[string]map[string]json.RawMessage, *failure) {
	all := map[string]map[string]json.RawMessage{}
	room, session := c.PathValue("room"), c.PathValue("session")
	type sessions struct {
		Sessions map[string]json.RawMessage `json:"sessions"`
	}
	switch {
	case session != "":
		if !json.Valid(c.body) {
			return nil, fail(http.StatusBadRequest, "M_NOT_JSON", "not JSON")
		}
		all[room] = map[string]json.RawMessage{session: c.body}
	case room != "":
		var q sessions
		if f := c.read(&q); f != nil {
			return nil, f
		}
		all[room] = q.Sessions
	default:
		var q struct {
			Rooms map[string]sessions `json:"rooms"`
		}
		if f := c.read(&q); f != nil {
			return nil, f
		}
		for id, s := range q.Rooms {
			all[id] = s.Sessions
		}
	}
	return all, nil
}

func (c *call) putBackupKeys() any {
	all, f := c.allSessions()
	if f != nil {
		return f
	}
	b := c.user.backupOf("")
	if b == nil {
		return notFound("backup version")
	}
	if b.version != c.URL.Query().Get("version") {
		return &failure{
			status: http.StatusForbidden, code: "M_WRONG_ROOM_KEYS_VERSION", text: "Wrong backup version.",
			more: map[string]any{"current_version": b.version},
		}
	}
	for room, sessions := range all {
		if b.keys[room] == nil {
			b.keys[room] = map[string]json.RawMessage{}
		}
		for id, key := range sessions {
			if old, ok := b.keys[room][id]; !ok || better(key, old) {
				b.keys[room][id] = key
				b.etag++
			}
		}
	}
	return b.summary()
}

// better reports whether a key must replace the stored one.
func better(key, old json.RawMessage) bool {
	type quality struct {
		First     int  `json:"first_message_index"`
		Forwarded int  `json:"forwarded_count"`
		Verified  bool `json:"is_verified"`
	}
	var a, b quality
	if json.Unmarshal(key, &a) != nil || json.Unmarshal(old, &b) != nil {
		return false
	}
	switch {
	case a.Verified != b.Verified:
		return a.Verified
	case a.First != b.First:
		return a.First < b.First
	}
	return a.Forwarded < b.Forwarded
}

func (c *call) getBackupKeys() any {
	b := c.user.backupOf(c.URL.Query().Get("version"))
	if b == nil {
		return notFound("backup version")
	}
	room, session := c.PathValue("room"), c.PathValue("session")
	if session != "" {
		if key, ok := b.keys[room][session]; ok {
			return key
		}
		return notFound("key")
	}
	sessions := func(m map[string]json.RawMessage) any {
		if m == nil {
			m = map[string]json.RawMessage{}
		}
		return map[string]any{"sessions": m}
	}
	if room != "" {
		return sessions(b.keys[room])
	}
	rooms := map[string]any{}
	for id, m := range b.keys {
		rooms[id] = sessions(m)
	}
	return map[string]any{"rooms": rooms}
}

package store

import (
	"crypto/rand"
	"encoding/base32"
	"strings"
)

// The alphabet has no 0, 1, 8, 9: what is left is hard to misread.
var ids = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// NewID is a random id of a row, as "task_ab12cd34". Should it ever be taken, the insert fails.
func NewID(kind string) string {
	b := make([]byte, 5)
	rand.Read(b) // never fails
	return kind + "_" + ids.EncodeToString(b)
}

// BareID takes the forms people and models write: "#task_x", "task_x".
func NormalizeID(id string) string {
	return strings.ToLower(strings.TrimPrefix(strings.TrimSpace(id), "#"))
}

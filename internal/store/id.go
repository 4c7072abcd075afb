package store

import (
	"crypto/rand"
	"encoding/base32"
	"strings"
)

// The alphabet omits 0, 1, 8 and 9, which are easy to misread.
var ids = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// NewID returns a random row id such as "task_ab12cd34". In case of a collision the insert fails.
func NewID(kind string) string {
	b := make([]byte, 5)
	rand.Read(b) // never fails
	return kind + "_" + ids.EncodeToString(b)
}

// NormalizeID accepts the forms that people and models write: "#task_x", "TASK_X".
func NormalizeID(id string) string {
	return strings.ToLower(strings.TrimPrefix(strings.TrimSpace(id), "#"))
}

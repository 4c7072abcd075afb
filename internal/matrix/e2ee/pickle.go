package e2ee

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"reverie/internal/store"
)

// StoredDevice returns the device of the crypto store in db. Without a crypto store it returns "".
func StoredDevice(ctx context.Context, db *sql.DB) (string, error) {
	n, err := store.Value[int](ctx, db, `SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'crypto_account'`)
	if err != nil || n == 0 {
		return "", err
	}
	return store.Value[string](ctx, db, `SELECT device_id FROM crypto_account WHERE account_id = ''`)
}

// PickleKey returns the key in dir that encrypts the crypto store of device. It creates a key only
// if there is no crypto store yet.
func PickleKey(dir, device string) ([]byte, error) {
	path := filepath.Join(dir, "pickle.key")
	key, err := os.ReadFile(path)
	switch {
	case err == nil && len(key) == 32:
		return key, nil
	case err == nil:
		return nil, fmt.Errorf("matrix: %s is damaged (%d bytes, must be 32); restore it from a backup", path, len(key))
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("matrix: read pickle key: %w", err)
	case device != "":
		return nil, fmt.Errorf("matrix: %s is missing, but the encryption keys of device %s in bot.db are sealed with it; "+
			"restore it from a backup", path, device)
	}
	key = make([]byte, 32)
	rand.Read(key)
	return key, store.Wrap(store.WriteFile(path, key), "matrix: write pickle key")
}

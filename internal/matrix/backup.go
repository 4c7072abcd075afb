package matrix

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"reverie/internal/i18n"
	"reverie/internal/matrix/retry"
	"reverie/internal/text"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/crypto"
	"maunium.net/go/mautrix/crypto/backup"
	"maunium.net/go/mautrix/crypto/signatures"
	"maunium.net/go/mautrix/crypto/ssss"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"
)

const (
	backupTimeout = 30 * time.Second // for one step at the start, so that a slow server does not hold it up
	backupBatch   = 100              // keys in one upload
	backupSettle  = 2 * time.Second  // keys often come several at once
	backupEvery   = time.Minute      // looks again even if nothing seems to be new
	backupIdle    = time.Hour        // after a refusal: only a person can change it
)

// errNoSecrets says that the keys of the account's identity are not here.
var errNoSecrets = errors.New("the recovery key of the account is not here, so its key backup cannot be used")

// openBackup makes the backup of the message keys, or takes up the one there
// is. The bot works without: whatever is wrong is tried again by runBackup.
func (c *Client) openBackup(ctx context.Context) {
	c.onSession(func(context.Context, id.RoomID, id.SessionID) { retry.Wake(c.backupWake) })
	ctx, cancel := context.WithTimeout(ctx, backupTimeout)
	defer cancel()
	_, err := c.ensureBackup(ctx)
	c.noteBackup(err)
}

// onSession adds f to what happens when a Megolm session arrives, from
// whatever source. It must be called before Run.
func (c *Client) onSession(f func(context.Context, id.RoomID, id.SessionID)) {
	m := c.machine()
	before := m.SessionReceived
	m.SessionReceived = func(ctx context.Context, room id.RoomID, session id.SessionID, first uint32) {
		if before != nil {
			before(ctx, room, session, first)
		}
		f(ctx, room, session)
	}
}

// noteBackup keeps how the last attempt went; a lasting problem is logged once.
func (c *Client) noteBackup(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	c.mu.Lock()
	same := c.noBackup == text
	c.noBackup = text
	c.mu.Unlock()
	switch {
	case same:
	case err != nil:
		c.log.Warn("matrix: the key backup does not work; messages are read and sent all the same", "err", err)
	default:
		c.log.Info("matrix: the key backup works again")
	}
}

// runBackup restores what this device lacks, and uploads new keys as they come.
func (c *Client) runBackup(ctx context.Context) error {
	for attempt := 0; ; attempt++ {
		err := c.backUp(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		c.noteBackup(err)
		wait := backupEvery
		if err == nil {
			attempt = -1
		} else {
			var v retry.Class
			if v, wait = retry.Classify(err, attempt); v == retry.Never || errors.Is(err, errNoSecrets) {
				wait = backupIdle
			}
		}
		wake := c.backupWake
		if err != nil {
			wake = nil // new keys do not mend it
		}
		if err := retry.Pause(ctx, wake, wait); err != nil {
			return err
		}
		if err := retry.Pause(ctx, nil, backupSettle); err != nil {
			return err
		}
	}
}

// backUp brings device and backup together, in both directions.
func (c *Client) backUp(ctx context.Context) (err error) {
	defer func() {
		if r := recover(); r != nil {
			c.log.Error("matrix: panic in the key backup", "panic", r, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	b, err := c.ensureBackup(ctx)
	if err != nil {
		return err
	}
	if b.Restored != c.cli.DeviceID {
		if err := c.restoreKeys(ctx, b); err != nil {
			return fmt.Errorf("restore keys: %w", err)
		}
	}
	if err = c.uploadKeys(ctx, b); err != nil && c.replaced(ctx, b) {
		c.log.Warn("matrix: the key backup is no longer the one on the homeserver; looking for the new one", "version", b.Version, "err", err)
		if err := c.keepSecrets(ctx, func(s *secrets) { s.Backup = nil }); err != nil {
			return err
		}
		return c.backUp(ctx)
	}
	return err
}

// replaced tells whether the server has another backup now, or none. Servers
// differ in how they refuse keys for one that is gone, so they are asked.
func (c *Client) replaced(ctx context.Context, b backupSecret) bool {
	latest, err := c.cli.GetKeyBackupLatestVersion(ctx)
	return errors.Is(err, mautrix.MNotFound) || err == nil && latest.Version != b.Version
}

// ensureBackup returns the backup in use. There are three steps to a new one,
// its key in the account's secret storage, the backup itself, and our note of
// it; the next call goes on wherever one stops.
func (c *Client) ensureBackup(ctx context.Context) (backupSecret, error) {
	c.mu.Lock()
	known := c.secrets.Backup
	c.mu.Unlock()
	if known != nil {
		return *known, nil
	}
	m := c.machine()
	if m.CrossSigningKeys == nil {
		return backupSecret{}, errNoSecrets
	}
	storage, err := c.secretStorage(ctx)
	if err != nil {
		return backupSecret{}, err
	}
	latest, err := c.cli.GetKeyBackupLatestVersion(ctx)
	if errors.Is(err, mautrix.MNotFound) {
		latest, err = nil, nil
	}
	if err != nil {
		return backupSecret{}, fmt.Errorf("ask for the key backup: %w", err)
	}
	key, err := c.backupKey(ctx, storage, latest == nil)
	if err != nil {
		return backupSecret{}, err
	}
	b := backupSecret{Key: key.Bytes()}
	switch {
	case latest == nil:
		if b.Version, err = c.newBackup(ctx, key); err != nil {
			return backupSecret{}, err
		}
		b.Restored = c.cli.DeviceID // there is nothing to restore
	case latest.Algorithm != id.KeyBackupAlgorithmMegolmBackupV1:
		return backupSecret{}, retry.Refuse(i18n.Text(
			fmt.Sprintf("the account's key backup is of a kind that is not supported here (%s)", text.Clip(string(latest.Algorithm), 60))))
	case latest.AuthData.PublicKey != publicBackupKey(key):
		return backupSecret{}, retry.Refuse(i18n.Text("the key in the account's secret storage does not open its key backup; " +
			"another client made the backup anew, and its recovery key belongs into " + c.cfg.dir("recovery.key")))
	default:
		b.Version = latest.Version
	}
	if err := c.keepSecrets(ctx, func(s *secrets) { s.Backup = &b }); err != nil {
		return backupSecret{}, err
	}
	return b, nil
}

// backupKey returns the backup's private key from the secret storage. With
// create it makes one if there is none.
func (c *Client) backupKey(ctx context.Context, storage *ssss.Key, create bool) (*backup.MegolmBackupKey, error) {
	var sealed ssss.EncryptedAccountDataEventContent
	err := c.cli.GetAccountData(ctx, event.AccountDataMegolmBackupKey.Type, &sealed)
	switch {
	case err != nil && !errors.Is(err, mautrix.MNotFound):
		return nil, fmt.Errorf("ask for the backup's key: %w", err)
	case err == nil && len(sealed.Encrypted) > 0:
		raw, err := sealed.Decrypt(event.AccountDataMegolmBackupKey.Type, storage)
		if err != nil {
			return nil, retry.Refuse(i18n.Text(fmt.Sprintf("%s does not open the key of the account's key backup: %v", c.cfg.dir("recovery.key"), err)))
		}
		key, err := backup.MegolmBackupKeyFromBytes(raw)
		if err != nil {
			return nil, retry.Refuse(i18n.Text(fmt.Sprintf("the key of the account's key backup is damaged: %v", err)))
		}
		return key, nil
	case !create:
		return nil, retry.Refuse("the account has a key backup of another client, whose key is not in the account's secret storage; delete that backup there, or store its key there")
	}
	key, err := backup.NewMegolmBackupKey()
	if err != nil {
		return nil, fmt.Errorf("make a backup key: %w", err)
	}
	if err := c.machine().SSSS.SetEncryptedAccountData(ctx, event.AccountDataMegolmBackupKey, key.Bytes(), storage); err != nil {
		return nil, fmt.Errorf("store the backup's key: %w", err)
	}
	return key, nil
}

func publicBackupKey(key *backup.MegolmBackupKey) id.Ed25519 {
	return id.Ed25519(base64.RawStdEncoding.EncodeToString(key.PublicKey().Bytes()))
}

// newBackup makes an empty backup that our identity vouches for.
func (c *Client) newBackup(ctx context.Context, key *backup.MegolmBackupKey) (id.KeyBackupVersion, error) {
	master := c.machine().CrossSigningKeys.MasterKey
	auth := backup.MegolmAuthData{PublicKey: publicBackupKey(key)}
	signature, err := master.SignJSON(auth)
	if err != nil {
		return "", fmt.Errorf("sign the key backup: %w", err)
	}
	auth.Signatures = signatures.NewSingleSignature(c.cli.UserID, id.KeyAlgorithmEd25519, master.PublicKey().String(), signature)
	made, err := c.cli.CreateKeyBackupVersion(ctx, &mautrix.ReqRoomKeysVersionCreate[backup.MegolmAuthData]{
		Algorithm: id.KeyBackupAlgorithmMegolmBackupV1, AuthData: auth,
	})
	if err != nil {
		return "", fmt.Errorf("make the key backup: %w", err)
	}
	c.log.Info("matrix: key backup made; the recovery key opens it", "version", made.Version)
	return made.Version, nil
}

// restoreKeys takes all keys of the backup into the crypto store. A key that
// is there already, and is as good, stays.
func (c *Client) restoreKeys(ctx context.Context, b backupSecret) error {
	key, err := backup.MegolmBackupKeyFromBytes(b.Key)
	if err != nil {
		return fmt.Errorf("the backup's key: %w", err)
	}
	all, err := c.cli.GetKeyBackup(ctx, b.Version)
	if err != nil && !errors.Is(err, mautrix.MNotFound) { // some servers say that of an empty one
		return fmt.Errorf("download: %w", err)
	}
	good, bad := 0, 0
	if err == nil {
		for room, in := range all.Rooms {
			for session, sealed := range in.Sessions {
				err := c.restoreKey(ctx, b.Version, key, room, session, sealed.SessionData)
				switch {
				case errors.Is(err, crypto.ErrFailedToStoreNewInboundGroupSessionFromBackup), ctx.Err() != nil:
					return err
				case err != nil:
					c.log.Warn("matrix: a key in the backup cannot be used", "room", room, "session", session, "err", err)
					bad++
				default:
					good++
				}
			}
		}
	}
	b.Restored = c.cli.DeviceID
	if err := c.keepSecrets(ctx, func(s *secrets) { s.Backup = &b }); err != nil {
		return err
	}
	c.log.Info("matrix: message keys restored from the backup", "keys", good, "unusable", bad)
	return nil
}

func (c *Client) restoreKey(ctx context.Context, version id.KeyBackupVersion, key *backup.MegolmBackupKey, room id.RoomID, session id.SessionID, sealed backup.EncryptedSessionData[backup.MegolmSessionData]) error {
	if sealed.Ephemeral.PublicKey == nil {
		return errors.New("it is not complete")
	}
	data, err := sealed.Decrypt(key)
	if err != nil {
		return err
	}
	_, err = c.machine().ImportRoomKeyFromBackup(ctx, version, room, session, data)
	return err
}

// uploadKeys puts everything into the backup that is not there yet. What is
// left to do stands in the crypto store, so nothing is forgotten by a restart.
func (c *Client) uploadKeys(ctx context.Context, b backupSecret) error {
	key, err := backup.MegolmBackupKeyFromBytes(b.Key)
	if err != nil {
		return fmt.Errorf("the backup's key: %w", err)
	}
	for {
		batch, err := c.notBackedUp(ctx, b.Version)
		if err != nil {
			return fmt.Errorf("look for new keys: %w", err)
		}
		if len(batch) == 0 {
			return nil
		}
		req := &mautrix.ReqKeyBackup{Rooms: map[id.RoomID]mautrix.ReqRoomKeyBackup{}}
		for _, s := range batch {
			sealed, err := seal(key, s)
			if err != nil { // it counts as done: it is as broken the next time
				c.log.Warn("matrix: a key cannot be backed up", "room", s.RoomID, "session", s.ID(), "err", err)
				continue
			}
			if _, ok := req.Rooms[s.RoomID]; !ok {
				req.Rooms[s.RoomID] = mautrix.ReqRoomKeyBackup{Sessions: map[id.SessionID]mautrix.ReqKeyBackupData{}}
			}
			req.Rooms[s.RoomID].Sessions[s.ID()] = sealed
		}
		if len(req.Rooms) > 0 {
			if _, err := c.cli.PutKeysInBackup(ctx, b.Version, req); err != nil {
				return fmt.Errorf("upload %d keys: %w", len(batch), err)
			}
		}
		for _, s := range batch {
			if err := c.machine().CryptoStore.(*keyStore).SetGroupSessionKeyBackupVersion(ctx, s.ID(), b.Version); err != nil {
				return fmt.Errorf("note which keys are backed up: %w", err)
			}
		}
		c.log.Debug("matrix: message keys backed up", "keys", len(batch), "version", b.Version)
	}
}

// notBackedUp returns some of the keys that are not in the backup.
func (c *Client) notBackedUp(ctx context.Context, version id.KeyBackupVersion) (out []*crypto.InboundGroupSession, err error) {
	err = c.machine().CryptoStore.GetGroupSessionsWithoutKeyBackupVersion(ctx, version).Iter(func(s *crypto.InboundGroupSession) (bool, error) {
		out = append(out, s)
		return len(out) < backupBatch, nil
	})
	return out, err
}

func seal(key *backup.MegolmBackupKey, s *crypto.InboundGroupSession) (mautrix.ReqKeyBackupData, error) {
	first := s.Internal.FirstKnownIndex()
	exported, err := s.Internal.Export(first)
	if err != nil {
		return mautrix.ReqKeyBackupData{}, err
	}
	chain := s.ForwardingChains
	if chain == nil {
		chain = []string{}
	}
	sealed, err := backup.EncryptSessionData(key, backup.MegolmSessionData{
		Algorithm: id.AlgorithmMegolmV1, ForwardingKeyChain: chain,
		SenderClaimedKeys: backup.SenderClaimedKeys{Ed25519: s.SigningKey}, SenderKey: s.SenderKey,
		SessionKey: string(exported), SharedHistory: s.SharedHistory,
	})
	if err != nil {
		return mautrix.ReqKeyBackupData{}, err
	}
	data, err := json.Marshal(sealed)
	return mautrix.ReqKeyBackupData{
		FirstMessageIndex: int(first), ForwardedCount: len(chain), IsVerified: s.Internal.IsVerified(), SessionData: data,
	}, err
}

// keysOutside counts the message keys that are not in that backup.
func keysOutside(ctx context.Context, cfg Config, version string) (n int, err error) {
	err = cfg.DB.QueryRowContext(ctx, `SELECT count(*) FROM crypto_megolm_inbound_session WHERE session IS NOT NULL AND (?1 = '' OR key_backup_version <> ?1)`, version).Scan(&n)
	return n, doing("matrix: count keys", err)
}

package e2ee

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/crypto"
	"maunium.net/go/mautrix/crypto/backup"
	"maunium.net/go/mautrix/crypto/signatures"
	"maunium.net/go/mautrix/crypto/ssss"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"reverie/internal/i18n"
	"reverie/internal/matrix/retry"
	"reverie/internal/pace"
	"reverie/internal/store"
	"reverie/internal/text"
)

const (
	backupTimeout = 30 * time.Second // of one step at the start, so that a slow server does not block it
	backupBatch   = 100              // keys in one upload
	backupSettle  = 2 * time.Second  // delay of an upload, because keys often arrive together
	backupEvery   = time.Minute      // interval of a check without new keys
	backupIdle    = time.Hour        // interval after a refusal, which only a person can resolve
)

// errNoSecrets reports that the private keys of the account's identity are missing.
var errNoSecrets = errors.New("the recovery key of the account is not here, so its key backup cannot be used")

// Backup uploads room keys to the account's key backup and restores them.
type Backup struct {
	cfg  Config
	id   *Identity
	wake chan struct{}

	mu      sync.Mutex
	problem string // why the backup does not work; empty = it works
}

// OpenBackup creates the account's key backup or uses the existing one. On a new device it restores the
// keys before the first sync, which needs them. The bot works without a backup: Run retries after any failure.
func OpenBackup(ctx context.Context, cfg Config, identity *Identity) *Backup {
	b := &Backup{cfg: cfg, id: identity, wake: make(chan struct{}, 1)}
	OnSession(cfg.Machine, func(context.Context, id.RoomID, id.SessionID) { pace.Wake(b.wake) })
	ctx, cancel := context.WithTimeout(ctx, backupTimeout)
	defer cancel()
	in, err := b.ensure(ctx)
	if err == nil {
		err = b.restoreKeys(ctx, in)
	}
	b.setProblem(err)
	return b
}

// Status returns the version of the backup in use, or "". problem is its problem, or "".
func (b *Backup) Status() (version, problem string) {
	b.mu.Lock()
	problem = b.problem
	b.mu.Unlock()
	if in := b.id.backup(); in != nil {
		version = in.Version.String()
	}
	return version, problem
}

// OnSession adds f to the functions called when a megolm session arrives at m. It must be called
// before m is used.
func OnSession(m *crypto.OlmMachine, f func(context.Context, id.RoomID, id.SessionID)) {
	previous := m.SessionReceived
	m.SessionReceived = func(ctx context.Context, room id.RoomID, session id.SessionID, first uint32) {
		if previous != nil {
			previous(ctx, room, session, first)
		}
		f(ctx, room, session)
	}
}

// setProblem stores the result of the last attempt. It logs a repeated problem once.
func (b *Backup) setProblem(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	b.mu.Lock()
	same := b.problem == text
	b.problem = text
	b.mu.Unlock()
	switch {
	case same:
	case err != nil:
		b.cfg.Log.Warn("matrix: the key backup does not work; messages are read and sent all the same", "err", err)
	default:
		b.cfg.Log.Info("matrix: the key backup works again")
	}
}

// Run restores missing keys and uploads new ones until ctx ends.
func (b *Backup) Run(ctx context.Context) error {
	for attempt := 0; ; attempt++ {
		err := b.sync(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		b.setProblem(err)
		wait, wake := backupEvery, b.wake
		if err == nil {
			attempt = -1
		} else {
			wake = nil // new keys do not help
			var v retry.Class
			if v, wait = retry.Classify(err, attempt); v == retry.Never || errors.Is(err, errNoSecrets) {
				wait = backupIdle
			}
		}
		if err := pace.Pause(ctx, wake, wait); err != nil {
			return err
		}
		if err := pace.Pause(ctx, nil, backupSettle); err != nil {
			return err
		}
	}
}

// sync restores missing keys from the backup and uploads new ones to it.
func (b *Backup) sync(ctx context.Context) (err error) {
	defer func() {
		if r := recover(); r != nil {
			b.cfg.Log.Error("matrix: panic in the key backup", "panic", r, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	in, err := b.ensure(ctx)
	if err != nil {
		return err
	}
	key, err := backup.MegolmBackupKeyFromBytes(in.Key)
	if err != nil {
		return fmt.Errorf("the backup's key: %w", err)
	}
	if err := b.restoreKeys(ctx, in); err != nil {
		return fmt.Errorf("restore keys: %w", err)
	}
	if err = b.uploadKeys(ctx, in, key); err != nil && b.replaced(ctx, in) {
		b.cfg.Log.Warn("matrix: the key backup is no longer the one on the homeserver; looking for the new one", "version", in.Version,
			"err", err)
		if err := b.id.changeStoredSecrets(ctx, func(s *Secrets) { s.Backup = nil }); err != nil {
			return err
		}
		return b.sync(ctx)
	}
	return err
}

// replaced reports whether the server has another backup now, or none. Servers refuse keys for a
// deleted backup with different errors, so it asks for the current version.
func (b *Backup) replaced(ctx context.Context, in BackupSecret) bool {
	latest, err := b.cfg.Client.GetKeyBackupLatestVersion(ctx)
	return errors.Is(err, mautrix.MNotFound) || err == nil && latest.Version != in.Version
}

// ensure returns the backup in use or creates one. It stores the backup's key in the secret
// storage, then creates the backup, then records it. A failed call is continued by the next one.
func (b *Backup) ensure(ctx context.Context) (BackupSecret, error) {
	if inUse := b.id.backup(); inUse != nil {
		return *inUse, nil
	}
	m := b.cfg.Machine
	if m.CrossSigningKeys == nil {
		return BackupSecret{}, errNoSecrets
	}
	storage, err := b.id.openStorage(ctx)
	if err != nil {
		return BackupSecret{}, err
	}
	latest, err := b.cfg.Client.GetKeyBackupLatestVersion(ctx)
	if errors.Is(err, mautrix.MNotFound) {
		latest, err = nil, nil
	}
	if err != nil {
		return BackupSecret{}, fmt.Errorf("ask for the key backup: %w", err)
	}
	key, err := b.backupKey(ctx, storage, latest == nil)
	if err != nil {
		return BackupSecret{}, err
	}
	created := BackupSecret{Key: key.Bytes()}
	switch {
	case latest == nil:
		if created.Version, err = b.newBackup(ctx, key); err != nil {
			return BackupSecret{}, err
		}
		created.Restored = b.cfg.Client.DeviceID // there is nothing to restore
	case latest.Algorithm != id.KeyBackupAlgorithmMegolmBackupV1:
		return BackupSecret{}, retry.Refuse(i18n.Text(
			fmt.Sprintf("the account's key backup is of a kind that is not supported here (%s)", text.Clip(string(latest.Algorithm), 60))))
	case latest.AuthData.PublicKey != publicBackupKey(key):
		return BackupSecret{}, retry.Refuse(i18n.Text("the key in the account's secret storage does not open its key backup; " +
			"another client has made a new backup, and its recovery key belongs into " + b.cfg.recoveryKey()))
	default:
		created.Version = latest.Version
	}
	return created, b.id.changeStoredSecrets(ctx, func(s *Secrets) { s.Backup = &created })
}

// backupKey returns the backup's private key from the secret storage. With create it makes a
// missing one.
func (b *Backup) backupKey(ctx context.Context, storage *ssss.Key, create bool) (*backup.MegolmBackupKey, error) {
	var sealed ssss.EncryptedAccountDataEventContent
	err := b.cfg.Client.GetAccountData(ctx, event.AccountDataMegolmBackupKey.Type, &sealed)
	switch {
	case err != nil && !errors.Is(err, mautrix.MNotFound):
		return nil, fmt.Errorf("ask for the backup's key: %w", err)
	case err == nil && len(sealed.Encrypted) > 0:
		raw, err := sealed.Decrypt(event.AccountDataMegolmBackupKey.Type, storage)
		var key *backup.MegolmBackupKey
		if err == nil {
			key, err = backup.MegolmBackupKeyFromBytes(raw)
		}
		if err != nil {
			return nil, retry.Refuse(i18n.Text(fmt.Sprintf("%s does not open the key of the account's key backup: %v",
				b.cfg.recoveryKey(), err)))
		}
		return key, nil
	case !create:
		return nil, retry.Refuse("the account has a key backup of another client, whose key is not in the account's secret storage; " +
			"delete that backup there, or store its key there")
	}
	key, err := backup.NewMegolmBackupKey()
	if err != nil {
		return nil, fmt.Errorf("make a backup key: %w", err)
	}
	err = b.cfg.Machine.SSSS.SetEncryptedAccountData(ctx, event.AccountDataMegolmBackupKey, key.Bytes(), storage)
	return key, store.Wrap(err, "store the backup's key")
}

func publicBackupKey(key *backup.MegolmBackupKey) id.Ed25519 {
	return id.Ed25519(base64.RawStdEncoding.EncodeToString(key.PublicKey().Bytes()))
}

// newBackup creates an empty backup, signed by our identity.
func (b *Backup) newBackup(ctx context.Context, key *backup.MegolmBackupKey) (id.KeyBackupVersion, error) {
	master := b.cfg.Machine.CrossSigningKeys.MasterKey
	auth := backup.MegolmAuthData{PublicKey: publicBackupKey(key)}
	signature, err := master.SignJSON(auth)
	if err != nil {
		return "", fmt.Errorf("sign the key backup: %w", err)
	}
	auth.Signatures = signatures.NewSingleSignature(b.cfg.Client.UserID, id.KeyAlgorithmEd25519, master.PublicKey().String(), signature)
	created, err := b.cfg.Client.CreateKeyBackupVersion(ctx, &mautrix.ReqRoomKeysVersionCreate[backup.MegolmAuthData]{
		Algorithm: id.KeyBackupAlgorithmMegolmBackupV1, AuthData: auth,
	})
	if err != nil {
		return "", fmt.Errorf("make the key backup: %w", err)
	}
	b.cfg.Log.Info("matrix: key backup made; the recovery key opens it", "version", created.Version)
	return created.Version, nil
}

// restoreKeys imports all keys of the backup into the crypto store, once for a device. It keeps a
// stored key that is as good.
func (b *Backup) restoreKeys(ctx context.Context, in BackupSecret) error {
	if in.Restored == b.cfg.Client.DeviceID {
		return nil
	}
	key, err := backup.MegolmBackupKeyFromBytes(in.Key)
	if err != nil {
		return fmt.Errorf("the backup's key: %w", err)
	}
	all, err := b.cfg.Client.GetKeyBackup(ctx, in.Version)
	if err != nil && !errors.Is(err, mautrix.MNotFound) { // some servers answer so for an empty backup
		return fmt.Errorf("download: %w", err)
	}
	good, bad := 0, 0
	if err == nil {
		for room, keys := range all.Rooms {
			for session, sealed := range keys.Sessions {
				err := errors.New("it is not complete")
				if sealed.SessionData.Ephemeral.PublicKey != nil {
					var data *backup.MegolmSessionData
					if data, err = sealed.SessionData.Decrypt(key); err == nil {
						_, err = b.cfg.Machine.ImportRoomKeyFromBackup(ctx, in.Version, room, session, data)
					}
				}
				switch {
				case errors.Is(err, crypto.ErrFailedToStoreNewInboundGroupSessionFromBackup), ctx.Err() != nil:
					return err
				case err != nil:
					b.cfg.Log.Warn("matrix: a key in the backup cannot be used", "room", room, "session", session, "err", err)
					bad++
				default:
					good++
				}
			}
		}
	}
	in.Restored = b.cfg.Client.DeviceID
	if err := b.id.changeStoredSecrets(ctx, func(s *Secrets) { s.Backup = &in }); err != nil {
		return err
	}
	b.cfg.Log.Info("matrix: message keys restored from the backup", "keys", good, "unusable", bad)
	return nil
}

// uploadKeys uploads all keys that are not in the backup. The crypto store records which are, so
// a restart loses nothing.
func (b *Backup) uploadKeys(ctx context.Context, in BackupSecret, key *backup.MegolmBackupKey) error {
	for {
		var batch []*crypto.InboundGroupSession
		missing := b.cfg.Machine.CryptoStore.GetGroupSessionsWithoutKeyBackupVersion(ctx, in.Version)
		if err := missing.Iter(func(s *crypto.InboundGroupSession) (bool, error) {
			batch = append(batch, s)
			return len(batch) < backupBatch, nil
		}); err != nil {
			return fmt.Errorf("look for new keys: %w", err)
		}
		if len(batch) == 0 {
			return nil
		}
		req := &mautrix.ReqKeyBackup{Rooms: map[id.RoomID]mautrix.ReqRoomKeyBackup{}}
		for _, s := range batch {
			sealed, err := seal(key, s)
			if err != nil { // recorded as uploaded: another try would fail, too
				b.cfg.Log.Warn("matrix: a key cannot be backed up", "room", s.RoomID, "session", s.ID(), "err", err)
				continue
			}
			if _, ok := req.Rooms[s.RoomID]; !ok {
				req.Rooms[s.RoomID] = mautrix.ReqRoomKeyBackup{Sessions: map[id.SessionID]mautrix.ReqKeyBackupData{}}
			}
			req.Rooms[s.RoomID].Sessions[s.ID()] = sealed
		}
		if len(req.Rooms) > 0 {
			if _, err := b.cfg.Client.PutKeysInBackup(ctx, in.Version, req); err != nil {
				return fmt.Errorf("upload %d keys: %w", len(batch), err)
			}
		}
		for _, s := range batch {
			if err := b.cfg.Machine.CryptoStore.(*Store).SetGroupSessionKeyBackupVersion(ctx, s.ID(), in.Version); err != nil {
				return fmt.Errorf("note which keys are backed up: %w", err)
			}
		}
		b.cfg.Log.Debug("matrix: message keys backed up", "keys", len(batch), "version", in.Version)
	}
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

// CountNotBackedUp counts the room keys in db that are not in the backup version.
func CountNotBackedUp(ctx context.Context, db *store.DB, version string) (n int, err error) {
	return store.Value[int](ctx, db, `SELECT count(*) FROM crypto_megolm_inbound_session WHERE session IS NOT NULL
		AND (?1 = '' OR key_backup_version <> ?1)`, version)
}

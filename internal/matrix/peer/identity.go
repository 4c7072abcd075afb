package peer

import (
	"context"
	"errors"
	"fmt"
)

// ResetIdentity gives the person an identity, in place of the one they may have,
// and signs this device with it. To be called before Run.
func (p *Peer) ResetIdentity(ctx context.Context, password string) error {
	m := p.crypto.Machine()
	if _, _, err := m.GenerateAndUploadCrossSigningKeysWithPassword(ctx, password, ""); err != nil {
		return fmt.Errorf("make an identity: %w", err)
	}
	if err := errors.Join(m.SignOwnDevice(ctx, m.OwnIdentity()), m.SignOwnMasterKey(ctx)); err != nil {
		return fmt.Errorf("sign this device: %w", err)
	}
	return nil
}

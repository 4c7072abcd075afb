package setup

import (
	"context"
	"errors"
	"fmt"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/synapseadmin"
)

// Registrar makes accounts on a homeserver whose registration secret is known.
type Registrar struct {
	URL    string // the homeserver's base URL
	Name   string // its name: the part after the colon in user ids
	Secret string // registration_shared_secret of its configuration
}

// Register makes the user @localpart:Name and returns that id. A user who is
// there already is no error and keeps the password they have. Passwords have
// eight characters or more.
func (r Registrar) Register(ctx context.Context, localpart, password string) (string, error) {
	userID := "@" + localpart + ":" + r.Name
	client, err := mautrix.NewClient(r.URL, "", "")
	if err != nil {
		return "", fmt.Errorf("homeserver %q: %w", r.URL, err)
	}
	admin := synapseadmin.Client{Client: client}
	_, err = admin.SharedSecretRegister(ctx, r.Secret, synapseadmin.ReqSharedSecretRegister{Username: localpart, Password: password})
	if err != nil && !errors.Is(err, mautrix.MUserInUse) {
		return "", fmt.Errorf("register %s: %w", userID, err)
	}
	return userID, nil
}

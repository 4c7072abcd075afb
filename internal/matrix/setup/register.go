package setup

import (
	"context"
	"errors"
	"fmt"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/synapseadmin"
)

// Registrar creates accounts on a homeserver whose registration secret is known.
type Registrar struct {
	URL    string // the homeserver's base URL
	Name   string // its server name: the part after the colon in user IDs
	Secret string // registration_shared_secret of its configuration
}

// Register creates the user @localpart:Name and returns that ID. An existing user is no error and
// keeps its password. Passwords have at least eight characters.
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

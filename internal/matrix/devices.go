package matrix

import (
	"context"
	"fmt"
	"strings"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/crypto/signatures"
	"maunium.net/go/mautrix/id"
)

// checkDevices asks the homeserver whether our device is signed, whether the account's identity is still the
// one whose keys are here, and which devices the account has that this
// identity has not signed. Somebody who took the account over would be seen in
// one of the two.
func checkDevices(ctx context.Context, cfg Config, cli *mautrix.Client, acc *account, s *Status) []Finding {
	list, err := cli.GetDevicesInfo(ctx)
	if err != nil {
		return []Finding{{What: fmt.Sprintf("the homeserver does not list the devices of the account: %v", err), Remedy: "try again"}}
	}
	keys, err := cli.QueryKeys(ctx, &mautrix.ReqQueryKeys{DeviceKeys: mautrix.DeviceKeysRequest{acc.UserID: mautrix.DeviceIDList{}}})
	if err != nil {
		return []Finding{{What: fmt.Sprintf("the homeserver does not tell the keys of the account: %v", err), Remedy: "try again"}}
	}
	signed := checkSigned(keys, acc)
	s.CrossSigned = signed.OK
	out := []Finding{signed}
	masters, signers := keys.MasterKeys[acc.UserID], keys.SelfSigningKeys[acc.UserID]
	if kept, err := loadSecrets(ctx, cfg); err == nil && kept != nil && kept.CrossSigning != nil {
		if own, err := kept.CrossSigning.Decode(); err == nil {
			s.IdentityTrusted = own.PublicKeys().MasterKey == masters.FirstKey()
			if !s.IdentityTrusted {
				out = append(out, Finding{
					What: "the account's identity on the homeserver is not the one that this bot made: another client, or somebody else, has replaced it",
					Remedy: "if it was not you, change the account's password and log the other devices out; then put the recovery key of the present identity into " +
						cfg.dir("recovery.key") + " and start the bot",
				})
			}
		}
	}
	signer := signers.FirstKey()
	s.UnknownDevices = []Device{}
	var names []string
	for _, d := range list.Devices {
		if d.DeviceID == acc.DeviceID || signedBy(keys.DeviceKeys[acc.UserID][d.DeviceID], acc.UserID, signer) {
			continue
		}
		s.UnknownDevices = append(s.UnknownDevices, Device{ID: d.DeviceID.String(), Name: d.DisplayName})
		name := fmt.Sprintf("%s (%q)", d.DeviceID, d.DisplayName)
		if d.DeviceID == "shared_secret_registration" {
			name = "shared_secret_registration (left by the tool of Dendrite that made the account)"
		}
		names = append(names, name)
	}
	if len(names) > 0 {
		out = append(out, Finding{
			OK: true, Note: true,
			What:   fmt.Sprintf("the account has %s that its identity has not signed: %s", plural(len(names), "other device", "other devices"), strings.Join(names, "; ")),
			Remedy: "if you do not know a device, log it out in another client of this account and change the password",
		})
	}
	return out
}

// signedBy tells whether the account's self-signing key has signed the device.
func signedBy(d mautrix.DeviceKeys, user id.UserID, signer id.Ed25519) bool {
	if signer == "" || len(d.Keys) == 0 {
		return false
	}
	ok, err := signatures.VerifySignatureJSON(d, user, signer.String(), signer)
	return err == nil && ok
}

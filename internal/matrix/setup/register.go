package setup

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha1" // what the registration protocol asks for
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
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
	var nonce struct {
		Nonce string `json:"nonce"`
	}
	if err := r.call(ctx, http.MethodGet, nil, &nonce); err != nil {
		return "", fmt.Errorf("register %s: %w", userID, err)
	}
	mac := hmac.New(sha1.New, []byte(r.Secret))
	mac.Write([]byte(strings.Join([]string{nonce.Nonce, localpart, password, "notadmin"}, "\x00")))
	request := map[string]any{
		"nonce": nonce.Nonce, "username": localpart, "password": password,
		"admin": false, "mac": hex.EncodeToString(mac.Sum(nil)),
	}
	var made struct {
		UserID string `json:"user_id"`
	}
	err := r.call(ctx, http.MethodPost, request, &made)
	var refused *Refusal
	if errors.As(err, &refused) && refused.Code == "M_USER_IN_USE" {
		return userID, nil
	}
	if err != nil {
		return "", fmt.Errorf("register %s: %w", userID, err)
	}
	return made.UserID, nil
}

// Refusal is the homeserver's own error answer.
type Refusal struct {
	Status int
	Code   string `json:"errcode"`
	Text   string `json:"error"`
}

func (r *Refusal) Error() string {
	return fmt.Sprintf("the homeserver refused it (%d %s): %s", r.Status, r.Code, r.Text)
}

// call talks to the shared-secret registration endpoint.
func (r Registrar) call(ctx context.Context, method string, body, into any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, r.URL+"/_synapse/admin/v1/register", bytes.NewReader(data))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		refused := &Refusal{Status: resp.StatusCode}
		_ = json.Unmarshal(answer, refused) // a body that is no JSON leaves the status
		return refused
	}
	return json.Unmarshal(answer, into)
}

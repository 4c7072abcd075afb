package matrix

// Allows tells whether user may talk to us.
func (c *Client) Allows(user string) bool { return c.gate.allows(user) }

// Allowed returns whether a person may talk to the account self, as its owners, allow and
// bots lists say. A fault in the lists is an error that names it.
func Allowed(self string, owners, allow, bots []string) (func(user string) bool, error) {
	g, err := newGate(self, owners, allow, bots...)
	if err != nil {
		return nil, err
	}
	return g.allows, nil
}

package matrix

// Allowed returns whether a person may talk to the account self, as its owners and allow
// lists say. A fault in the lists is an error that names it.
func Allowed(self string, owners, allow []string) (func(user string) bool, error) {
	g, err := newGate(self, owners, allow)
	if err != nil {
		return nil, err
	}
	return g.allows, nil
}

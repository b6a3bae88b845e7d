package cluster

// ParseInvitation reads the text of an invitation.
func ParseInvitation(text string) error {
	_, err := parseToken(text)
	return err
}

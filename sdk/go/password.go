package runner

// PasswordCheck is what VerifyPassword finds out.
type PasswordCheck struct {
	// Valid: the hash is that of the password.
	Valid bool `json:"valid"`
	// Rehash: it is valid, and has another algorithm or other parameters than new
	// hashes. Store a new one.
	Rehash bool `json:"rehash"`
}

// HashPassword gives a new hash of a password with Argon2id, as a PHC string:
// $argon2id$v=19$m=19456,t=2,p=1$…. The runner hashes a few passwords at the same
// time, and the handler waits; the time counts as CPU time of the request.
func (c *Context) HashPassword(password string) (string, error) {
	var result struct {
		Hash string `json:"hash"`
	}
	err := callHost(c.host, "password.hash", map[string]string{"password": password}, &result)
	return result.Hash, err
}

// VerifyPassword compares a password with a hash of HashPassword, or with one of
// bcrypt, scrypt or PBKDF2 as Django, passlib and others write them. An empty hash
// stands for a user who does not exist: it takes as long, and is not valid.
func (c *Context) VerifyPassword(password, hash string) (PasswordCheck, error) {
	args := map[string]string{"password": password}
	if hash != "" {
		args["hash"] = hash
	}
	var check PasswordCheck
	err := callHost(c.host, "password.verify", args, &check)
	return check, err
}

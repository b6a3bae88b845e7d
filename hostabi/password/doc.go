// Package password hashes passwords with Argon2id (RFC 9106), and verifies hashes that this
// and other software has made. PHC is short for the string format of the Password Hashing
// Competition: $argon2id$v=19$m=19456,t=2,p=1$<salt>$<hash>.
//
//	made here   $argon2id$v=19$m=…,t=…,p=…$salt$hash
//	verified    $argon2id$…  $argon2i$…           also with the prefix argon2 (Django)
//	            $2a$  $2b$  $2y$                  also with the prefixes bcrypt$ and
//	                                              bcrypt_sha256$ (Django)
//	            $scrypt$ln=…,r=…,p=…$salt$hash    scrypt$N$salt$r$p$hash (Django)
//	                                              scrypt:N:r:p$salt$hex (Werkzeug)
//	            $pbkdf2-sha256$i=…$salt$hash      pbkdf2_sha256$i$salt$hash (Django)
//	            $pbkdf2-sha256$i$salt$hash        pbkdf2:sha256:i$salt$hex (Werkzeug)
//	            (passlib)
//
// A hash comes from a database, and the parameters in it decide how much is computed. So they
// are limited, in memory (Options.MaxMemory) and in time, before anything is computed.
//
// The package bounds nothing between calls: package longwork does. Argon2 with p lanes computes on up to
// p processors at once.
package password

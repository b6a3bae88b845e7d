package front

const RaceDetector = raceDetector

// Framed is what is sent of a part, when so much of a comment before it was not sent.
func Framed(unsent, part string) string {
	buffer := []byte(":comment" + unsent)
	s := &stream{chunked: true, buffer: &buffer, framed: buffer, unsent: buffer[len(":comment"):]}
	s.frame([]byte(part))
	return string(s.framed)
}

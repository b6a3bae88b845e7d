package front

const RaceDetector = raceDetector

// Framed is what is sent of a part, when so much of a comment before it was not sent.
func Framed(unsent, part string) string {
	s := &stream{chunked: true}
	s.framed = append(s.framed, ":comment"+unsent...)
	s.unsent = s.framed[len(":comment"):]
	s.frame([]byte(part))
	return string(s.framed)
}

package front

const RaceDetector = raceDetector

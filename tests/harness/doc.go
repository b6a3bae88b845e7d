// Package harness runs the real binary for the black-box tests: it builds the runner once,
// writes apps, starts servers on ports that the system chooses, and reads their answers.
// Every package below tests/ uses it; its TestMain calls Main.
//
// With RUNNER_TEST_GOARCH the binary is built for another architecture, with RUNNER_TEST_GOOS=windows for
// Windows, and with RUNNER_TEST_EMULATOR this program runs it.
package harness

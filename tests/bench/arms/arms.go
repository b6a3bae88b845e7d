// Package arms compares the speed of two functions by measuring them in turns, so that other
// load on the machine affects both.
package arms

import (
	"slices"
	"testing"

	"runner.example/tests/harness"
)

// Alternate measures two arms in turns of each runs, until b has its iterations. It reports
// the median time of one run in ns under each arm's name, and the ratio of the second to the
// first: the median of neighbouring turns, with the 5th and 95th percentile. Times are CPU
// time of this process, so time in which other processes run does not count.
func Alternate(b *testing.B, each int, names [2]string, arms [2]func()) {
	b.Helper()
	var times [2][]float64
	var ratios []float64
	for _, arm := range arms {
		for range 4 * each {
			arm()
		}
	}
	for b.Loop() {
		var now [2]float64
		for i, arm := range arms {
			start := cpuTime(b)
			for range each {
				arm()
			}
			now[i] = float64(cpuTime(b)-start) / float64(each)
			times[i] = append(times[i], now[i])
		}
		ratios = append(ratios, now[1]/now[0])
	}
	for i, name := range names {
		b.ReportMetric(at(times[i], 50), name+"-ns")
	}
	Report(b, "ratio", ratios)
}

// Report reports the median of measurements under the unit, with the 5th and 95th percentile.
func Report(b *testing.B, unit string, all []float64) {
	b.ReportMetric(at(all, 5), unit+"-p5")
	b.ReportMetric(at(all, 50), unit)
	b.ReportMetric(at(all, 95), unit+"-p95")
	b.ReportMetric(0, "ns/op")
}

// cpuTime is the CPU time of this process so far, in ns.
func cpuTime(b *testing.B) int64 {
	return harness.CPUTime(b, harness.ThisProcess).Nanoseconds()
}

func at(list []float64, percent int) float64 {
	slices.Sort(list)
	return list[len(list)*percent/100]
}

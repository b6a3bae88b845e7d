package entity

import (
	"math"
	"math/big"
	"strconv"
	"strings"

	"runner.example/internal/fault"
	"runner.example/schema"
)

// total adds up the numbers of one field exactly, so that the result does not depend on the
// order of the rows.
type total struct {
	n int
	// small and whole together are the sum of whole numbers, of seconds, or of the digits of
	// decimals.
	small int64
	whole *big.Int
	float *big.Float // the sum of floats; nil: none
}

// floatBits are enough for the exact sum of 2^60 floats.
const floatBits = 1024 + 1074 + 60 + 64

// add adds a value of the field.
func (s *total) add(v schema.Value) {
	s.n++
	switch v.Kind() {
	case schema.KindFloat:
		if s.float == nil {
			s.float = new(big.Float).SetPrec(floatBits)
		}
		s.float.Add(s.float, new(big.Float).SetFloat64(v.Float()))
	case schema.KindDecimal:
		digits := strings.Replace(v.Text(), ".", "", 1)
		if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
			s.addInt(n)
			return
		}
		n, ok := new(big.Int).SetString(digits, 10)
		if !ok {
			panic("BUG: a decimal without digits: " + v.Text())
		}
		s.addBig(n)
	default:
		s.addInt(v.Int())
	}
}

func (s *total) addInt(n int64) {
	sum := s.small + n
	if (sum > s.small) == (n > 0) {
		s.small = sum
		return
	}
	s.addBig(big.NewInt(n))
}

func (s *total) addBig(n *big.Int) {
	if s.whole == nil {
		s.whole = new(big.Int)
	}
	s.whole.Add(s.whole, n)
}

// digits returns the sum without its point.
func (s *total) digits() *big.Int {
	sum := big.NewInt(s.small)
	if s.whole != nil {
		sum.Add(sum, s.whole)
	}
	return sum
}

// appendSum appends the sum as JSON: null without values.
func (s *total) appendSum(dst []byte, f *schema.Field) ([]byte, error) {
	switch {
	case s.n == 0:
		return append(dst, "null"...), nil
	case s.float != nil:
		sum, _ := s.float.Float64()
		if math.IsInf(sum, 0) {
			return nil, fault.New(fault.Limit, "sum: the sum of %s is too large for a float", f.Name)
		}
		return f.Type.AppendJSON(dst, schema.FloatValue(sum)), nil
	case f.Type.Kind == schema.Decimal:
		return appendPlaces(dst, s.digits(), f.Type.Places), nil
	}
	sum := s.digits()
	if !sum.IsInt64() || sum.Int64() > schema.MaxSafeInteger || sum.Int64() < -schema.MaxSafeInteger {
		return nil, fault.New(fault.Limit, "sum: the sum of %s is beyond ±(2^53-1): declare the field as a decimal", f.Name)
	}
	return sum.Append(dst, 10), nil
}

// morePlaces is how many more places the average of a decimal has than the field.
const morePlaces = 6

// appendAvg appends the average as JSON: null without values. That of a decimal is rounded
// half to even; other averages are the nearest floats.
func (s *total) appendAvg(dst []byte, f *schema.Field) []byte {
	n := big.NewInt(int64(s.n))
	switch {
	case s.n == 0:
		return append(dst, "null"...)
	case f.Type.Kind == schema.Decimal:
		scaled := new(big.Int).Exp(big.NewInt(10), big.NewInt(morePlaces), nil)
		return appendPlaces(dst, divideEven(scaled.Mul(scaled, s.digits()), n), f.Type.Places+morePlaces)
	}
	sum := new(big.Rat)
	if s.float != nil {
		s.float.Rat(sum)
	} else {
		sum.SetInt(s.digits())
	}
	avg, _ := sum.Quo(sum, new(big.Rat).SetInt(n)).Float64()
	return (&schema.Type{Kind: schema.Float}).AppendJSON(dst, schema.FloatValue(avg))
}

// divideEven divides by n, which is positive, and rounds half to even.
func divideEven(sum, n *big.Int) *big.Int {
	quotient, rest := new(big.Int).DivMod(sum, n, new(big.Int)) // rest is not negative
	switch rest.Lsh(rest, 1).Cmp(n) {
	case 1:
		quotient.Add(quotient, big.NewInt(1))
	case 0:
		quotient.Add(quotient, big.NewInt(int64(quotient.Bit(0))))
	}
	return quotient
}

// appendPlaces appends a decimal with so many places as JSON.
func appendPlaces(dst []byte, digits *big.Int, places int) []byte {
	text := new(big.Int).Abs(digits).String()
	if short := places + 1 - len(text); short > 0 {
		text = strings.Repeat("0", short) + text
	}
	dst = append(dst, '"')
	if digits.Sign() < 0 {
		dst = append(dst, '-')
	}
	dst = append(dst, text[:len(text)-places]...)
	if places > 0 {
		dst = append(append(dst, '.'), text[len(text)-places:]...)
	}
	return append(dst, '"')
}
